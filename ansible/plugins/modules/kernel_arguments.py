#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that has a host boot its kernel with arguments."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: kernel_arguments
short_description: have a host boot its kernel with arguments
description:
  - Adds arguments to the command line of all kernels that a host boots, and removes those that it added before and that are no longer given.
    Arguments of others stay.
  - Uses grubby where there is one, as on Red Hat Enterprise Linux, else a file in I(grub_directory) and update-grub, as on Debian. There entries
    for recovery boot without the arguments.
  - Does not reboot the host. What a reboot would change is returned as I(pending).
  - Fails if the host was booted since its boot loader has the arguments, and its kernel still runs without them, so that nobody reboots it in vain.
author:
  - The edpm-operators authors
options:
  arguments:
    description: Arguments, each C(name) or C(name=value) of letters, digits and C(_.,:/=+@%~-).
    type: list
    elements: str
    default: []
  isolated_cpus:
    description: CPUs that the kernel keeps for guests, as a list such as C(2-19,22-39). They become C(isolcpus), C(nohz_full) and C(rcu_nocbs).
    type: str
    default: ""
  grub_directory:
    description: Directory of files that update-grub reads.
    type: path
    default: /etc/default/grub.d
  record:
    description: File that keeps which arguments were added.
    type: path
    default: /var/lib/edpm/kernel-arguments.json
  proc:
    description: Directory with what the kernel says of itself.
    type: path
    default: /proc
  sys:
    description: Directory with the devices of the kernel.
    type: path
    default: /sys
attributes:
  check_mode:
    description: Reports what would be changed.
    support: full
"""

EXAMPLES = """
- name: Pass devices to guests
  edpm.operators.kernel_arguments:
    arguments: [intel_iommu=on, iommu=pt]
    isolated_cpus: 2-19
"""

RETURN = """
changes:
  description: What was done to the boot loader, such as C(add iommu=pt).
  type: list
  elements: str
  returned: always
pending:
  description: What the kernel runs without or with until it is booted again, such as C(+iommu=pt) or C(-nosmt).
  type: list
  elements: str
  returned: always
edpm_note:
  description: The same in words, for the result of the host. Empty if nothing is pending.
  type: str
  returned: always
