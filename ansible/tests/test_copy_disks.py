"""The command of the login for disks of guests runs what nova sends, and nothing else."""

import importlib.util
import os
import random
import re
import unittest

ROLE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "roles", "edpm_migration")
SPEC = importlib.util.spec_from_file_location("copy_disks", os.path.join(ROLE, "files", "copy_disks.py"))
copy_disks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(copy_disks)

ALL = "/var/lib/nova/instances"
GUEST = ALL + "/0b7c7f1e-9f7d-4b0a-8d7e-3c1f2a4b5c6d"
PROBE = GUEST + "/0123456789abcdef0123456789abcdef.tmp"
SENT = ["touch " + PROBE, "rm " + PROBE, "mkdir -p " + GUEST, "rm -rf " + GUEST, "scp -r -t %s/disk" % GUEST, "scp -r -t %s/disk.eph0" % GUEST,
        "scp -r -t " + GUEST, "scp -r -f %s/_base/da39a3ee" % ALL, "scp -r -f %s/kernel" % GUEST, "scp -t %s/disk.info" % GUEST]
BY_RSYNC = ["rsync --server -rSze.iLsfxCIvu . %s/disk" % GUEST, "rsync --server -re.LsfxCIvu . %s/disk.info" % GUEST,
            "rsync --server -logDtpRre.iLsfxCIvu --no-implied-dirs . /", "rsync --server -logDtpre.iLsfxCIvu --delete . " + GUEST,
            "rsync --server -logDtpre.iLsfxCIvu --delete-excluded . %s/" % GUEST, "rsync --server --sender -rze.iLsfxCIvu . %s/_base/da39a3ee" % ALL]


