#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that brings directories and files of a service to their state at once."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: config_files
short_description: write the directories and files of a service at once
description:
  - Makes directories, writes files, edits lines of files that others own, and removes what is not wanted, in this order, in one task.
  - Files are replaced in one step, and only if they differ. Those in I(edits) survive a loss of power in it; the end of a step stores the others.
  - Names are relative to I(directory). Those of I(templates) and I(texts) can be paths, too.
author:
  - The edpm-operators authors
options:
  directory:
    description: Directory of the files.
    type: path
  owner:
    description: Owner of the files.
    type: str
    default: root
  group:
    description: Group of the files.
    type: str
    default: root
  mode:
    description: Mode of the files.
    type: raw
    default: "0644"
  directories:
    description: Directories. Owner, group and mode of those that exist are left as they are if they are not given.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path of the directory.
        type: path
        required: true
      owner:
        description: Owner.
        type: str
      group:
        description: Group.
        type: str
      mode:
        description: Mode.
        type: raw
  copies:
    description: Names of files in I(directory), and the files on the runner that they are copies of. With a list, one has the content of all. They are never shown in a difference.
    type: dict
    default: {}
  templates:
    description:
      - Templates on the runner, and the file or the list of files that are made of each. A file has a C(name), and may have C(vars), which
        are values and no templates, C(mode), C(validate), a command with C(%s) in place of the new file, and C(secret), so that it is not
        shown in a difference.
    type: dict
    default: {}
  texts:
    description: Files with a text. Each has a C(name) and a C(text), and may have what files in I(templates) may have.
    type: list
    elements: dict
    default: []
  edits:
    description: Files that others own, of which lines are changed. Without changes such a file need not exist.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path of the file.
        type: path
        required: true
      create:
        description: Make a file that does not exist, with I(owner), I(group) and I(mode) of the task.
        type: bool
        default: false
      validate:
        description: Command that checks the new file, with C(%s) in place of its path.
        type: str
      steps:
        description:
          - What to do, in this order.
          - C(line) is added if the file does not have it, as its first line with C(first). It replaces the last line that C(regexp) matches.
          - C(absent) is a line to remove.
          - C(replace) takes the place of all matches of C(regexp) in the file.
        type: list
        elements: dict
        required: true
  absent:
    description: Paths to remove, with all that is in them.
    type: list
    elements: path
    default: []
  purge:
    description: Remove everything in I(directory), and in directories there that it writes files to, that the task does not write, except names in I(keep).
    type: bool
    default: false
  keep:
    description: Names in I(directory) that are left alone.
    type: list
    elements: str
    default: []
  validate:
    description:
      - Command that checks the new files of I(directory) together, with C(%(copies)s) in place of a directory with copies of them, which
        only root can read. It is run before anything is changed, and only if one of them differs from what is there. It must not change anything,
        as check mode runs it, too.
      - If it fails, so does the task, with what it printed on standard error. What it prints on standard output otherwise are warnings.
      - Exit code 78 (EX_CONFIG of sysexits.h) says that these files are refused each time. Then the task returns C(edpm_refused), and the
        operators do not run the host again before its inputs change.
    type: list
    elements: str
attributes:
  check_mode:
    description: Reports what would be changed.
    support: full
  diff_mode:
    description: Shows the content of files, except copies and those that are secret, which are only named.
    support: full
"""

EXAMPLES = """
- name: Configure an agent
  edpm.operators.config_files:
    directory: /etc/agent
    mode: "0640"
    directories:
      - {path: /etc/agent, mode: "0750"}
    copies:
      key.pem: /runner/config/key
    templates:
      agent.conf.j2: {name: agent.conf, vars: {port: 4711}, validate: agent --check %s}
    purge: true
"""

RETURN = """
edpm_refused:
  description: Whether the command in I(validate) refuses these files each time.
  type: bool
  returned: when it fails
changes:
  description: Paths that were changed, and how.
  type: list
  elements: str
  returned: always
"""

import base64
import hashlib
import os
import re
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils.files import replace
from ansible_collections.edpm.operators.plugins.module_utils.mask import mask

# Exit code of a command that checks files: it refuses these each time. os.EX_CONFIG is not everywhere.
EX_CONFIG = 78
# In the command of a task that checks files.
COPIES = "%(copies)s"


# What begins an expression, a statement or a comment of a template.
MARKS = (b"{{", b"{%", b"{#")


def is_unrendered(content, template):
    """Reports whether content is the template with this digest itself, although it has something to render."""
    return bool(template) and any(mark in content for mark in MARKS) and hashlib.sha256(content).hexdigest() == template


def read(path):
    """Returns the content of a file, and None for one that does not exist."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as stream:
        return stream.read()


