"""The module that names a host for storage."""

import os
import unittest

import modules
import runs

INITIATOR = "iqn.1993-08.org.debian:01:abc"
NQN = "nqn.2014-08.org.nvmexpress:uuid:7c9a5e0c-3a44-4d9c-a7a5-5e2f0e2c9f10"


@runs.needs_ansible
class StorageNamesTest(modules.ModuleTest):
    MODULE = "storage_names"

    def setUp(self):
        super().setUp()
        self.command("iscsi-iname", "echo " + INITIATOR)

    def options(self, **options):
        return dict(dict(iscsi_directory=self.path("iscsi"), nvme_directory=self.path("nvme")), **options)

    def bring(self, **options):
        return [os.path.relpath(path, self.directory) for path in self.done(**self.options(**options))["changes"]]

    def names(self):
        return [self.read(name).strip() for name in ("iscsi/initiatorname.iscsi", "nvme/hostnqn", "nvme/hostid")]

    def test_new_ones_are_made_once(self):
        everything = ["iscsi/initiatorname.iscsi", "nvme/hostnqn", "nvme/hostid"]
        self.assertEqual((self.bring(check=True), os.path.exists(self.path("iscsi")), self.calls("iscsi")), (everything, False, []))
        self.assertEqual(self.bring(), everything)
        before = self.names()
        self.assertEqual((before[0], before[1]), ("InitiatorName=" + INITIATOR, "nqn.2014-08.org.nvmexpress:uuid:" + before[2]))
        self.assertEqual([oct(os.stat(self.path(name)).st_mode & 0o777) for name in everything], ["0o600", "0o644", "0o644"])
        self.command("iscsi-iname", "echo iqn.1993-08.org.debian:01:other")
        for check in (False, True):
            self.assertEqual((self.bring(check=check), self.names()), ([], before))

    def test_those_of_the_host_stay(self):
        self.write("iscsi/initiatorname.iscsi", "## DO NOT EDIT\nInitiatorName=%s\n" % INITIATOR)
        self.write("nvme/hostnqn", NQN + "\n")
        self.assertEqual(self.bring(), ["nvme/hostid"])
        self.assertEqual(self.names(), ["## DO NOT EDIT\nInitiatorName=" + INITIATOR, NQN, NQN[-36:]])
        self.assertEqual(self.bring(initiator_name=INITIATOR, host_nqn=NQN), [])
        for options, reason in (({"initiator_name": "iqn.2026-11.com.example:a"}, "edpm_storage_initiator_name is not the name in %s. Leave it out" % self.path("iscsi", "initiatorname.iscsi")),
                                ({"host_nqn": "nqn.2026-11.com.example:a"}, "edpm_storage_host_nqn is not the name in ")):
            self.assertIn(reason, self.failure(**self.options(**options)))

    def test_one_of_two_files_of_nvme(self):
        self.write("nvme/hostid", NQN[-36:] + "\n")
        self.assertEqual((self.bring(iscsi=False), self.read("nvme/hostnqn").strip()), (["nvme/hostnqn"], NQN))

    def test_what_is_asked_for(self):
        self.write("iscsi/initiatorname.iscsi", "GenerateName=yes\n")
        self.bring(initiator_name="iqn.2026-11.com.example:a", host_nqn="nqn.2026-11.com.example:a")
        self.assertEqual(self.names()[:2], ["InitiatorName=iqn.2026-11.com.example:a", "nqn.2026-11.com.example:a"])

    def test_parts(self):
        self.assertEqual(self.bring(iscsi=False, nvme=False), [])

    def test_what_is_not_valid(self):
        for name in ("iqn.2026-11.com.example:a\n", "iqn.2026-11.com.example:a b", "iqn.2026-11.com.example:A", "compute-0", "iqn.2026-11.com.example:" + "a" * 223,
                     "iqn.2026-11.com.example:a\nInitiatorName=b"):
            with self.subTest(name):
                self.assertIn("edpm_storage_initiator_name: ", self.failure(**self.options(initiator_name=name)))
        for name in ("nqn.2026-11.com.example", "nqn.2026-11.com.example:a\n", "uuid", "nqn.2026-11.com.example:$(id)"):
            with self.subTest(name):
                self.assertIn("edpm_storage_host_nqn: ", self.failure(**self.options(host_nqn=name)))
        self.command("iscsi-iname", "echo no random numbers >&2; exit 1")
        self.assertEqual(self.failure(**self.options()), "iscsi-iname made no name: no random numbers")


if __name__ == "__main__":
    unittest.main()
