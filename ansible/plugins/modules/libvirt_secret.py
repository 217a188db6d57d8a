#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that gives libvirt the key of a user of Ceph."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: libvirt_secret
short_description: give libvirt the key of a user of Ceph
description:
  - Defines a secret of libvirt with the key in a keyring on the host, by virsh in a container of libvirt. The key is in no argument and in no output.
  - On a host on which no such container runs nothing is done. The role that runs libvirt does it then.
author:
  - The edpm-operators authors
options:
  user:
    description: User of Ceph, without C(client.).
    type: str
    required: true
  uuid:
    description: UUID of the secret. Empty for the C(fsid) of the configuration.
    type: str
    default: ""
  directory:
    description: Directory of C(ceph.conf) and of the keyring.
    type: path
    default: /etc/ceph
  podman:
    description: Path of podman.
    type: path
    default: /usr/bin/podman
  containers:
    description: Containers with virsh and the daemon that has secrets. The first one that runs is used.
    type: list
    elements: str
    default: [edpm_libvirt_virtqemud, edpm_libvirt_libvirtd]
attributes:
  check_mode:
    description: Reports whether the secret would be changed.
    support: full
"""

EXAMPLES = """
- name: Give libvirt the key
  edpm.operators.libvirt_secret:
    user: openstack
"""

RETURN = """
uuid:
  description: UUID of the secret, as nova needs it in C(rbd_secret_uuid).
  type: str
  returned: always, but for check mode on a host without the keyring
"""

import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils.files import read

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
FSID = re.compile(r"(?m)^\s*fsid\s*=\s*(\S+)\s*$")
KEY = re.compile(r"(?m)^\s*key\s*=\s*\"?([A-Za-z0-9+/]{20,200}={0,2})\"?\s*$")
# It outlives the daemon, and users of libvirt who may manage guests can read it, as nova does not ask for it.
SECRET = "<secret ephemeral='no' private='no'><uuid>%s</uuid><usage type='ceph'><name>client.%s secret</name></usage></secret>\n"


def found(module, pattern, path, what):
    """Returns what a pattern finds in a file, and fails if it finds nothing."""
    match = pattern.search(read(path))
    if not match:
        module.fail_json(msg="%s has no %s. Put the file into the Secret of the service." % (path, what))
    return match.group(1)


class Virsh(object):
    """virsh in a container of libvirt."""

    def __init__(self, module, container):
        self.module = module
        self.command = [module.params["podman"], "exec", "--interactive", "--user", "root", container, "virsh", "--quiet", "--connect", "qemu:///system"]

    def value(self, uuid):
        """Returns the key that libvirt has, and nothing if it has none."""
        code, out, _ = self.module.run_command(self.command + ["secret-get-value", uuid])
        return out.strip() if code == 0 else ""

    def run(self, data, *arguments):
        """Runs a command that reads its standard input."""
        code, _, err = self.module.run_command(self.command + list(arguments), data=data.encode("utf-8"), binary_data=True)
        if code != 0:
            self.module.fail_json(msg="virsh %s failed: %s" % (arguments[0], " ".join(err.split())), rc=code)


def running(module):
    """Returns the container to use, and nothing if none runs."""
    if not os.path.exists(module.params["podman"]):
        return ""
    code, out, err = module.run_command([module.params["podman"], "ps", "--format", "{{.Names}}"])
    if code != 0:
        module.fail_json(msg="podman ps failed: %s" % err.strip(), rc=code)
    return ([name for name in module.params["containers"] if name in out.split()] + [""])[0]


def bring(module, uuid, key):
    """Defines the secret if it differs, and reports whether it does."""
    container = running(module)
    if not container:
        return False
    virsh = Virsh(module, container)
    if virsh.value(uuid) == key:
        return False
    if not module.check_mode:
        virsh.run(SECRET % (uuid, module.params["user"]), "secret-define", "/dev/stdin")
        virsh.run(key, "secret-set-value", "--secret", uuid, "--file", "/dev/stdin")
    return True


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        user=dict(type="str", required=True), uuid=dict(type="str", default=""), directory=dict(type="path", default="/etc/ceph"),
        podman=dict(type="path", default="/usr/bin/podman"),
        containers=dict(type="list", elements="str", default=["edpm_libvirt_virtqemud", "edpm_libvirt_libvirtd"])))
    directory, user = module.params["directory"], module.params["user"]
    if not re.match(r"[A-Za-z0-9_.-]+\Z", user):
        module.fail_json(msg="edpm_ceph_user: %r is not the name of a Ceph user, such as openstack." % str(user))
    keyring = os.path.join(directory, "ceph.client.%s.keyring" % user)
    if module.check_mode and not os.path.exists(keyring):
        module.exit_json(changed=bool(running(module)), uuid=module.params["uuid"])
    uuid = (module.params["uuid"] or found(module, FSID, os.path.join(directory, "ceph.conf"), "fsid")).lower()
    if not UUID.match(uuid):
        module.fail_json(msg="%s is not a UUID. Correct fsid of ceph.conf, or edpm_ceph_secret_uuid." % uuid)
    key = found(module, KEY, keyring, "key")
    module.no_log_values.add(key)
    module.exit_json(changed=bring(module, uuid, key), uuid=uuid)


if __name__ == "__main__":
    main()