def make(path):
    """Makes a directory and those above it, which others may read."""
    before = os.umask(0o022)
    os.makedirs(path)
    os.umask(before)


class Edit(object):
    """The lines of a file that others own."""

    def __init__(self, text):
        self.text = text

    def ensure(self, step):
        """Puts a line in its place."""
        lines, line = self.text.split("\n"), step["line"]
        if lines[-1] == "":
            lines.pop()
        pattern = re.compile(step["regexp"] if step.get("regexp") else "^%s$" % re.escape(line))
        found = [number for number, each in enumerate(lines) if pattern.search(each)]
        if found and lines[found[-1]] == line:
            return
        if found:
            lines[found[-1]] = line
        else:
            lines.insert(0 if step.get("first") else len(lines), line)
        self.text = "\n".join(lines) + "\n"

    def leave_out(self, line):
        """Removes all lines that are the same."""
        self.text = "\n".join(each for each in self.text.split("\n") if each != line)

    def apply(self, step):
        if "line" in step:
            self.ensure(step)
        elif "absent" in step:
            self.leave_out(step["absent"])
        else:
            self.text = re.compile(step["regexp"], re.MULTILINE).sub(step["replace"], self.text)


class Tree(object):
    """What is done to files, and what that changed."""

    def __init__(self, module):
        self.module, self.changes, self.diff = module, [], []

    def note(self, path, what, before="", after=""):
        self.changes.append("%s: %s" % (path, what))
        if before != after:
            self.diff.append({"before_header": path, "after_header": path, "before": before, "after": after})
        else:
            self.diff.append({"prepared": "%s: %s\n" % (path, what)})

    def attributes(self, path, values):
        """Sets owner, group and mode, and reports whether that changes them."""
        values = dict((key, value) for key, value in values.items() if value is not None)
        if not os.path.exists(path):
            return False  # in check mode
        return self.module.set_fs_attributes_if_different(self.module.load_file_common_arguments(dict(values, path=path)), False)

    def directory(self, entry):
        path, made = entry["path"], not os.path.isdir(entry["path"])
        if made and os.path.lexists(path):
            self.module.fail_json(msg="%s is not a directory. Move it away." % path)
        if made and not self.module.check_mode:
            make(path)
        changed = self.attributes(path, dict(entry, mode=entry["mode"] or ("0755" if made else None)))
        if made or changed:
            self.note(path, "made" if made else "owner, group or mode")

    def file(self, path, content, values, secret=False, validate=None, stored=False):
        """Writes a file if it differs. If stored, the file is on the disk afterwards."""
        before = read(path)
        if before != content:
            if not self.module.check_mode:
                self.replace(path, content, validate, stored)
            self.attributes(path, values)
            self.note(path, "content" if before is not None else "made",
                      *([] if secret else [text.decode("utf-8", "replace") for text in (before or b"", content)]))
        elif self.attributes(path, values):
            self.note(path, "owner, group or mode")

    def replace(self, path, content, validate, stored):
        descriptor, temporary = tempfile.mkstemp(dir=self.module.tmpdir)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        if validate:
            self.validate(path, validate, temporary)
        if stored:
            replace(self.module, temporary, path)
        else:
            self.module.atomic_move(temporary, path)

    def validate(self, path, command, temporary):
        if "%s" not in command:
            self.module.fail_json(msg="The command that validates %s must have %%s: %s" % (path, command))
        code, out, err = self.module.run_command(command % temporary)
        if code != 0:
            self.module.fail_json(msg="%s is not valid: %s" % (path, (err or out).strip()), rc=code)

    def edit(self, entry):
        content = read(entry["path"])
        if content is None and not entry["create"]:
            if all("absent" in step for step in entry["steps"]):
                return
            self.module.fail_json(msg="%s does not exist, but lines in it have to be changed. Install the package that it belongs to." % entry["path"])
        edit = Edit((content or b"").decode("utf-8", "surrogateescape"))
        for step in entry["steps"]:
            edit.apply(step)
        values = dict((key, self.module.params[key]) for key in ("owner", "group", "mode")) if entry["create"] else {}
        self.file(entry["path"], edit.text.encode("utf-8", "surrogateescape"), values, validate=entry["validate"], stored=True)

    def remove(self, path):
        if not os.path.lexists(path):
            return
        self.note(path, "removed")
        if self.module.check_mode:
            return
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def check(self, directory, files):
        """Has the new files of a directory checked together by the command of the task."""
        copies = tempfile.mkdtemp(dir=self.module.tmpdir)
        for path, content in files.items():
            copy = os.path.join(copies, os.path.relpath(path, directory))
            if not os.path.isdir(os.path.dirname(copy)):
                os.makedirs(os.path.dirname(copy))
            with open(copy, "wb") as stream:
                stream.write(content)
        code, out, err = self.module.run_command([word.replace(COPIES, copies) for word in self.module.params["validate"]])
        shutil.rmtree(copies)
        lines = [mask(line) for line in ((err or out) if code else out).splitlines()]
        if code != 0:
            self.module.fail_json(msg="Refused, nothing was changed: %s" % " | ".join(lines), rc=code, edpm_refused=code == EX_CONFIG)
        for line in lines:
            self.module.warn(line)


