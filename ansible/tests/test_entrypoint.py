"""Tests of the execution environment's entrypoint, without a container."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ENTRYPOINT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "execution-environment", "entrypoint.py")


def load():
    spec = importlib.util.spec_from_file_location("entrypoint", ENTRYPOINT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class EntrypointTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory, True)
        self.recap = os.path.join(self.directory, "recap")

    def start(self, script, **environment):
        return subprocess.Popen(
            [sys.executable, ENTRYPOINT, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True,
            env=dict(os.environ, EDPM_RUNNER_DIR=self.directory, EDPM_RECAP_PATH=self.recap, EDPM_TMP_DIR=self.directory,
                                          **environment))

    def run_script(self, script, **environment):
        process = self.start(script, **environment)
        output, _ = process.communicate(timeout=20)
        return process.returncode, output

    def read(self, *path):
        with open(os.path.join(self.directory, *path), encoding="utf-8") as file:
            return file.read()

    def test_the_environment_becomes_files_and_is_not_passed_on(self):
        code, output = self.run_script(
            'echo "[$RUNNER_PLAYBOOK$RUNNER_EXTRA_VARS]"', RUNNER_PLAYBOOK="\n- hosts: all\n\n", RUNNER_INVENTORY="all: {}",
            RUNNER_CMDLINE="\n--tags a\n\n", RUNNER_EXTRA_VARS="a: 1")
        self.assertEqual((code, output), (0, "[]\n"))
        self.assertEqual(self.read("project", "playbook.yaml"), "- hosts: all\n")
        self.assertEqual(self.read("inventory", "inventory.yaml"), "all: {}\n")
        self.assertEqual(self.read("env", "cmdline"), "--tags a\n")
        self.assertEqual(self.read("env", "extravars"), "a: 1\n")
        self.assertEqual(os.stat(os.path.join(self.directory, "env", "extravars")).st_mode & 0o777, 0o600)

    def test_the_name_of_an_inventory_tells_its_format(self):
        name = load().inventory_name
        for text in ("all: {}", "# notes\n\n---\nall:\n", '{"all": {}}', "# nothing"):
            self.assertEqual(name(text), "inventory.yaml", text)
        for text in ("[all]\nlocalhost", "# notes\n; more\nlocalhost ansible_connection=local", "host:2222"):
            self.assertEqual(name(text), "inventory", text)
        code, _ = self.run_script("true", RUNNER_INVENTORY="[all]\nlocalhost ansible_connection=local\n")
        self.assertEqual((code, self.read("inventory", "inventory")), (0, "[all]\nlocalhost ansible_connection=local\n"))

    def test_an_inventory_that_cannot_be_written_goes_elsewhere(self):
        entrypoint = load()
        entrypoint.RUNNER_DIR = self.directory
        entrypoint.TMP_DIR = os.path.join(self.directory, "tmp")
        os.makedirs(entrypoint.TMP_DIR)
        entrypoint.writable = lambda directory: "inventory" not in directory
        entrypoint.materialise({"RUNNER_INVENTORY": "all: {}", "RUNNER_CMDLINE": "--tags a"})
        self.assertEqual(self.read("tmp", "inventory", "inventory.yaml"), "all: {}\n")
        self.assertEqual(self.read("env", "cmdline"), "--tags a -i %s/tmp/inventory\n" % self.directory)

    def test_the_exit_code_and_the_recap_of_the_command_are_kept(self):
        code, _ = self.run_script('echo mine > "$EDPM_RECAP_PATH"; exit 2')
        self.assertEqual((code, self.read("recap")), (2, "mine\n"))

    def test_a_recap_from_before_does_not_count(self):
        with open(self.recap, "w", encoding="utf-8") as file:
            file.write('{"v":1,"hosts":{"a":[1,0,0,0,0]}}')
        self.run_script("exit 4")
        self.assertEqual(json.loads(self.read("recap"))["hosts"], {})

    def test_a_run_that_fails_early_leaves_its_category_but_no_content(self):
        script = 'mkdir -p "%s/artifacts/x"; echo "$TEXT" > "%s/artifacts/x/stdout"; exit 4' % (self.directory, self.directory)
        cases = {
            "ERROR! the playbook: a.b.c could not be found": "the playbook does not exist in the execution environment",
            "ERROR! Failed to parse /runner/inventory/hosts.yaml with yaml plugin: secret": "the inventory cannot be read",
            "ERROR! We were unable to read either as JSON nor YAML\nSyntax Error while loading YAML.\nsecret": "the playbook is not valid",
            "ERROR! Specified hosts and/or --limit does not match any hosts": "no host of the inventory matches the limit",
            "ERROR! something else: secret": "Ansible ended before it could report on its hosts; the log of the Pod says why",
        }
        for text, expected in cases.items():
            with self.subTest(text):
                code, _ = self.run_script(script, TEXT=text)
                self.assertEqual(code, 4)
                self.assertEqual(json.loads(self.read("recap")), {"v": 1, "hosts": {}, "error": expected})

    def test_a_release_of_ansible_that_is_not_supported_is_named(self):
        check = load().check_version
        for version in ("2.14.0", "2.16.14", "2.19.11", "2.22.0b2", None, "unknown"):
            self.assertIsNone(check(version), version)
        for version in ("2.9.27", "2.13.13", "2.23.0rc1", "3.0.0"):
            self.assertRegex(check(version), r"^ansible-core %s of the execution environment is not supported, but 2.14 to 2.22\. .*image" % version)

    def test_a_release_of_ansible_that_is_not_supported_ends_the_run_before_it_begins(self):
        packages = os.path.join(self.directory, "packages")
        os.makedirs(os.path.join(packages, "ansible"))
        for name, text in (("__init__.py", ""), ("release.py", "__version__ = '2.9.27'")):
            with open(os.path.join(packages, "ansible", name), "w", encoding="utf-8") as file:
                file.write(text)
        code, output = self.run_script("echo ran", PYTHONPATH=packages)
        self.assertEqual(code, 4)
        self.assertIn("ansible-core 2.9.27 of the execution environment", json.loads(self.read("recap"))["error"])
        self.assertNotIn("ran", output)

    def test_syntax_errors_are_found_without_showing_content(self):
        for variable, expected in (("RUNNER_INVENTORY", "the inventory cannot be read"),
                                   ("RUNNER_EXTRA_VARS", "the extra variables are not valid")):
            with self.subTest(variable):
                code, output = self.run_script("echo ran", **{variable: "all: [secret"})
                self.assertEqual(code, 4)
                self.assertEqual(json.loads(self.read("recap"))["error"], expected)
                self.assertNotIn("secret", output)
                self.assertNotIn("ran", output)
                shutil.rmtree(self.directory)
                os.mkdir(self.directory)

    def test_tags_of_ansible_are_no_syntax_error(self):
        self.assertEqual(self.run_script("true", RUNNER_INVENTORY="a: !unsafe 'x'\nb: !vault |\n  x\n")[0], 0)

    def test_a_command_that_does_not_exist(self):
        process = subprocess.run([sys.executable, ENTRYPOINT, "/nonexistent"], stderr=subprocess.PIPE, check=False,
                                 env=dict(os.environ, EDPM_RUNNER_DIR=self.directory, EDPM_RECAP_PATH=self.recap))
        self.assertEqual(process.returncode, 127)
        self.assertIn("error", json.loads(self.read("recap")))

    def test_a_signal_reaches_the_command_and_leaves_no_recap(self):
        process = self.start('trap "exit 7" TERM; echo partial > "$EDPM_RECAP_PATH"; echo ready; while :; do sleep 0.1; done')
        self.assertEqual(process.stdout.readline(), "ready\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 7)
        self.assertEqual(self.read("recap"), "")

    def test_the_key_is_copied_so_that_ssh_accepts_it(self):
        entrypoint = load()
        entrypoint.TMP_DIR = self.directory
        mounted = os.path.join(self.directory, "mounted")
        with open(mounted, "w", encoding="utf-8", newline="") as file:
            file.write("-----BEGIN-----\r\nabc\r\n-----END-----")
        environ = {"ANSIBLE_PRIVATE_KEY_FILE": mounted}
        entrypoint.copy_key(environ)
        copy = environ["ANSIBLE_PRIVATE_KEY_FILE"]
        self.assertNotEqual(copy, mounted)
        self.assertEqual(os.stat(copy).st_mode & 0o777, 0o600)
        with open(copy, encoding="utf-8", newline="") as file:
            self.assertEqual(file.read(), "-----BEGIN-----\nabc\n-----END-----\n")

    def test_a_missing_key_is_left_to_ansible(self):
        entrypoint = load()
        environ = {"ANSIBLE_PRIVATE_KEY_FILE": "/nonexistent"}
        entrypoint.copy_key(environ)
        self.assertEqual(environ, {"ANSIBLE_PRIVATE_KEY_FILE": "/nonexistent"})

    JUMP = {"address": "bastion.example.com", "port": 2222, "user": "jump", "sshPrivateKeySecret": "jump", "hostKey": "ssh-ed25519 AAAA bastion"}

    def jump(self, **changes):
        """Returns what a run with a jump host has after it was prepared: its environment."""
        entrypoint = load()
        entrypoint.RUNNER_DIR, entrypoint.JUMP = self.directory, os.path.join(self.directory, ".jump")
        environ = {"EDPM_JUMP_HOST": json.dumps(dict(self.JUMP, **changes))}
        return entrypoint.prepare_jump(environ), environ

    def test_the_jump_host_has_a_configuration_a_key_and_a_known_host_of_its_own(self):
        os.mkdir(os.path.join(self.directory, "jump"))
        with open(os.path.join(self.directory, "jump", "ssh-privatekey"), "w", encoding="utf-8") as file:
            file.write("-----BEGIN-----\r\nabc")
        wrong, environ = self.jump()
        self.assertIsNone(wrong)
        self.assertEqual(environ["EDPM_RUNNER_JUMP_HOST"], "bastion.example.com")
        self.assertEqual(self.read(".jump", "known_hosts"), "jump-host ssh-ed25519 AAAA\n")
        self.assertEqual(self.read(".jump", "key"), "-----BEGIN-----\nabc\n")
        self.assertEqual(os.stat(os.path.join(self.directory, ".jump", "key")).st_mode & 0o777, 0o600)
        config = dict(line.split(" ", 1) for line in self.read(".jump", "config").splitlines())
        self.assertEqual([config[name] for name in ("HostName", "Port", "User", "StrictHostKeyChecking")], ["bastion.example.com", "2222", "jump", "yes"])

    def test_a_jump_host_that_would_say_more_to_ssh_than_one_word_ends_the_run(self):
        for changes in ({"address": "a\nProxyCommand id"}, {"address": "-oProxyCommand=id"}, {"address": ""}, {"user": "a b"}, {"user": "%h"}, {"user": 'a"b'},
                        {"port": "22 x"}, {"hostKey": "ssh-ed25519"}, {"hostKey": ""}, {"hostKey": 7}, {"address": None}):
            with self.subTest(changes):
                self.assertEqual(self.jump(**changes)[0], "the jump host is not valid: correct jumpHost")
                self.assertFalse(os.path.exists(os.path.join(self.directory, ".jump")))
        code, output = self.run_script("echo ran", EDPM_JUMP_HOST="{}")
        self.assertEqual((code, json.loads(self.read("recap"))["error"]), (4, "the jump host is not valid: correct jumpHost"))
        self.assertNotIn("ran", output.splitlines())

    def test_a_jump_host_that_never_lets_the_runner_in_does_not_hold_the_run(self):
        ssh = os.path.join(self.directory, "ssh")
        with open(ssh, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec sleep 600\n")
        os.chmod(ssh, 0o755)
        entrypoint, said = load(), []
        entrypoint.JUMP_SECONDS, entrypoint.log = 1, said.append
        entrypoint.open_jump({"EDPM_JUMP_HOST": "{}", "EDPM_RUNNER_JUMP_HOST": "bastion.example.com", "PATH": self.directory + os.pathsep + os.environ["PATH"]})
        self.assertEqual(said, ["the jump host bastion.example.com has not let the runner in after 1 s"])

    def test_without_a_jump_host_nothing_is_prepared(self):
        entrypoint = load()
        environ = {"EDPM_JUMP_HOST": ""}
        self.assertIsNone(entrypoint.prepare_jump(environ))
        entrypoint.configure(environ)
        self.assertNotIn("ProxyCommand", environ["ANSIBLE_SSH_ARGS"])
        self.assertNotIn("EDPM_RUNNER_JUMP_HOST", environ)

    def test_known_host_keys_are_copied_to_where_ssh_can_add_others(self):
        entrypoint = load()
        entrypoint.RUNNER_DIR = self.directory
        entrypoint.know_hosts()
        self.assertFalse(os.path.exists(os.path.join(self.directory, ".known_hosts")))
        os.mkdir(os.path.join(self.directory, "config"))
        with open(os.path.join(self.directory, "config", "known_hosts"), "w", encoding="utf-8") as file:
            file.write("10.0.0.1 ssh-ed25519 AAAA\n")
        entrypoint.know_hosts()
        self.assertEqual(self.read(".known_hosts"), "10.0.0.1 ssh-ed25519 AAAA\n")

    def test_the_callback_is_always_enabled(self):
        _, output = self.run_script('echo "$ANSIBLE_CALLBACKS_ENABLED"', ANSIBLE_CALLBACKS_ENABLED="timer")
        self.assertEqual(output, "timer,edpm.operators.recap,edpm.operators.limits\n")

    def test_a_task_always_has_a_time_limit(self):
        for wanted, expected in (("", "600"), ("30", "30"), ("0", "600"), ("-1", "600"), ("none", "600"), ("1e3", "600")):
            with self.subTest(wanted):
                _, output = self.run_script('echo "$ANSIBLE_TASK_TIMEOUT"', ANSIBLE_TASK_TIMEOUT=wanted)
                self.assertEqual(output.splitlines()[-1], expected)
                self.assertEqual(len(output.splitlines()), 2 if wanted and expected != wanted else 1, "it is changed in silence")

    def test_configuring_twice_changes_nothing(self):
        once = {"ANSIBLE_SSH_ARGS": "-o ControlPersist=80s", "ANSIBLE_CALLBACK_WHITELIST": "x"}
        load().configure(once)
        for environ in (once, dict(once, EDPM_JUMP_HOST="{}")):
            load().configure(environ)
            twice = dict(environ)
            load().configure(twice)
            self.assertEqual(environ, twice)

    def test_hostile_output_costs_no_more_than_other_output(self):
        category = load().category
        for text in ("inventory ", "ERROR! ", "ERROR!\n", "parse ", "Unable to read ", "extravars"):
            started = time.process_time()
            category(text * (20000 // len(text)))
            self.assertLess(time.process_time() - started, 2, text)


if __name__ == "__main__":
    unittest.main()
