# -*- coding: utf-8 -*-
"""Takes secrets out of lines of logs: passwords in URLs, values of options whose names look secret, and quoted parts of parse errors.

A net, not a proof that nothing is left.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Hosts write these lines: a line is cut before it is matched, and what can be
# repeated before a match is decided is bounded.
MAX_LINE = 1000

# The names of cmd/kubectl-edpm/internal/redact, and more; a list of lines is a test of both.
SECRET = r"password|passwd|passphrase|secret|token|credential|[_-]key|[_-]pass"
RULES = (
    # Up to the last "@": an address can have several hosts, each with its password.
    (re.compile(r"(\w://)\S{1,500}@"), r"\1***@"),
    (re.compile(r"(?i)((?:%s)[\w-]{0,40}[\"']?\s{0,10}[=:]\s{0,10})\S.*" % SECRET), r"\1***"),
    (re.compile(r"(?i)\b(transport_url|connection)(\s{0,10}[=:]\s{0,10})\S+"), r"\1\2***"),
    (re.compile(r"(?i)((?:parse|assignment|syntax)[^'\"]{0,200})(['\"]).*\2"), r"\1\2***\2"),
)


def mask(line):
    """Returns line with what looks like a secret replaced by stars, cut if it is very long."""
    if len(line) > MAX_LINE:
        line = line[:MAX_LINE] + "\u2026"
    for pattern, replacement in RULES:
        line = pattern.sub(replacement, line)
    return line
