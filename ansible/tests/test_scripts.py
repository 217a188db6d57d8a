"""Scripts of roles and classes, with commands that answer what the test says."""

import ast
import glob
import os
import re
import subprocess
import unittest

import yaml

import modules
import runs

CLASSES = os.path.join(os.path.dirname(runs.COLLECTION), "config", "samples", "classes")


class ScriptTest(modules.ModuleTest):
    def sh(self, *arguments):
        """Runs sh with the commands of the test, and returns its exit code and what it printed."""
        ran = subprocess.run(["/bin/sh", *arguments], env={"PATH": self.path("bin") + ":/usr/bin:/bin"}, check=False, timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        return ran.returncode, ran.stdout

    @staticmethod
    def script(role, name):
        return os.path.join(runs.COLLECTION, "roles", role, "files", name)


class ConmonTest(ScriptTest):
    def test_it_is_conmon_without_the_command_that_it_would_wait_for(self):
        self.command("conmon", 'for a; do echo "<$a>"; done; exit 7')
        given = ["--api-version", "1", "--exit-dir", "/run/exits", "--runtime-arg", "", "--exit-command", "/usr/bin/podman", "--exit-command-arg", "--root",
                 "--exit-command-arg", "", "--exit-command-arg=a b", "--exit-command=x", "-n", "a b", "--exit-command-arg", "--exit-dir", "last"]
        wanted = ["--api-version", "1", "--exit-dir", "/run/exits", "--runtime-arg", "", "-n", "a b", "last"]
        self.assertEqual(self.sh(self.script("edpm_libvirt", "conmon.sh"), *given), (7, "".join("<%s>\n" % each for each in wanted)))


class ChassisTest(ScriptTest):
    def southbound(self, address="172.19.0.10", answered="7"):
        """Has a chassis of this host, and another one of its name with the address, whose ovn-controller has answered that request of 7."""
        self.command("ovs-vsctl", 'case "$*" in *system-id) echo id;; *hostname) echo host;; *ovn-encap-ip) echo 172.19.0.10,fd00::10;; '
                                  '*ovn-remote) echo tcp:192.0.2.1:6642;; esac')
        self.command("ovn-appctl", "echo connected")
        self.command("sleep", "true")
        self.command("ovn-sbctl", """case "$*" in
          *"find Chassis hostname"*) echo other; echo id;; *"find Encap"*) echo %s;; *"find "*) echo id;; *metadata-id*) echo agent;;
          *"get SB_Global . nb_cfg") echo 7;; *"get Chassis_Private other nb_cfg") echo %s;; esac""" % (address, answered))

    def register(self, *southbound):
        """Returns the exit code, the output, and whether the other chassis was removed."""
        self.southbound(*southbound)
        code, output = self.sh(self.script("edpm_ovn_controller", "chassis.sh"), "register", "0")
        return code, output, any(call.endswith("chassis-del other") for call in self.calls("ovn-sbctl"))

    def test_another_machine_of_the_host_name_keeps_its_chassis(self):
        """It may have guests."""
        code, output, removed = self.register("172.19.0.11")
        self.assertEqual((code, removed), (1, False))
        self.assertIn("the chassis other has the host name host as well, and its ovn-controller answers", output)

    def test_what_a_machine_of_the_host_name_left_behind_is_removed(self):
        for what, southbound in (("it has the address of this host", ()), ("one of several", ("fd00::10",)), ("it answers no more", ("172.19.0.11", "6")),
                                 ("it has never answered", ("172.19.0.11", "")), ("it has no address", ("", "6"))):
            with self.subTest(what):
                code, output, removed = self.register(*southbound)
                self.assertEqual((code, removed), (0, True), output)

    def test_every_question_may_go_to_a_follower(self):
        """A server of a clustered database that is not its leader refuses ovn-sbctl otherwise, and a remote may be one alone."""
        self.southbound("172.19.0.11", "6")
        for arguments in (["register", "0"], ["remove"], ["forget-metadata"]):
            code, output = self.sh(self.script("edpm_ovn_controller", "chassis.sh"), *arguments)
            self.assertEqual(code, 0, output)
            calls = self.calls("ovn-sbctl")
            self.assertNotEqual(calls, [])
            self.assertEqual([call for call in calls if " --no-leader-only " not in call], [])

    def test_a_playbook_asks_in_the_same_way(self):
        with open(os.path.join(runs.COLLECTION, "roles", "edpm_ovn_controller", "tasks", "main.yml"), encoding="utf-8") as file:
            asks = [str(task["ansible.builtin.command"]["argv"]) for task in yaml.safe_load(file) if "ovn-sbctl" in str(task)]
        self.assertEqual(["'ovn-sbctl', '--no-leader-only'" in argv for argv in asks], [True])


class StorageTest(ScriptTest):
    """The unit of the class cinder-volume that has its loop device."""

    def stop(self, losetup):
        """Returns the exit code of ExecStop of the unit, and whether the link to the loop device is left."""
        with open(os.path.join(CLASSES, "edpm_v1beta1_edpmserviceclass_cinder_volume.yaml"), encoding="utf-8") as file:
            play = yaml.safe_load(file)["spec"]["play"]
        command = re.search("ExecStop=/bin/sh -c '(.*)'", play).group(1).replace("$$", "$").replace("{{ cinder_volume_device }}", self.path("device"))
        self.command("losetup", losetup)
        os.symlink("/dev/null", self.path("device"))
        code = self.sh("-c", command)[0]
        return code, os.path.islink(self.path("device"))

    def test_a_loop_device_that_is_detached(self):
        self.assertEqual(self.stop("true"), (0, False))

    def test_a_loop_device_that_cannot_be_detached_shows_and_stays_known(self):
        self.assertEqual(self.stop("exit 1"), (1, True))


class SyntaxTest(unittest.TestCase):
    def test_modules_are_for_the_oldest_python_of_hosts(self):
        """Python 3.9, of RHEL 9. The others are newer: 3.11 of Debian 12, 3.12 of RHEL 10, 3.13 of Debian 13."""
        paths = [path for part in ("modules", "module_utils") for path in glob.glob(os.path.join(runs.COLLECTION, "plugins", part, "*.py"))]
        self.assertGreater(len(paths), 10)
        for path in paths:
            with open(path, encoding="utf-8") as file, self.subTest(path):
                ast.parse(file.read(), path, feature_version=(3, 9))

    def test_it_would_be_noticed(self):
        with self.assertRaises(SyntaxError):
            ast.parse("match x:\n  case 1: pass\n", feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()
