#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that applies files by a command, once for each content."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: applied
short_description: run a command once for each content of files
description:
  - Runs a command, such as the reload of a service, if files differ from those that it was last run for.
  - What it was run for is recorded on the host, after the command succeeded. A handler is lost when a run ends between
    the change of a file and the handler, and the next run, which changes nothing, does not notify it.
author:
  - The edpm-operators authors
options:
  name:
    description: Name of the record, one for each command.
    type: str
    required: true
  files:
    description: Files that decide. One that does not exist counts as well.
    type: list
    elements: path
    required: true
  command:
    description:
      - Command with its arguments.
      - Exit code 78 (EX_CONFIG of sysexits.h) says that it fails each time for these files. Then the task returns C(edpm_refused), and the
        run is not repeated with the same inputs.
    type: list
    elements: str
    required: true
  in_effect:
    description: Command that fails if what was applied is no longer in effect, so that it is applied again.
    type: list
    elements: str
  directory:
    description: Directory of the records.
    type: path
    default: /var/lib/edpm/applied
attributes:
  check_mode:
    description: Reports whether the command would be run for the files as they are.
    support: full
"""

EXAMPLES = """
- name: Reload sshd
  edpm.operators.applied:
    name: sshd
    files: [/etc/ssh/sshd_config]
    command: [systemctl, try-reload-or-restart, sshd]
"""

RETURN = """
differs:
  description: Files that differ from those that were applied last.
  type: list
  elements: str
  returned: always
edpm_refused:
  description: Whether the command fails each time for these files.
  type: bool
  returned: when the command failed
"""

import hashlib
import json
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

EX_CONFIG = 78


def checksum(path):
    """Returns the SHA-256 of a file, and nothing for one that does not exist."""
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def recorded(path):
    """Returns the checksums of the files that were applied; a damaged record counts as none."""
    try:
        with open(path) as stream:
            content = json.load(stream)
    except (IOError, OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def record(module, path, checksums):
    """Replaces the record in one step, readable for root only."""
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), 0o755)
    descriptor, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(checksums, stream, indent=1, sort_keys=True)
    module.atomic_move(temporary, path)


def differing(module, before, now):
    """Returns the names of what has to be applied: files, or all of them if they are no longer in effect."""
    if module.params["in_effect"] and module.run_command(module.params["in_effect"])[0] != 0:
        return sorted(now)
    return sorted(path for path in set(before) | set(now) if before.get(path) != now.get(path))


def apply(module):
    """Runs the command, and fails with what it printed."""
    code, out, err = module.run_command(module.params["command"])
    if code != 0:
        last = (err.strip() or out.strip()).splitlines()[-1:]
        program = " ".join([os.path.basename(module.params["command"][0])] + module.params["command"][1:2])
        module.fail_json(msg="%s failed with exit code %d: %s" % (program, code, "".join(last)),
                         rc=code, stdout=out, stderr=err, edpm_refused=code == EX_CONFIG)


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        name=dict(type="str", required=True),
        files=dict(type="list", elements="path", required=True),
        command=dict(type="list", elements="str", required=True),
        in_effect=dict(type="list", elements="str"),
        directory=dict(type="path", default="/var/lib/edpm/applied"),
    ))
    path = os.path.join(module.params["directory"], module.params["name"])
    # Read before the command: a file that changes meanwhile is applied again.
    now = dict((name, checksum(name)) for name in module.params["files"])
    differs = differing(module, recorded(path), now)
    if differs and not module.check_mode:
        apply(module)
        record(module, path, now)
    module.exit_json(changed=bool(differs), differs=differs)


if __name__ == "__main__":
    main()
