#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that starts or stops many units of systemd at once."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: units
short_description: start, stop or remove units of systemd
description:
  - Brings many units to one state, and asks systemd once for all of them.
  - Units are given by their names, or by patterns of the names of their files. A pattern that matches nothing is no error.
author:
  - The edpm-operators authors
options:
  state:
    description:
      - C(started) starts and enables units, C(enabled) only enables them. systemd reads units again that differ from what it knows.
      - C(stopped) stops and disables units, in the order of their names and patterns. Those of one pattern are sorted, the last one
        first, so that a socket is stopped before the service that it starts.
      - C(absent) removes their files, too, and has systemd read its units again.
    type: str
    choices: [started, enabled, stopped, absent]
    required: true
  names:
    description: Names of units.
    type: list
    elements: str
    default: []
  patterns:
    description: Shell patterns of the names of files of units.
    type: list
    elements: str
    default: []
  directories:
    description: Directories that patterns are looked for in.
    type: list
    elements: path
    default: [/etc/systemd/system]
  except:
    description: Names of files that patterns do not match.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Reports the units that would be changed.
    support: full
"""

EXAMPLES = """
- name: Start sshd and chronyd
  edpm.operators.units:
    state: started
    names: [sshd, chronyd]

- name: Remove our units
  edpm.operators.units:
    state: absent
    patterns: ["edpm_*.service"]
"""

RETURN = """
units:
  description: Names of all units that were given, and of those that patterns matched.
  type: list
  elements: str
  returned: always
changes:
  description: What was done to units, such as C(start ssh).
  type: list
  elements: str
  returned: always
"""

import fnmatch
import os

from ansible.module_utils.basic import AnsibleModule

RUNS = ("active", "activating", "reloading")
# These start at boot, or whenever something else wants them.
ENABLED = ("enabled", "static", "indirect", "alias", "transient", "generated")


def systemctl(module, *arguments):
    """Runs systemctl, and fails with what it printed."""
    code, out, err = module.run_command(["systemctl"] + list(arguments))
    if code != 0:
        module.fail_json(msg="systemctl %s failed: %s" % (" ".join(arguments), " ".join((err or out).split())), rc=code)
    return out


def blocks(output):
    """Returns what systemctl show says of several units, one dictionary for each."""
    return [dict(line.partition("=")[::2] for line in block.splitlines()) for block in output.strip().split("\n\n") if block]


def matching(module):
    """Returns the files of units that the patterns match, in the order of the patterns."""
    found = []
    for pattern in module.params["patterns"]:
        for directory in module.params["directories"]:
            names = os.listdir(directory) if os.path.isdir(directory) else []
            found += [os.path.join(directory, name) for name in sorted(fnmatch.filter(names, pattern), reverse=True)
                      if name not in module.params["except"]]
    return found


def steps(state, name, status):
    """Returns what systemctl has to do to a unit."""
    runs = status.get("ActiveState") in RUNS
    enabled = status.get("UnitFileState") in ENABLED
    if state in ("started", "enabled"):
        return ([] if enabled else [["enable", name]]) + ([["start", name]] if state == "started" and not runs else [])
    enabled = status.get("UnitFileState", "").startswith("enabled")
    # One that failed stays in the list of units otherwise, without a file.
    failed = [["reset-failed", name]] if state == "absent" and status.get("ActiveState") == "failed" else []
    return ([["stop", name]] if runs or status.get("ActiveState") == "deactivating" else []) + ([["disable", name]] if enabled else []) + failed


def show(module, names):
    """Returns what systemd knows of units, in their order."""
    return blocks(systemctl(module, "show", "--property=LoadState,ActiveState,UnitFileState,NeedDaemonReload", "--", *names)) if names else []


def known(module, names):
    """Returns what systemd knows of units when it has read them again, if need be."""
    statuses = show(module, names)
    if module.params["state"] in ("started", "enabled") and not module.check_mode and any(
            status.get("NeedDaemonReload") == "yes" or status.get("LoadState") == "not-found" for status in statuses):
        systemctl(module, "daemon-reload")
        statuses = show(module, names)
    return statuses


def change(module, names):
    """Starts or stops units, and returns what was done."""
    changes = []
    for name, status in zip(names, known(module, names)):
        if module.params["state"] == "started" and status.get("LoadState") == "not-found":
            module.fail_json(msg="The host has no unit %s. Install its package, or remove the unit from the list." % name)
        for step in steps(module.params["state"], name, status):
            changes.append(" ".join(step))
            if not module.check_mode:
                systemctl(module, *step)
    return changes


def remove(module, files):
    """Removes the files of units, and returns what was done."""
    if not module.check_mode:
        for path in files:
            os.unlink(path)
        # Asked for, as a run that removed files may have ended before systemd read its units again.
        if "=yes" in systemctl(module, "show", "--property=NeedDaemonReload", "--", *module.params["patterns"]):
            systemctl(module, "daemon-reload")
    return ["remove " + path for path in files]


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec={
        "state": dict(type="str", choices=["started", "enabled", "stopped", "absent"], required=True),
        "names": dict(type="list", elements="str", default=[]),
        "patterns": dict(type="list", elements="str", default=[]),
        "directories": dict(type="list", elements="path", default=["/etc/systemd/system"]),
        "except": dict(type="list", elements="str", default=[]),
    })
    files = matching(module)
    names = list(module.params["names"])
    for name in map(os.path.basename, files):
        if name not in names:
            names.append(name)
    changes = change(module, names)
    if module.params["state"] == "absent" and module.params["patterns"]:
        changes += remove(module, files)
    module.exit_json(changed=bool(changes), units=names, changes=changes, diff={"prepared": "".join(line + "\n" for line in changes)})


if __name__ == "__main__":
    main()
