#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that finds the packages that are not installed."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: missing_packages
short_description: find packages that are not installed
description:
  - Asks the database of packages for some names, which takes less time than to list all packages.
author:
  - The edpm-operators authors
options:
  names:
    description: Names of packages.
    type: list
    elements: str
    required: true
  database:
    description: Database that knows them.
    type: str
    choices: [dpkg, rpm]
    required: true
attributes:
  check_mode:
    description: Changes nothing anyway.
    support: full
"""

EXAMPLES = """
- name: Find what is missing
  edpm.operators.missing_packages:
    names: [podman, chrony]
    database: dpkg
  register: packages
"""

RETURN = """
missing:
  description: Names that are not those of installed packages, in the order given.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

# Both print a line for each package that they know, fail if there is one that they do not, and take the rest as names.
COMMANDS = {
    "dpkg": ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package}\\n", "--"],
    "rpm": ["rpm", "--query", "--queryformat", "installed %{NAME}\\n", "--"],
}


def installed(output):
    """Returns the names of installed packages in the output of a query."""
    return set(line.split(" ", 1)[1] for line in output.splitlines() if line.startswith("installed "))


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        names=dict(type="list", elements="str", required=True),
        database=dict(type="str", choices=["dpkg", "rpm"], required=True),
    ))
    names = module.params["names"]
    command = COMMANDS[module.params["database"]]
    module.get_bin_path(command[0], required=True)
    present = installed(module.run_command(command + names)[1]) if names else set()
    module.exit_json(changed=False, missing=[name for name in names if name not in present])


if __name__ == "__main__":
    main()
