# -*- coding: utf-8 -*-
"""Keeps what a service last came up with, so that it can be put back when something else does not come up."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import shutil
import tempfile
import time

from ansible_collections.edpm.operators.plugins.module_utils.files import store

DESCRIPTION = "service.json"
# What did not stay up. The dot tells it from definitions.
REFUSED = ".refused.json"


def remove(path):
    """Removes a file, or a directory with all that is in it."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def same_owner(source, target):
    """Gives a file owner, group and mode of another."""
    status = os.stat(source)
    os.chown(target, status.st_uid, status.st_gid)
    shutil.copystat(source, target)


def mirror(source, target):
    """Makes one directory the same as another. Each file is replaced in one step, which a loss of power does not halve."""
    if not os.path.isdir(target):
        os.makedirs(target, 0o700)
    for name in sorted(set(os.listdir(target)) - set(os.listdir(source))):
        remove(os.path.join(target, name))
    for name in sorted(os.listdir(source)):
        each = os.path.join(source, name)
        if os.path.isdir(each):
            mirror(each, os.path.join(target, name))
        elif os.path.isfile(each):
            temporary = tempfile.mkstemp(dir=target)[1]
            shutil.copyfile(each, temporary)
            same_owner(each, temporary)
            store(temporary)
            os.rename(temporary, os.path.join(target, name))
    same_owner(source, target)


class LastGood(object):
    """What a service came up with: a directory for each definition, with the unit and copies of the directories of the configuration.

    There is one, but for the moment between the next one and the removal of the one before. Configuration has secrets, so only root
    can read them. Beside it is what did not stay up since then.
    """

    def __init__(self, directory):
        self.directory = directory

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def definitions(self):
        """Returns all definitions, the last one first. A name with a dot is one that is being made.

        Earlier versions did not have the disk store them: of one that a loss of power has emptied nothing can be put back.
        """
        found = os.listdir(self.directory) if os.path.isdir(self.directory) else []
        complete = [name for name in found if not name.startswith(".") and self.description(name)]
        return sorted(complete, key=lambda name: -os.stat(self.path(name)).st_ctime)

    def before(self, definition):
        """Returns the definition to go back to from one that does not come up. There is none if that one came up before."""
        found = self.definitions()
        return found[0] if found and definition not in found else ""

    def keep(self, definition, unit, image, directories):
        """Keeps the text of a unit, the ID of its image and the directories as they are, in place of other definitions."""
        if definition not in self.definitions():
            self.copy(definition, {"unit": unit, "image": image, "directories": [each for each in directories if os.path.isdir(each)]})
        for name in set(os.listdir(self.directory)) - set([definition]):
            remove(self.path(name))

    def make_directory(self):
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory, 0o700)

    def copy(self, definition, description):
        self.make_directory()
        new = tempfile.mkdtemp(dir=self.directory, prefix=".")
        for number, directory in enumerate(description["directories"]):
            mirror(directory, os.path.join(new, str(number)))
        with open(os.path.join(new, DESCRIPTION), "w") as stream:
            json.dump(description, stream)
        store(os.path.join(new, DESCRIPTION))
        if os.path.isdir(self.path(definition)):  # not complete
            remove(self.path(definition))
        os.rename(new, self.path(definition))

    def description(self, definition):
        """Returns what is kept of a definition, and None if it cannot be read."""
        try:
            with open(self.path(definition, DESCRIPTION)) as stream:
                found = json.load(stream)
        except (IOError, OSError, ValueError):
            return None
        return found if isinstance(found, dict) and all(key in found for key in ("unit", "image", "directories")) else None

    def images(self):
        """Returns the IDs of the images of all definitions."""
        return [self.description(definition)["image"] for definition in self.definitions()]

    def refuse(self, attempt, why):
        """Remembers that the service did not stay up in an attempt, a list of the definition and the token of the rerun, until it is kept with any."""
        self.make_directory()
        descriptor, temporary = tempfile.mkstemp(dir=self.directory, prefix=".")
        with os.fdopen(descriptor, "w") as stream:
            json.dump({"attempt": attempt, "why": why, "time": time.time()}, stream)
        store(temporary)
        os.rename(temporary, self.path(REFUSED))

    def forget(self):
        """Refuses nothing any more."""
        remove(self.path(REFUSED))

    def refusal(self, attempt, seconds):
        """Returns until when (seconds since 1970), and why, an attempt is refused, as the service did not stay up in the same one in the last seconds.

        Returns None if it is not. A damaged file refuses nothing.
        """
        try:
            with open(self.path(REFUSED)) as stream:
                found = json.load(stream)
            refused = found["attempt"] == attempt and 0 <= time.time() - found["time"] < seconds
            return (found["time"] + seconds, found["why"]) if refused else None
        except (IOError, OSError, ValueError, KeyError, TypeError):
            return None

    def put_back(self, definition):
        """Restores the directories of a definition, and returns the text of its unit."""
        kept = self.description(definition)
        for number, directory in enumerate(kept["directories"]):
            mirror(self.path(definition, str(number)), directory)
        return kept["unit"]
