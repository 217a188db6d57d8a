#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that pulls container images ahead of their use, and removes those that nothing uses."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: podman_images
short_description: pull container images and remove those that nothing uses
description:
  - Pulls images, so that a service that is started with one of them later does not wait for a registry.
  - Can remove images that nothing uses. An image is in use if it is one of I(names), if a container has it, whether it runs or not, or if
    a service that was started by M(edpm.operators.podman_services) can go back to it.
author:
  - The edpm-operators authors
options:
  names:
    description: Names of images.
    type: list
    elements: str
    required: true
  pull:
    description: When to pull images.
    type: str
    choices: [missing, always]
    default: missing
  pull_args:
    description: More arguments of C(podman pull).
    type: list
    elements: str
    default: []
  retries:
    description: Number of attempts to pull an image.
    type: int
    default: 3
  delay_seconds:
    description: Seconds between two attempts.
    type: int
    default: 5
  prune:
    description: Remove images that nothing uses.
    type: bool
    default: false
  podman:
    description: Path of podman.
    type: path
    default: /usr/bin/podman
  records:
    description: Directory in which M(edpm.operators.podman_services) keeps what services last came up with.
    type: path
    default: /var/lib/edpm/services
attributes:
  check_mode:
    description: Reports the images that the host does not have, and those that would be removed.
    support: full
"""

EXAMPLES = """
- name: Pull the images of the next release
  edpm.operators.podman_images:
    names:
      - registry.example.com/nova-compute:2
      - registry.example.com/nova-libvirt:2
    pull_args: [--authfile=/etc/edpm/auth.json]
    prune: true
"""

RETURN = """
changes:
  description: What was done, such as C(pull registry.example.com/nova-compute:2).
  type: list
  elements: str
  returned: always
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils.last_good import LastGood
from ansible_collections.edpm.operators.plugins.module_utils.mask import mask


class Podman(object):
    """The images of a host."""

    def __init__(self, module):
        self.module, self.options, self.changes = module, module.params, []

    def run(self, *arguments):
        return self.module.run_command([self.options["podman"]] + list(arguments))

    def image(self, name):
        """Returns the ID of an image, and nothing if the host does not have it."""
        code, out, _ = self.run("image", "inspect", "--format", "{{.Id}}", name)
        return out.strip() if code == 0 else ""

    def pull(self, name):
        """Pulls an image, and fails if no attempt succeeds."""
        before = self.image(name)
        if before and self.options["pull"] == "missing":
            return
        if self.module.check_mode:
            self.changes += [] if before else ["pull " + name]
            return
        for attempt in range(self.options["retries"]):
            time.sleep(self.options["delay_seconds"] if attempt else 0)
            code, _, err = self.run("pull", "--quiet", *(self.options["pull_args"] + [name]))
            if code == 0:
                break
        else:
            self.module.fail_json(msg="Pulling %s failed: %s" % (name, mask(" ".join(err.split()))), rc=code)
        if self.image(name) != before:
            self.changes.append("pull " + name)

    def used(self):
        """Returns the IDs of images that must stay."""
        ids = set(self.image(name) for name in self.options["names"])
        ids.update(self.lines("ps", "--all", "--no-trunc", "--format", "{{.ImageID}}"))
        services = os.listdir(self.options["records"]) if os.path.isdir(self.options["records"]) else []
        return ids | set(image for name in services for image in LastGood(os.path.join(self.options["records"], name)).images())

    def lines(self, *arguments):
        code, out, err = self.run(*arguments)
        if code != 0:
            self.module.fail_json(msg="podman %s failed: %s" % (" ".join(arguments), err.strip()), rc=code)
        return [line for line in out.splitlines() if line]

    def prune(self):
        """Removes images that nothing uses, by their names: with one that came into use meanwhile podman fails, and it stays."""
        used = self.used()
        for line in self.lines("images", "--no-trunc", "--filter", "readonly=false", "--format", "{{.Id}} {{.Names}}"):
            image, _, names = line.partition(" ")
            image = image.replace("sha256:", "")  # In names it is part of a digest.
            if image not in used and (self.module.check_mode or self.run("rmi", *(names.strip("[]").split() or [image]))[0] == 0):
                self.changes.append("remove " + image)
                used.add(image)  # It is listed once for each name.


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        names=dict(type="list", elements="str", required=True), pull=dict(type="str", choices=["missing", "always"], default="missing"),
        # Arguments may be credentials.
        pull_args=dict(type="list", elements="str", default=[], no_log=True), retries=dict(type="int", default=3),
        delay_seconds=dict(type="int", default=5), prune=dict(type="bool", default=False), podman=dict(type="path", default="/usr/bin/podman"),
        records=dict(type="path", default="/var/lib/edpm/services")))
    podman = Podman(module)
    for name in module.params["names"]:
        podman.pull(name)
    if module.params["prune"]:
        podman.prune()
    module.exit_json(changed=bool(podman.changes), changes=podman.changes)


if __name__ == "__main__":
    main()
