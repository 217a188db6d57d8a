"""What an earlier version of a role wrote on hosts, and today's does not: it removes that, or the table says why it may stay."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import runs
from test_other_tools import EARLIER

# What roles write: paths, names of files and units in directories, and settings of Open vSwitch.
WRITTEN = re.compile(r"""(?<![\w.{}/~-])/(?:etc|var|usr/local|opt|boot|srv)/[\w.@/-]+
                       | (?<![\w/.-])[\w@.-]+\.(?:conf|service|target|nft|timer|socket|mount|rules)\b(?!\.j2)
                       | \bovn-[a-z-]+\b""", re.VERBOSE)
# By role: what is not mentioned any more, and what became of it on hosts that have it. Entries leave when no supported version wrote them.
LEFT = {}


def written(collection):
    """Returns what the files of each role mention of WRITTEN. What a role removes it mentions, too."""
    found = {}
    for role in sorted(os.listdir(os.path.join(collection, "roles"))):
        texts = []
        for part in ("tasks", "handlers", "templates", "vars", "defaults", "files"):
            for path in sorted(glob.glob(os.path.join(collection, "roles", role, part, "**"), recursive=True)):
                if os.path.isfile(path):
                    with open(path, encoding="utf-8") as file:
                        texts.append("\n".join(line for line in file.read().splitlines() if not line.lstrip().startswith("#")))
        found[role] = set(name.rstrip("./-") for name in WRITTEN.findall("\n".join(texts)))
    return found


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class LeftoversTest(unittest.TestCase):
    maxDiff = None

    def test_roles_write_or_remove_what_those_of_an_earlier_version_wrote(self):
        repository = os.path.dirname(runs.COLLECTION)
        archive = subprocess.run(["git", "-C", repository, "archive", EARLIER, "ansible"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if archive.returncode != 0:
            self.skipTest("the clone has no commit " + EARLIER)
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
            before, now = written(os.path.join(directory, "ansible")), written(runs.COLLECTION)
        self.assertGreater(sum(len(names) for names in before.values()), 100, "the names are not found any more")
        missing = {role: sorted(names - now.get(role, set())) for role, names in before.items()}
        self.assertEqual({role: names for role, names in missing.items() if names}, {role: sorted(names) for role, names in LEFT.items()},
                         "have the role remove it, or add it to LEFT with what becomes of it")


if __name__ == "__main__":
    unittest.main()