"""

import json
import os
import re
from collections import Counter

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils.files import read, write

ARGUMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.,:/=+@%~-]*)?\Z")
CPUS = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*\Z")
# They say what is booted, and a host with others may not come back.
OF_BOOT_LOADER = ("BOOT_IMAGE", "root", "init", "rdinit", "initrd")
GRUB_FILE = "90-edpm.cfg"
GRUB = """\
# Written by the module edpm.operators.kernel_arguments, which overwrites changes.
GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT %s"
"""


def run(module, command):
    """Runs a command, and fails with what it printed."""
    code, out, err = module.run_command(command)
    if code != 0:
        last = (err.strip() or out.strip()).splitlines()[-1:]
        module.fail_json(msg="%s failed with exit code %d: %s" % (" ".join(command), code, "".join(last)), rc=code)
    return out


def less(words, others):
    """Returns words without others, in their order. One that is there twice is two."""
    left, found = Counter(words) - Counter(others), []
    for word in reversed(words):
        if left[word] > 0:
            left[word] -= 1
            found.append(word)
    return found[::-1]


def cpus(text):
    """Returns the numbers in a list of CPUs, such as 2-4,7; none if a range of it is empty."""
    ranges = [[int(number) for number in part.split("-")] for part in text.strip().split(",")]
    if any(each[0] > each[-1] for each in ranges):
        return set()
    return set(number for each in ranges for number in range(each[0], each[-1] + 1))


class Grubby(object):
    """The boot loader of Red Hat Enterprise Linux: arguments are part of the entry of each kernel."""

    def __init__(self, module):
        self.module = module

    def lists(self):
        """Returns the arguments of each kernel."""
        return [line[len("args="):].strip().strip('"').split() for line in run(self.module, ["grubby", "--info=ALL"]).splitlines() if line.startswith("args=")]

    def differs(self, wanted, unwanted):
        return any(less(wanted, words) or set(words) & set(unwanted) for words in self.lists())

    def bring(self, wanted, unwanted):
        remove = ["--remove-args=" + " ".join(unwanted)] if unwanted else []
        run(self.module, ["grubby", "--update-kernel=ALL"] + remove + (["--args=" + " ".join(wanted)] if wanted else []))
        missing = [word for words in self.lists() for word in less(wanted, words)]
        if missing:
            self.module.fail_json(msg="grubby did not add the kernel argument %s. It has one value for each name: give names once, and reserve huge pages of "
                                      "a second size with edpm_kernel_hugepages." % missing[0])


class Grub(object):
    """The boot loader of Debian: a file is read when its configuration is made."""

    def __init__(self, module):
        self.module, self.path = module, os.path.join(module.params["grub_directory"], GRUB_FILE)

    def text(self, wanted):
        return GRUB % " ".join(wanted) if wanted else ""

    def differs(self, wanted, unwanted):
        return read(self.path) != self.text(wanted)

    def bring(self, wanted, unwanted):
        if wanted:
            write(self.module, self.path, self.text(wanted))
        elif os.path.exists(self.path):
            os.unlink(self.path)
        run(self.module, ["update-grub"])


def boot_loader(module, needed):
    """Returns the boot loader of the host, and nothing if it has none and needs none."""
    for command, kind in (("grubby", Grubby), ("update-grub", Grub)):
        if module.get_bin_path(command):
            return kind(module)
    if needed:
        module.fail_json(msg="The host has neither grubby nor update-grub. Leave out edpm_kernel_args and edpm_kernel_isolated_cpus, and configure its "
                             "boot loader yourself.")
    return None


class Kernel(object):
    """The arguments that are wanted, those that were added before, and those that the kernel runs with.

    The record has arguments that the boot loader may have from here, "arguments"; those that it had, "removed"; in which boot it was
    changed last, "boot"; and whether the change came to its end, "complete".
    """

    def __init__(self, module, wanted):
        self.module, self.wanted = module, wanted
        self.running = read(self.of_proc("cmdline")).split()
        self.boot = read(self.of_proc("sys", "kernel", "random", "boot_id")).strip()
        self.record = self.recorded()
        self.loader = boot_loader(module, wanted or self.record["arguments"])

    def of_proc(self, *names):
        return os.path.join(self.module.params["proc"], *names)

    def recorded(self):
        """Returns the record; a damaged one counts as none."""
        record = {"arguments": [], "removed": [], "boot": self.boot, "complete": True}
        try:
            kept = dict(json.loads(read(self.module.params["record"]) or "{}"))
        except (TypeError, ValueError):
            return record
        record.update((key, kept[key]) for key in record if isinstance(kept.get(key), type(record[key])))
        return record

    def keep(self, **values):
        self.record.update(values)
        write(self.module, self.module.params["record"], json.dumps(self.record, indent=1, sort_keys=True))

    def bring(self):
        """Changes the boot loader, and returns what that changed."""
        before = self.record["arguments"]
        unwanted = less(before, self.wanted)
        changes = ["remove " + word for word in unwanted] + ["add " + word for word in less(self.wanted, before)]
        if not self.loader or self.record["complete"] and not changes and not self.loader.differs(self.wanted, unwanted):
            return []
        earlier = self.record["removed"] if self.record["boot"] == self.boot else []
        removed = sorted(set(earlier + unwanted) - set(self.wanted))
        if not self.module.check_mode:
            # A run that ends now leaves a record of all that may have to be removed.
            self.keep(arguments=self.wanted + unwanted, removed=removed, boot=self.boot, complete=False)
            self.loader.bring(self.wanted, unwanted)
            self.keep(arguments=self.wanted, complete=True)
        self.record.update(removed=removed, boot=self.boot)
        return changes or ["update the boot loader"]

    def pending(self):
        """Returns what the next boot changes, and fails if that was not so for the last one."""
        missing = less(self.wanted, self.running)
        if self.record["boot"] == self.boot:
            return ["+" + word for word in missing] + ["-" + word for word in self.record["removed"] if word in self.running]
        if missing:
            self.module.fail_json(msg="The host was booted without arguments that its boot loader has. See which entry or other boot loader it uses. "
                                      "Missing: " + " ".join(missing))
        return []


def wanted(module):
    """Returns all arguments, and fails if one is not valid."""
    words = list(module.params["arguments"])
    for word in words:
        if not ARGUMENT.match(word):
            module.fail_json(msg="edpm_kernel_args: %r is not a kernel argument. It must be name or name=value, of letters, digits and _.,:/=+@%%~-" % str(word))
        if word.split("=")[0] in OF_BOOT_LOADER:
            module.fail_json(msg="edpm_kernel_args: %s belongs to the boot loader. Leave it out." % word)
    return words + isolation(module)


def isolation(module):
    """Returns the arguments that isolate CPUs, and fails if the host does not have them or would have none left."""
    text = module.params["isolated_cpus"]
    if not text:
        return []
    if not CPUS.match(text):
        module.fail_json(msg="edpm_kernel_isolated_cpus: %r is not a list of CPUs, such as 2-19,22-39." % str(text))
    present, isolated = cpus(read(os.path.join(module.params["sys"], "devices", "system", "cpu", "present"))), cpus(text)
    if not isolated or isolated - present:
        module.fail_json(msg="edpm_kernel_isolated_cpus: %s are not all CPUs of the host, which has 0 to %d." % (text, max(present)))
    if not present - isolated:
        module.fail_json(msg="edpm_kernel_isolated_cpus: %s are all CPUs of the host. Leave some for the system." % text)
    return ["isolcpus=managed_irq,domain," + text, "nohz_full=" + text, "rcu_nocbs=" + text]


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        arguments=dict(type="list", elements="str", default=[]), isolated_cpus=dict(type="str", default=""),
        grub_directory=dict(type="path", default="/etc/default/grub.d"), record=dict(type="path", default="/var/lib/edpm/kernel-arguments.json"),
        proc=dict(type="path", default="/proc"), sys=dict(type="path", default="/sys")))
    kernel = Kernel(module, wanted(module))
    changes = kernel.bring()
    pending = kernel.pending()
    note = "A reboot is pending for the kernel arguments %s" % " ".join(pending) if pending else ""
    module.exit_json(changed=bool(changes), changes=changes, pending=pending, edpm_note=note)


if __name__ == "__main__":
    main()
