# -*- coding: utf-8 -*-
"""Filter that takes secrets out of log lines."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
  name: mask
  short_description: take secrets out of a log line
  description:
    - Replaces passwords in URLs, values of options whose names look secret, and quoted parts of parse errors.
    - A net for log lines of services, not a proof that nothing is left.
  options:
    _input:
      description: The line.
      type: str
      required: true
"""

EXAMPLES = """
- name: Show the log
  ansible.builtin.debug:
    msg: "{{ lines | map('edpm.operators.mask') }}"
"""

RETURN = """
  _value:
    description: The line without secrets.
    type: str
"""

import re

RULES = (
    (re.compile(r"(\w://[^\s:/@]*:)[^\s@]*@"), r"\1***@"),
    (re.compile(r"(?i)([\w-]*(?:password|passwd|secret|token|api_key|private_key|credential)[\w-]*[\"']?\s*[=:]\s*)\S.*"), r"\1***"),
    (re.compile(r"(?i)\b(transport_url|connection)(\s*[=:]\s*)\S+"), r"\1\2***"),
    (re.compile(r"(?i)((?:parse|assignment|syntax)[^'\"]*)(['\"]).*\2"), r"\1\2***\2"),
)


def mask(line):
    """Returns line with what looks like a secret replaced by stars."""
    for pattern, replacement in RULES:
        line = pattern.sub(replacement, line)
    return line


class FilterModule(object):
    def filters(self):
        return {"mask": mask}
