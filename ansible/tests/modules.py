"""Runs modules of the collection as a host does: as a program, with commands of the test in place of those of the host."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import runs

COMMAND = '#!/bin/sh\necho "%(name)s $*" >> %(calls)s\n%(script)s\n'
# Notes what a module has the disk store, and the names that it gives.
NOTES_WRITES = """
import os

def noted(name, function):
    def noting(*arguments):
        path = os.fsdecode(os.readlink("/proc/self/fd/%%d" %% arguments[0]) if name == "fsync" else arguments[-1])
        with open(%r, "a") as file:
            file.write("%%s %%s\\n" %% (name, "temporary" if os.path.basename(path).startswith("tmp") else path))
        return function(*arguments)
    return noting

for name in ("fsync", "rename"):
    setattr(os, name, noted(name, getattr(os, name)))
"""


class ModuleTest(unittest.TestCase):
    """Tests of one module, the name of which is MODULE."""

    maxDiff = None
    MODULE = ""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="edpm-module-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        tree = self.path("collections", "ansible_collections", "edpm")
        os.makedirs(tree)
        os.symlink(runs.COLLECTION, os.path.join(tree, "operators"))
        os.makedirs(self.path("bin"))
        self.write("bin/sync", "#!/bin/sh\n", 0o755)  # that of this machine takes long

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def command(self, name, script):
        """Makes a command of the host. What it is called with is in calls()."""
        return self.write("bin/" + name, COMMAND % {"name": name, "calls": self.path("calls"), "script": script}, 0o755)

    def calls(self, *words):
        """Returns the calls of commands since the last question that begin with one of the words."""
        if not os.path.exists(self.path("calls")):
            return []
        lines = self.read("calls").splitlines()
        os.unlink(self.path("calls"))
        return [line for line in lines if not words or line.startswith(words)]

    def note_writes(self):
        self.write("collections/sitecustomize.py", NOTES_WRITES % self.path("writes"))

    def writes(self, *names):
        """Returns in their order what was stored, and renamed, of files with these names and temporary ones, since the last question."""
        if not os.path.exists(self.path("writes")):
            return []
        lines = [line.split(" ", 1) for line in self.read("writes").splitlines()]
        os.unlink(self.path("writes"))
        return ["%s %s" % (what, os.path.basename(path)) for what, path in lines if os.path.basename(path) in names + ("temporary",)]

    def module(self, check=False, **arguments):
        """Returns what the module answers."""
        arguments.update(_ansible_check_mode=check, _ansible_diff=True, _ansible_remote_tmp=self.directory)
        environ = dict(os.environ, PATH=self.path("bin") + os.pathsep + os.environ["PATH"], PYTHONPATH=self.path("collections"), PYTHONDONTWRITEBYTECODE="1")
        ran = subprocess.run([sys.executable, os.path.join(runs.COLLECTION, "plugins", "modules", self.MODULE + ".py")], env=environ, check=False,
                             input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertTrue(ran.stdout.lstrip().startswith("{"), ran.stdout + ran.stderr)
        return json.loads(ran.stdout)

    def done(self, **arguments):
        """Returns what the module answers, which has to succeed."""
        answer = self.module(**arguments)
        self.assertFalse(answer.get("failed"), answer)
        return answer

    def failure(self, **arguments):
        """Returns why the module fails."""
        answer = self.module(**arguments)
        self.assertTrue(answer.get("failed"), answer)
        return answer["msg"]