class CopyDisksTest(unittest.TestCase):
    def test_what_nova_sends_is_run_as_it_is(self):
        for command in SENT:
            with self.subTest(command):
                self.assertEqual(copy_disks.arguments(command), command.split(" "))

    def test_links_that_rsync_sends_lead_nowhere(self):
        for command in BY_RSYNC:
            with self.subTest(command):
                self.assertEqual(copy_disks.arguments(command), ["rsync", "--server", "--munge-links"] + command.split(" ")[2:])

    def test_files_are_served_without_links_and_removals(self):
        found = copy_disks.arguments("sftp-server")
        self.assertTrue(found[0].endswith("/sftp-server"))
        self.assertEqual(found[1:4], ["-d", ALL, "-p"])
        for request in ("symlink", "hardlink", "remove", "rmdir", "rename", "posix-rename", "readlink"):
            self.assertNotIn(request, found[4].split(","))

    def test_everything_else_is_refused(self):
        other = "/var/lib/nova/instances-old/" + GUEST.rpartition("/")[2]
        for command in (
                "", " ", "id", "sh", "bash -i", "sh -c id", "-i", "sftp-server -R", "internal-sftp", "/usr/lib/openssh/sftp-server", "true; id", "true x",
                # Another place.
                "touch /etc/x", "rm -rf /", "rm -rf " + ALL, "rm -rf %s/" % ALL, "rm -rf " + ALL + "/_base", "mkdir -p " + ALL, "mkdir -p " + other, "rm -rf " + other,
                "rm -rf %s/../%s" % (GUEST, GUEST.rpartition("/")[2]), "rm -rf %s/.." % GUEST, "rm -rf %s/." % GUEST, "rm -rf %s/" % GUEST, "rm -rf /" + GUEST, "rm -rf ." + GUEST,
                "rm -rf %s_resize" % GUEST, "touch %s/disk" % GUEST, "rm %s/disk" % GUEST, "touch %s/../x.tmp" % GUEST, "mkdir -p %s/x" % GUEST, "scp -t " + ALL, "scp -r -t %s/_base/x" % ALL,
                "scp -r -t %s/.." % GUEST, "scp -r -t %s/." % GUEST, "scp -r -t %s/.ssh" % GUEST, "scp -r -t %s/a/b" % GUEST, "scp -r -t %s/../../.ssh/config" % GUEST,
                "scp -f /etc/shadow", "scp -r -f " + GUEST, "scp -r -f " + ALL, "scp -r -f %s/_base" % ALL, "scp -r -f %s/_base/../../../.ssh/edpm-migration" % ALL,
                # Other options and arguments.
                "rm -rf %s %s" % (GUEST, GUEST), "rm -rf -- " + GUEST, "rm -r " + GUEST, "mkdir " + GUEST, "touch -r /etc/passwd " + PROBE, "scp -S /bin/sh -t " + GUEST, "scp -o ProxyCommand=id -t " + GUEST,
                "scp -3 %s x:y" % GUEST, "scp -r -p -t " + GUEST, "scp -d -t " + GUEST, "scp " + GUEST, "/bin/rm -rf " + GUEST, "rm  -rf " + GUEST, " rm -rf " + GUEST, "rm\t-rf\t" + GUEST,
                # Shells.
                "rm -rf %s;id" % GUEST, "rm -rf %s && id" % GUEST, "rm -rf %s|id" % GUEST, "rm -rf $(id)", "rm -rf `id`", "rm -rf %s/*" % ALL, "rm -rf '%s'" % GUEST, "rm -rf %s\nid" % GUEST,
                "id\nrm -rf " + GUEST, "rm -rf %s\n" % GUEST, "rm -rf %s\r" % GUEST, "touch %s\n" % PROBE, "scp -r -t %s/disk\n" % GUEST, "rm -rf \\%s" % GUEST, "rm -rf %s #" % GUEST,
                "rm -rf " + GUEST.upper(), "rm -rf " + GUEST.replace("0", "\u0660"), "rm -rf " + GUEST + "\u2028", "rm\u00a0-rf " + GUEST, "\ufeffrm -rf " + GUEST, "rm -rf \ud800",
                # rsync
                "rsync --server --daemon .", "rsync --daemon", "rsync --server -logDtpre.iLsfxCIvu --log-file=/x . " + GUEST, "rsync --server -re.iLsfxCIvu --rsh=sh . " + GUEST,
                "rsync --server -re.iLsfxCIvu -e sh . " + GUEST, "rsync --server -re.iLsfxCIvu --config=x . " + GUEST, "rsync --server -se.iLsfxCIvu", "rsync --server -sre.iLsfxCIvu . " + GUEST,
                "rsync --server -re.iLsfxCIvu . /etc", "rsync --server -re.iLsfxCIvu . %s /etc" % GUEST, "rsync --server --sender -re.iLsfxCIvu . /", "rsync --server --sender -re.iLsfxCIvu . " + GUEST,
                "rsync --server --sender -re.iLsfxCIvu . %s/../x" % GUEST, "rsync --server -re.iLsfxCIvu --no-munge-links . " + GUEST, "rsync -a / x:y", "rsync --server -kre.iLsfxCIvu . " + GUEST,
        ):
            with self.subTest(command):
                self.assertIsNone(copy_disks.arguments(command))

    def test_nothing_made_of_parts_gets_further_than_a_guest(self):
        chance = random.Random(35)
        parts = SENT + BY_RSYNC + ["/", "..", ".", " ", "\n", "\0", ";", "$(id)", "%", "~", "*", "-", "--", "-e", "sh", "/etc", GUEST, ALL, "_base", "tmp", "\u0660", "\u00e9", "r", "0", "T"]
        for _ in range(50000):
            command = chance.choice(SENT + BY_RSYNC)
            for _ in range(chance.randint(1, 3)):
                at, length = chance.randint(0, len(command)), chance.choice((0, 0, 1, 8))
                command = command[:at] + chance.choice(parts) + command[at + length:]
            found = copy_disks.arguments(command)
            if found is None or found in (["true"], copy_disks.arguments("sftp-server")):
                continue
            self.assertIn(found[0], ("touch", "rm", "mkdir", "scp", "rsync"), command)
            for word in found[1:]:
                self.assertRegex(word, "\\A(?:-[A-Za-z0-9.-]+|\\.|/|%s(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*/?)\\Z" % re.escape(ALL), command)
                self.assertNotIn("..", word.split("/"), command)


if __name__ == "__main__":
    unittest.main()
