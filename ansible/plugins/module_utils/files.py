# -*- coding: utf-8 -*-
"""Reads and replaces small files of a host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import tempfile


def read(path):
    """Returns the text of a file, and nothing of one that does not exist."""
    if not os.path.exists(path):
        return ""
    with open(path) as stream:
        return stream.read()


def write(module, path, text, mode=0o644):
    """Replaces a file in one step, and makes its directory if need be."""
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), 0o755)
    descriptor, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    os.chmod(temporary, mode)
    module.atomic_move(temporary, path)
    # A new file has the mode that the system gives one.
    os.chmod(path, mode)
