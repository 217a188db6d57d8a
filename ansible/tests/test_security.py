"""Tries to get out of what a run keeps to: with the real Ansible and the tasks of
the collection, on this machine instead of a host. See docs/security.md."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import runs
import test_entrypoint

COLLECTION = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What Ansible would make something else of if it read it as a template.
OVERRIDE = """[DEFAULT]
# {{ lookup('pipe', 'touch %(mark)s') }}
password_template = {{ 7 * 7 }} {%% raw %%} {# gone? #} $HOME `touch %(mark)s` !unsafe
instance_name_template = instance-%%08x
"""


class Trust(unittest.TestCase):
    """Host keys are checked, whatever the environment says."""

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory, True)
        self.playbook = self.write("play.yml", "- hosts: all\n  gather_facts: false\n  tasks: [{ansible.builtin.raw: id}]\n")
        self.said = os.path.join(self.directory, "said")
        self.empty = self.write("empty.cfg", "")
        self.bin = os.path.join(self.directory, "bin")
        os.mkdir(self.bin)
        self.ssh = self.write("bin/ssh", '#!/bin/sh\necho "$@" >>%s\nexit 255\n' % self.said)
        os.chmod(self.ssh, 0o700)

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def arguments(self, **environment):
        """Returns with which arguments Ansible calls ssh."""
        environ = dict(os.environ, PATH=self.bin + os.pathsep + os.environ["PATH"], ANSIBLE_RETRIES="0", HOME=self.directory, **environment)
        test_entrypoint.load().configure(environ)
        environ["ANSIBLE_CALLBACKS_ENABLED"] = "default"
        subprocess.run(["ansible-playbook", "-i", "10.0.0.1,", self.playbook], env=environ, check=False, stdout=subprocess.DEVNULL)
        with open(self.said, encoding="utf-8") as file:
            return file.read().split()

    def of_a_run(self, inventory, *more, **environment):
        """Returns with which arguments ssh is called when the entry point has become Ansible."""
        command = os.path.join(self.directory, "ansible-playbook")
        os.symlink(os.path.join(COLLECTION, "execution-environment", "entrypoint.py"), command)
        environ = dict(os.environ, PATH=self.bin + os.pathsep + os.environ["PATH"], ANSIBLE_RETRIES="0", HOME=self.directory,
                       EDPM_RECAP_PATH=os.path.join(self.directory, "recap"), **environment)
        subprocess.run([sys.executable, command, "-i", self.write("hosts.yml", json.dumps(inventory)), self.playbook, *more], env=environ,
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(self.said, encoding="utf-8") as file:
            return file.read().split()

    def check(self, arguments):
        def first(option):
            return next(a.partition("=")[2] for a in arguments if a.startswith(option + "="))
        self.assertEqual(first("StrictHostKeyChecking"), "accept-new", arguments)
        self.assertEqual(first("UserKnownHostsFile"), "/runner/.known_hosts", arguments)

    def test_by_default(self):
        arguments = self.arguments(ANSIBLE_CONFIG=self.empty)
        self.check(arguments)
        self.assertIn("ControlMaster=auto", arguments)

    def test_with_checking_turned_off(self):
        self.check(self.arguments(ANSIBLE_CONFIG=self.empty, ANSIBLE_HOST_KEY_CHECKING="False"))

    def test_with_arguments_of_the_user(self):
        arguments = self.arguments(ANSIBLE_CONFIG=self.empty, ANSIBLE_SSH_ARGS="-o StrictHostKeyChecking=no -o ControlPersist=80s",
                                   ANSIBLE_SSH_COMMON_ARGS="-o UserKnownHostsFile=/dev/null")
        self.check(arguments)
        self.assertIn("ControlPersist=80s", arguments)

    def test_a_jump_host_comes_before_another_way_of_the_user(self):
        arguments = self.arguments(ANSIBLE_CONFIG=self.empty, EDPM_JUMP_HOST="{}",
                                   ANSIBLE_SSH_ARGS="-o ProxyCommand=none -o ProxyJump=elsewhere -o StrictHostKeyChecking=no")
        self.check(arguments)
        said = " ".join(arguments)
        self.assertRegex(said, r"-o ProxyCommand=ssh -F /runner/.jump/config -W '\[%h\]:%p' jump-host .*-o ProxyCommand=none -o ProxyJump=elsewhere")

    def test_with_a_configuration_of_the_user(self):
        config = self.write("ansible.cfg", "[defaults]\nhost_key_checking = false\n[ssh_connection]\nssh_args = -o StrictHostKeyChecking=no\n")
        self.check(self.arguments(ANSIBLE_CONFIG=config))

    def test_with_another_program_or_plugin_in_a_configuration(self):
        other = self.write("other", "#!/bin/sh\nexit 0\n")
        os.chmod(other, 0o700)
        config = self.write("ansible.cfg", "[defaults]\ntransport = paramiko\nconnection_plugins = %s\n[ssh_connection]\nssh_executable = %s\n"
                                           "control_path = %s/one-for-all\n" % (self.directory, other, self.directory))
        arguments = self.arguments(ANSIBLE_CONFIG=config)
        self.check(arguments)
        self.assertFalse([a for a in arguments if "one-for-all" in a], arguments)

    def test_with_variables_that_admission_did_not_see(self):
        """Whatever an inventory, or extra variables before the last, say."""
        hidden = "-o Strict{{ '' }}HostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        variables = {"ansible_ssh_args": hidden, "ansible_ssh_common_args": hidden, "ansible_ssh_executable": "/bin/false",
                     "ansible_host_key_checking": False, "ansible_ssh_host_key_checking": "{{ 1 == 2 }}", "ansible_control_path": "/tmp/one-for-all"}
        arguments = self.of_a_run({"all": {"hosts": {"10.0.0.1": variables}}}, "-e", json.dumps(variables), ANSIBLE_CONFIG=self.empty)
        self.check(arguments)
        self.assertFalse([a for a in arguments if "one-for-all" in a], arguments)

    def test_arguments_of_the_user_are_no_template(self):
        mark = os.path.join(self.directory, "mark")
        arguments = self.of_a_run({"all": {"hosts": {"10.0.0.1": {}}}}, ANSIBLE_CONFIG=self.empty,
                                  ANSIBLE_SSH_ARGS="-o ControlPersist=80s -o Tag={{lookup('pipe','touch${IFS}%s')}}" % mark)
        self.check(arguments)
        self.assertIn("ControlPersist=80s", arguments)
        self.assertFalse(os.path.exists(mark), arguments)

    def test_a_jump_host_of_a_mounted_configuration_changes_no_trust(self):
        if not shutil.which("ssh"):
            self.skipTest("ssh is not installed")
        config = self.write("config", "Host *\n  ProxyJump jump@bastion\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n")
        trust = shlex.split(test_entrypoint.load().TRUST)
        out = subprocess.run(["ssh", "-G", "-F", config, *trust, "10.0.0.1"], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        said = dict(line.split(" ", 1) for line in out.splitlines() if " " in line)
        self.assertEqual((said["proxyjump"], said["stricthostkeychecking"], said["userknownhostsfile"]),
                         ("jump@bastion", "accept-new", "/runner/.known_hosts"))


class Configuration(unittest.TestCase):
    """A customServiceConfig comes to the host as it is, and is never evaluated."""

    def test_templates_are_text(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory, True)
        mark, source = os.path.join(directory, "mark"), os.path.join(directory, "source")
        override = OVERRIDE % {"mark": mark}
        with open(source, "w", encoding="utf-8") as file:
            file.write(override)
        play = [{"hosts": "localhost", "gather_facts": False, "tasks": [self.task()], "vars": {
            **runs.vars_of("edpm_nova", "edpm_nova_copies", "edpm_nova_providers_dir"), "edpm_config_files": {"02-nova-override.conf": source}, "edpm_nova_config_dir": directory, "edpm_nova_gid": os.getgid()}}]
        playbook = os.path.join(directory, "play.yml")
        with open(playbook, "w", encoding="utf-8") as file:
            json.dump(play, file)
        tree = os.path.join(directory, "collections", "ansible_collections", "edpm")
        os.makedirs(tree)
        os.symlink(COLLECTION, os.path.join(tree, "operators"))
        environ = dict(os.environ, ANSIBLE_COLLECTIONS_PATH=os.path.join(directory, "collections"))
        ran = subprocess.run(["ansible-playbook", "-i", "localhost,", "-c", "local", playbook], env=environ, check=False, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        with open(os.path.join(directory, "02-nova-override.conf"), encoding="utf-8") as file:
            self.assertEqual(file.read(), override)
        self.assertFalse(os.path.exists(mark), "the configuration was evaluated")

    @staticmethod
    def task():
        """Returns the task of the role that puts the configuration on a host, for any user, and without what else it writes."""
        with open(os.path.join(COLLECTION, "roles", "edpm_nova", "tasks", "main.yml"), encoding="utf-8") as file:
            task = next(t for t in yaml.safe_load(file) if t["name"] == "Copy the configuration")
        arguments = task["edpm.operators.config_files"]
        del arguments["directories"], arguments["texts"], arguments["templates"], arguments["purge"], arguments["validate"]
        arguments["owner"] = str(os.getuid())
        return task


if __name__ == "__main__":
    unittest.main()
