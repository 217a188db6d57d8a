#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that reserves huge pages, now and whenever the host boots."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: huge_pages
short_description: reserve huge pages
description:
  - Has the kernel reserve huge pages, and systemd-tmpfiles reserve them again whenever the host boots. No reboot is needed.
  - Pages that are no longer given are released. Those that guests use stay until the guests end.
  - Fails if the kernel finds less memory than that in one piece. At boot it does.
author:
  - The edpm-operators authors
options:
  pages:
    description: Numbers of pages by size, and by NUMA node if need be.
    type: list
    elements: dict
    required: true
    suboptions:
      size:
        description: Size of a page, such as C(2M) or C(1G).
        type: str
        required: true
      count:
        description: Number of pages.
        type: int
        required: true
      node:
        description: NUMA node. Without one the kernel distributes the pages.
        type: int
  path:
    description: File that systemd-tmpfiles reads.
    type: path
    default: /etc/tmpfiles.d/edpm-huge-pages.conf
  sys:
    description: Directory with the memory of the kernel.
    type: path
    default: /sys
attributes:
  check_mode:
    description: Reports what would be changed.
    support: full
"""

EXAMPLES = """
- name: Reserve memory for guests
  edpm.operators.huge_pages:
    pages:
      - {size: 1G, count: 64, node: 0}
      - {size: 1G, count: 64, node: 1}
"""

RETURN = """
changes:
  description: What was changed, such as C(2M 0 -> 512).
  type: list
  elements: str
  returned: always
"""

import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils.files import read, write

SIZE = re.compile(r"(\d{1,9})([KMG])\Z")
FACTORS = {"K": 1, "M": 1024, "G": 1024 * 1024}
LINE = re.compile(r"w (\S+/nr_hugepages) - - - - \d+\Z")
HEADER = "# Written by the module edpm.operators.huge_pages, which overwrites changes.\n"


def number(path):
    return int(read(path).strip() or 0)


class Pool(object):
    """The huge pages of one size, of the host or of one of its NUMA nodes."""

    def __init__(self, path, name, count):
        self.path, self.name, self.count = path, name, count

    def reserved(self):
        """Returns the number of pages without those that only exist as long as somebody uses them."""
        return number(self.path) - number(os.path.join(os.path.dirname(self.path), "surplus_hugepages"))

    def bring(self, check):
        """Has the kernel reserve the pages, and returns what that changed."""
        before = self.reserved()
        if before == self.count:
            return []
        if not check:
            with open(self.path, "w") as stream:
                stream.write("%d\n" % self.count)
        return ["%s %d -> %d" % (self.name, before, self.count)]


def pool(module, entry):
    """Returns the pages of an entry, and fails if the host does not have such pages."""
    size, node = SIZE.match(entry["size"]), entry["node"]
    if not size or entry["count"] < 0 or (node or 0) < 0:
        module.fail_json(msg="edpm_kernel_hugepages: %s pages of %r on node %s are not valid. A size is for example 2M or 1G." % (
            entry["count"], str(entry["size"]), node))
    top = ("kernel", "mm") if node is None else ("devices", "system", "node", "node%d" % node)
    directory = os.path.join(module.params["sys"], *(top + ("hugepages",)))
    path = os.path.join(directory, "hugepages-%dkB" % (int(size.group(1)) * FACTORS[size.group(2)]), "nr_hugepages")
    if not os.path.exists(path):
        found = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
        module.fail_json(msg="edpm_kernel_hugepages: the host has no huge pages of %s%s. It has: %s" % (
            entry["size"], "" if node is None else " on NUMA node %d" % node, ", ".join(found) or "none"))
    return Pool(path, entry["size"] if node is None else "%s on node %d" % (entry["size"], node), entry["count"])


def pools(module):
    """Returns the pages of all entries, and before them those to release, which are in the file and no longer given."""
    given = [pool(module, entry) for entry in module.params["pages"]]
    kinds = set((os.path.basename(os.path.dirname(each.path)), entry["node"] is None) for each, entry in zip(given, module.params["pages"]))
    if len(set(each.path for each in given)) < len(given) or len(kinds) > len(set(size for size, _ in kinds)):
        module.fail_json(msg="edpm_kernel_hugepages: give pages of one size once for the host, or once for each of its NUMA nodes.")
    before = [LINE.match(line).group(1) for line in read(module.params["path"]).splitlines() if LINE.match(line)]
    gone = [path for path in before if path not in [each.path for each in given] and os.path.exists(path)]
    return [Pool(path, os.path.basename(os.path.dirname(path)), 0) for path in gone], given


def persist(module, given):
    """Has systemd-tmpfiles reserve the pages at boot, and returns what that changed."""
    path = module.params["path"]
    text = HEADER + "".join("w %s - - - - %d\n" % (each.path, each.count) for each in given) if given else ""
    if read(path) == text:
        return []
    if not module.check_mode and text:
        write(module, path, text)
    elif not module.check_mode:
        os.unlink(path)
    return ["%s %s" % ("write" if text else "remove", path)]


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        pages=dict(type="list", elements="dict", required=True, options=dict(
            size=dict(type="str", required=True), count=dict(type="int", required=True), node=dict(type="int"))),
        path=dict(type="path", default="/etc/tmpfiles.d/edpm-huge-pages.conf"), sys=dict(type="path", default="/sys")))
    gone, given = pools(module)
    # The file last: until it is written, it says what has to be released.
    changes = [change for each in gone + given for change in each.bring(module.check_mode)]
    changes += persist(module, given)
    short = [] if module.check_mode else [each for each in given if each.reserved() < each.count]
    if short:
        module.fail_json(msg="Only %d of %d huge pages of %s: the rest of the memory is in use or in pieces. Reboot the host without guests, which reserves them at "
                             "boot, or ask for less." % (short[0].reserved(), short[0].count, short[0].name), changes=changes)
    module.exit_json(changed=bool(changes), changes=changes)


if __name__ == "__main__":
    main()
