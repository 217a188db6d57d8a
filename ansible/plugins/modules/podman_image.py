#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that looks for a container image, and asks it questions."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: podman_image
short_description: look for a container image and ask it questions
description:
  - Returns the ID of an image that a host has, and what shell scripts print that run in a new container of it, without network.
  - The answers are recorded on the host and asked for again only if the ID of the image, the script or the arguments differ.
  - Does not pull the image.
author:
  - The edpm-operators authors
options:
  name:
    description: Name of the image.
    type: str
    required: true
  questions:
    description: Shell scripts by any name. They must not change anything, as check mode runs them, too.
    type: dict
    default: {}
  podman:
    description: Path of podman.
    type: path
    default: /usr/bin/podman
  runtime:
    description: Container runtime. Empty for the default of the host.
    type: str
    default: ""
  args:
    description: More arguments of C(podman run).
    type: list
    elements: str
    default: []
  directory:
    description: Directory of the records.
    type: path
    default: /var/lib/edpm/images
attributes:
  check_mode:
    description: Asks as usual, and records nothing.
    support: full
"""

EXAMPLES = """
- name: Find the IDs of the user nova
  edpm.operators.podman_image:
    name: registry.example.com/nova-compute:1
    questions:
      user: id -u nova && id -g nova
  register: image
"""

RETURN = """
id:
  description: ID of the image. Empty if the host does not have it.
  type: str
  returned: always
answers:
  description: The lines that each script printed. Empty if the host does not have the image.
  type: dict
  returned: always
"""

import hashlib
import json
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

# What podman ends with if there is no such image.
MISSING = 125


def image_id(module):
    """Returns the ID of the image, and nothing if the host does not have it."""
    command = [module.params["podman"], "image", "inspect", "--format", "{{.Id}}", module.params["name"]]
    code, out, err = module.run_command(command)
    if code not in (0, MISSING):
        module.fail_json(msg="%s failed with exit code %d: %s" % (" ".join(command), code, err.strip()), rc=code)
    return out.strip() if code == 0 else ""


def recorded(path, image):
    """Returns the answers of an image that were recorded; a damaged record, and one of another image, count as none."""
    try:
        with open(path) as stream:
            content = json.load(stream)
    except (IOError, OSError, ValueError):
        return {}
    if not isinstance(content, dict) or content.get("id") != image or not isinstance(content.get("answers"), dict):
        return {}
    return content["answers"]


def record(module, path, image, answers):
    """Replaces the record in one step."""
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), 0o755)
    descriptor, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(descriptor, "w") as stream:
        json.dump({"name": module.params["name"], "id": image, "answers": answers}, stream, indent=1, sort_keys=True)
    module.atomic_move(temporary, path)


def command_for(module, script):
    """Returns the command that runs a script in a container of the image."""
    options = module.params
    runtime = ["--runtime", options["runtime"]] if options["runtime"] else []
    return ([options["podman"]] + runtime + ["run", "--rm", "--network", "none", "--pull", "never", "--user", "root", "--entrypoint", "/bin/sh"]
            + options["args"] + [options["name"], "-c", script])


def ask(module, name, command):
    """Returns the lines that a command prints, and fails if it fails."""
    code, out, err = module.run_command(command)
    if code != 0:
        module.fail_json(msg="Question %s to image %s failed with exit code %d: %s" % (name, module.params["name"], code, (err or out).strip()),
                         rc=code, stdout=out, stderr=err)
    return out.splitlines()


def answers_of(module, image):
    """Returns the answers to all questions."""
    path = os.path.join(module.params["directory"], hashlib.sha256(module.params["name"].encode("utf-8")).hexdigest()[:16] + ".json")
    before, now, answers = recorded(path, image), {}, {}
    for name, script in module.params["questions"].items():
        command = command_for(module, script)
        key = hashlib.sha256(json.dumps(command).encode("utf-8")).hexdigest()
        now[key] = answers[name] = before[key] if key in before else ask(module, name, command)
    if not module.check_mode and set(now) - set(before):
        record(module, path, image, now)
    return answers


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        name=dict(type="str", required=True),
        questions=dict(type="dict", default={}),
        podman=dict(type="path", default="/usr/bin/podman"),
        runtime=dict(type="str", default=""),
        args=dict(type="list", elements="str", default=[]),
        directory=dict(type="path", default="/var/lib/edpm/images"),
    ))
    image = image_id(module)
    module.exit_json(changed=False, id=image, answers=answers_of(module, image) if image and module.params["questions"] else {})


if __name__ == "__main__":
    main()
