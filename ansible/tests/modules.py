"""Runs modules of the collection as a host does: as a program, with commands of the test in place of those of the host."""

import json
import os
import runpy
import shutil
import sys
import tempfile
import traceback
import unittest

import runs

try:  # once, and not again in each process of a module: that takes longer than the module
    import ansible.module_utils.basic  # noqa: F401 pylint: disable=unused-import
except ImportError:
    pass

COMMAND = '#!/bin/sh\necho "%(name)s $*" >> %(calls)s\n%(script)s\n'


def run_program(path, environ, text):
    """Runs a program in Python as a process of its own with text as its input, and returns what it prints and its errors."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        given.write(text)
        given.seek(0)
        pid = os.fork()
        if pid == 0:
            try:
                for number, file in enumerate((given, printed, errors)):
                    os.dup2(file.fileno(), number)
                sys.stdin, sys.stdout, sys.stderr = open(0, closefd=False), open(1, "w", closefd=False), open(2, "w", closefd=False)
                os.environ.clear()
                os.environ.update(environ)
                sys.path[:0] = environ["PYTHONPATH"].split(os.pathsep)
                sys.argv = [path]
                runpy.run_path(path, run_name="__main__")
            except SystemExit:
                pass
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        os.waitpid(pid, 0)
        printed.seek(0)
        errors.seek(0)
        return printed.read(), errors.read()


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

    def module(self, check=False, **arguments):
        """Returns what the module answers."""
        arguments.update(_ansible_check_mode=check, _ansible_diff=True, _ansible_remote_tmp=self.directory)
        environ = dict(os.environ, PATH=self.path("bin") + os.pathsep + os.environ["PATH"], PYTHONPATH=self.path("collections"), PYTHONDONTWRITEBYTECODE="1")
        path = os.path.join(runs.COLLECTION, "plugins", "modules", self.MODULE + ".py")
        printed, errors = run_program(path, environ, json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        self.assertTrue(printed.lstrip().startswith("{"), printed + errors)
        return json.loads(printed)

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