def directories_of(names):
    """Returns the directories that names are in, and those above them; the directory itself is the empty name."""
    found = set()
    for name in names:
        parts = name.split("/")[:-1]
        found |= set("/".join(parts[:length]) for length in range(len(parts) + 1))
    return found


def unwanted(options):
    """Returns what has to be removed of the directory, and of those in it that files are written to, by names in the directory."""
    top = options["directory"]
    if not options["purge"]:
        return set()
    paths = [os.path.relpath(entry["path"], top) for entry in options["files"]]
    wanted = set(path for path in paths if path.split("/")[0] not in [os.pardir] + options["keep"])
    directories = directories_of(wanted) | set([""])
    found = set()
    for each in directories:
        path = os.path.join(top, each)
        if os.path.isdir(path) and not (each and os.path.islink(path)):
            found |= set(os.path.join(each, name) for name in os.listdir(path))
    return found - wanted - directories - set(options["keep"])


def check(tree, contents):
    """Checks the files of the directory before any of them is written, if they are not those that it has."""
    options = tree.module.params
    directory = os.path.normpath(options["directory"] or "/")
    files = dict((path, contents[path]) for path in contents if path.startswith(directory + "/"))
    if options["validate"] and (unwanted(options) or any(read(path) != content for path, content in files.items())):
        tree.check(directory, files)


def bring(module):
    """Does everything in its order, and returns what it changed."""
    tree, options = Tree(module), module.params
    contents = dict((path, base64.b64decode(content)) for path, content in options["contents"].items())
    for entry in options["files"]:
        if is_unrendered(contents[entry["path"]], entry["template"]):
            module.fail_json(msg="Refused, nothing was changed: %s would be the template itself, which this ansible-core has not rendered. "
                                 "Use an execution environment with a supported version." % entry["path"])
    check(tree, contents)
    for entry in options["directories"]:
        tree.directory(entry)
    for entry in options["files"]:
        values = {"owner": options["owner"], "group": options["group"], "mode": entry["mode"] or options["mode"]}
        tree.file(entry["path"], contents[entry["path"]], values, entry["secret"], entry["validate"])
    for entry in options["edits"]:
        tree.edit(entry)
    for path in options["absent"]:
        tree.remove(path)
    for name in sorted(unwanted(options)):
        tree.remove(os.path.join(options["directory"], name))
    return tree


def main():
    attributes = dict(owner=dict(type="str"), group=dict(type="str"), mode=dict(type="raw"))
    module = AnsibleModule(supports_check_mode=True, required_if=[("purge", True, ["directory"])], required_by={"validate": ["directory"]}, argument_spec=dict(
        directory=dict(type="path"), owner=dict(type="str", default="root"), group=dict(type="str", default="root"), mode=dict(type="raw", default="0644"),
        directories=dict(type="list", elements="dict", default=[], options=dict(attributes, path=dict(type="path", required=True))),
        # The action makes these of copies, templates and texts. Encoded, a secret is in no other text that the module returns or logs.
        files=dict(type="list", elements="dict", default=[], options=dict(
            path=dict(type="path", required=True), mode=dict(type="raw"), validate=dict(type="str"), secret=dict(type="bool", default=False),
            template=dict(type="str"))),
        contents=dict(type="dict", default={}, no_log=True),
        edits=dict(type="list", elements="dict", default=[], options=dict(
            path=dict(type="path", required=True), create=dict(type="bool", default=False), validate=dict(type="str"),
            steps=dict(type="list", elements="dict", required=True))),
        absent=dict(type="list", elements="path", default=[]), purge=dict(type="bool", default=False), keep=dict(type="list", elements="str", default=[]),
        validate=dict(type="list", elements="str"),
    ))
    # A new file must not be readable for others until it has its owner and mode.
    os.umask(0o077)
    tree = bring(module)
    module.exit_json(changed=bool(tree.changes), changes=tree.changes, diff=tree.diff if module._diff else [])


if __name__ == "__main__":
    main()
