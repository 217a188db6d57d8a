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


def store(path):
    """Has the disk store the content of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_file_system(module, path):
    """Has the disk store all files of the file system of a path. Others may be of a server that does not answer."""
    module.run_command(["sync", "--file-system", path], check_rc=True)


def replace(module, temporary, path):
    """Moves a file to its place in one step, which a loss of power does not halve. Ansible copies it first if that is on another file system."""
    store(temporary)
    module.atomic_move(temporary, path)
    store(path)


def write(module, path, text, mode=0o644):
    """Replaces a file in one step, and makes its directory if need be."""
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path), 0o755)
    descriptor, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    os.chmod(temporary, mode)
    replace(module, temporary, path)
    # A new file has the mode that the system gives one.
    os.chmod(path, mode)
