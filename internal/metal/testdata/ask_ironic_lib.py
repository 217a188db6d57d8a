"""Says which disks ironic-lib finds by hints.

Reads from standard input a list of {"hints": {...}, "devices": [...]}, and writes the
list of the indexes of the devices that find_devices_by_hints of ironic-lib returns. Of
ironic-lib only that function and what it calls are executed: the module needs much of
OpenStack that is not here.
"""

import ast
import copy
import json
import logging
import re
import sys
import types
from urllib import parse

from oslo_utils import specs_matcher, units

WANTED = {
    "VALID_ROOT_DEVICE_HINTS", "ROOT_DEVICE_HINTS_GRAMMAR", "_extract_hint_operator_and_values",
    "_normalize_hint_expression", "_append_operator_to_hints", "parse_root_device_hints", "find_devices_by_hints",
}


def bool_from_string(value, strict=False):
    """What oslo_utils.strutils does with the values that occur here."""
    return {"true": True, "false": False}[str(value).lower()]


def load(directory):
    path = directory + "/ironic_lib/utils.py"
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    names = lambda node: {getattr(node, "name", None)} | {getattr(t, "id", None) for t in getattr(node, "targets", [])}
    tree.body = [node for node in tree.body if names(node) & WANTED]
    scope = {
        "copy": copy, "re": re, "urlparse": parse, "units": units, "specs_matcher": specs_matcher, "_": str,
        "LOG": logging.getLogger("ironic_lib"), "strutils": types.SimpleNamespace(bool_from_string=bool_from_string),
    }
    exec(compile(tree, path, "exec"), scope)  # the distribution's own code
    assert WANTED <= set(scope), WANTED - set(scope)
    return scope["find_devices_by_hints"]


def main():
    logging.disable(logging.CRITICAL)
    find = load(sys.argv[1])
    answers = []
    for asked in json.load(sys.stdin):
        devices = asked["devices"]
        if not asked["hints"]:  # nothing is looked for: any disk does
            answers.append(list(range(len(devices))))
            continue
        found = [id(device) for device in find(devices, asked["hints"])]
        answers.append([i for i, device in enumerate(devices) if id(device) in found])
    json.dump(answers, sys.stdout)


main()
