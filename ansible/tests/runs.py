"""Runs playbooks with the real Ansible, through the entry point and the callbacks that are shipped."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

import yaml

COLLECTION = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENTRYPOINT = os.path.join(COLLECTION, "execution-environment", "entrypoint.py")
MISSING = shutil.which("ansible-playbook") is None
# For tests that are left out where every change is tested, and run by make e2e-all.
LONG = os.environ.get("E2E_LONG") == "1"
long = unittest.skipUnless(LONG, "E2E_LONG=1 is not set")


def needs_ansible(case):
    """Skips a test where Ansible is missing; in CI the test fails there."""
    if MISSING and not os.environ.get("CI"):
        return unittest.skip("ansible-core is not installed")(case)
    return case


def vars_of(role, *names):
    """Returns what a role sets, as a task needs it that is run without its role."""
    with open(os.path.join(COLLECTION, "roles", role, "vars", "main.yml"), encoding="utf-8") as file:
        every = yaml.safe_load(file)
    return {name: every[name] for name in names}


def unpacked(recap):
    """Returns a recap with its hosts in the clear."""
    if "z" in recap:
        recap = dict(recap, hosts=json.loads(zlib.decompress(base64.b64decode(recap["z"]))))
    return recap


def host_of(recap, name):
    """Returns (steps done, failed, unreachable, message) of a host in a recap; steps as the operator reads them."""
    fields = recap["hosts"][name]
    rest = fields[5:] + ["", "", None][len(fields) - 5:]
    steps = rest[2] if rest[2] is not None else recap["steps"] if fields[2:4] == [0, 0] else 0
    return steps, fields[2], fields[3], rest[0]


def progress_of(recap, name):
    """Returns how many steps a host in a recap has done, with the number that it has begun if that is not the next."""
    begun = recap["hosts"][name][9:10]
    done = host_of(recap, name)[0]
    return (done, begun[0]) if begun else done


class Run:
    """One run: its exit code, what it printed and its recap."""

    def __init__(self, playbook, hosts=("h1", "h2", "h3"), arguments=(), environment=None, inventory=None, timeout=300, config=None,
                 playbooks=None, runner=False, prepare=None, files=None):
        self.directory = tempfile.mkdtemp(prefix="edpm-run-")
        try:
            if prepare:
                prepare(self)
            for name, text in (files or {}).items():
                self.write(name, text)
            self._run(playbook, hosts, arguments, environment or {}, inventory, timeout, config, playbooks, runner)
            self.after()
        finally:
            # What a hostile host left running: Ansible ends its own worker only.
            subprocess.run(["pkill", "-KILL", "-f", self.directory + "/"], check=False)
            shutil.rmtree(self.directory, True)

    def after(self):
        """Is called at the end, while the files of the run are still there."""

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        os.chmod(self.path(name), mode)
        return self.path(name)

    def _run(self, playbook, hosts, arguments, environment, inventory, timeout, config, playbooks, runner):
        tree = self.path("collections", "ansible_collections", "edpm")
        os.makedirs(tree)
        os.symlink(COLLECTION, os.path.join(tree, "operators"))
        files = [self.write("project/playbook%d.yaml" % number, text)
                 for number, text in enumerate(playbooks if playbooks is not None else [playbook])]
        inventory = inventory(self) if callable(inventory) else inventory or {"all": {"hosts": {name: {} for name in hosts}, "vars": {
            "ansible_connection": "local", "ansible_python_interpreter": sys.executable}}}
        self.write("inventory/hosts.json", inventory)
        self.write("tmp/x", "")
        config = self.path(config) if config else os.path.join(COLLECTION, "execution-environment", "ansible.cfg")
        recap = self.write("recap", "")
        if runner:
            command = ["ansible-runner", "run", self.directory, "-p", "playbook0.yaml", "-i", "r1"]
        else:
            command = ["ansible-playbook", "-i", self.path("inventory"), *files, *arguments]
        environ = dict(os.environ, EDPM_RUNNER_DIR=self.directory, EDPM_RECAP_PATH=recap, EDPM_TMP_DIR=self.path("tmp"),
                       ANSIBLE_COLLECTIONS_PATH=self.path("collections"), ANSIBLE_CONFIG=config, ANSIBLE_LOCAL_TEMP=self.path("local"),
                       ANSIBLE_REMOTE_TEMP=self.path("remote"), ANSIBLE_HOME=self.path("home"))
        for name in ("CI", "ANSIBLE_TASK_TIMEOUT"):
            environ.pop(name, None)
        environ.update(environment)
        ran = subprocess.run([sys.executable, ENTRYPOINT, *command], env=environ, check=False, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        self.code, self.output = ran.returncode, ran.stdout.decode("utf-8", "replace")
        with open(recap, encoding="utf-8") as file:
            self.raw = file.read()
        self.recap = unpacked(json.loads(self.raw)) if self.raw else {}

    def done(self):
        """Returns the hosts that have done the step, by the rule of the operator."""
        return {name for name in self.recap.get("hosts", {}) if host_of(self.recap, name)[:3] == (1, 0, 0)}
