#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that names a host for the storage that exports volumes to it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: storage_names
short_description: name a host for the storage that exports volumes to it
description:
  - Gives a host a name as initiator of iSCSI and one as host of NVMe over fabrics, if it has none.
  - A name that the host has is never changed, as volumes are exported to it. If another one is asked for, the module fails.
author:
  - The edpm-operators authors
options:
  iscsi:
    description: Name the initiator.
    type: bool
    default: true
  initiator_name:
    description: Name of the initiator. Empty for that of the host, or a new one.
    type: str
    default: ""
  nvme:
    description: Name the host of NVMe.
    type: bool
    default: true
  host_nqn:
    description: Name of the host of NVMe. Empty for that of the host, or a new one.
    type: str
    default: ""
  iscsi_directory:
    description: Directory of the configuration of iSCSI.
    type: path
    default: /etc/iscsi
  nvme_directory:
    description: Directory of the configuration of NVMe.
    type: path
    default: /etc/nvme
attributes:
  check_mode:
    description: Reports which names would be made.
    support: full
"""

EXAMPLES = """
- name: Name the host
  edpm.operators.storage_names:
    initiator_name: iqn.2026-11.com.example:compute-0
"""

RETURN = """
changes:
  description: Files that were written.
  type: list
  elements: str
  returned: always
"""

import os
import re
import uuid

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils.files import read, write

# As RFC 3720 (3.2.6.3) and the NVMe base specification (qualified names) have them.
INITIATOR = re.compile(r"(iqn\.\d{4}-\d\d\.[a-z0-9][a-z0-9.-]*(:[a-z0-9.:-]+)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{16,32})\Z")
NQN = re.compile(r"nqn\.\d{4}-\d\d\.[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9._:-]+\Z")
EXAMPLES = {"initiator_name": "iqn.2026-11.com.example:compute-0", "host_nqn": "nqn.2026-11.com.example:compute-0"}
MAX_NAME = 223
OF_UUID = "nqn.2014-08.org.nvmexpress:uuid:"
KEPT = "%s is not the name in %s. Leave it out, as volumes are exported to that name; or remove the file when none are attached."


class Names(object):
    """The names of the host, and what was written."""

    def __init__(self, module):
        self.module, self.options, self.changes = module, module.params, []
        # Both before either is written.
        self.initiator_name = self.wanted("initiator_name", "edpm_storage_initiator_name", INITIATOR)
        self.host_nqn = self.wanted("host_nqn", "edpm_storage_host_nqn", NQN)

    def file(self, path, text, mode):
        """Writes a file that has no name yet."""
        self.changes.append(path)
        if not self.module.check_mode:
            write(self.module, path, text, mode)

    def wanted(self, option, variable, valid):
        """Returns the name that is asked for, and fails if it is not valid."""
        name = self.options[option]
        if name and (not valid.match(name) or len(name) > MAX_NAME):
            self.module.fail_json(msg="%s: %r is not a valid name. Write it like %s, with at most %d characters." % (variable, str(name), EXAMPLES[option], MAX_NAME))
        return name

    def keep(self, path, has, wanted, variable):
        if wanted and wanted != has:
            self.module.fail_json(msg=KEPT % (variable, path))

    def initiator(self):
        path = os.path.join(self.options["iscsi_directory"], "initiatorname.iscsi")
        has = re.search(r"(?m)^\s*InitiatorName=(\S+)", read(path))
        if has:
            self.keep(path, has.group(1), self.initiator_name, "edpm_storage_initiator_name")
        else:
            self.file(path, "InitiatorName=%s\n" % (self.initiator_name or self.new_initiator()), 0o600)

    def new_initiator(self):
        """Returns a new name, with the prefix of the distribution."""
        if self.module.check_mode:
            return ""
        code, out, err = self.module.run_command([self.module.get_bin_path("iscsi-iname", required=True)])
        if code != 0 or not INITIATOR.match(out.strip()):
            self.module.fail_json(msg="iscsi-iname made no name: %s" % (err or out).strip(), rc=code)
        return out.strip()

    def host(self):
        """Names the host of NVMe. The name has the ID of the host, of which there is a second file."""
        nqn, host = (os.path.join(self.options["nvme_directory"], name) for name in ("hostnqn", "hostid"))
        has, identity = read(nqn).strip(), read(host).strip()
        name = has or self.host_nqn
        identity = identity or (name[len(OF_UUID):] if name.startswith(OF_UUID) else str(uuid.uuid4()))
        if has:
            self.keep(nqn, has, self.host_nqn, "edpm_storage_host_nqn")
        else:
            # nova-compute reads it without rights of root.
            self.file(nqn, (self.host_nqn or OF_UUID + identity) + "\n", 0o644)
        if not read(host).strip():
            self.file(host, identity + "\n", 0o644)


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        iscsi=dict(type="bool", default=True), initiator_name=dict(type="str", default=""), nvme=dict(type="bool", default=True),
        host_nqn=dict(type="str", default=""), iscsi_directory=dict(type="path", default="/etc/iscsi"),
        nvme_directory=dict(type="path", default="/etc/nvme")))
    names = Names(module)
    if module.params["iscsi"]:
        names.initiator()
    if module.params["nvme"]:
        names.host()
    module.exit_json(changed=bool(names.changes), changes=names.changes)


if __name__ == "__main__":
    main()
