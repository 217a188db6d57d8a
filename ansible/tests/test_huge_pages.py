"""The module that reserves huge pages, with a kernel that is files of the test."""

import os
import unittest

import modules
import runs


@runs.needs_ansible
class HugePagesTest(modules.ModuleTest):
    MODULE = "huge_pages"
    SIZES = {"2M": "hugepages-2048kB", "1G": "hugepages-1048576kB"}

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("tmpfiles.d"))
        for place in ("kernel/mm", "devices/system/node/node0", "devices/system/node/node1"):
            for size in self.SIZES.values():
                self.write("sys/%s/hugepages/%s/nr_hugepages" % (place, size), "0\n")
                self.write("sys/%s/hugepages/%s/surplus_hugepages" % (place, size), "0\n")

    def pages(self, *entries):
        return [dict(zip(("size", "count", "node"), entry)) for entry in entries]

    def options(self, *entries, **options):
        return dict({"pages": self.pages(*entries), "path": self.path("tmpfiles.d", "pages.conf"), "sys": self.path("sys")}, **options)

    def bring(self, *entries, **options):
        return self.done(**self.options(*entries, **options))["changes"]

    def reserved(self, size="2M", place="kernel/mm"):
        return int(self.read("sys/%s/hugepages/%s/nr_hugepages" % (place, self.SIZES[size])))

    def setting(self):
        return os.path.exists(self.path("tmpfiles.d", "pages.conf")) and self.read("tmpfiles.d/pages.conf").splitlines()[1:]

    def test_they_are_reserved_now_and_at_boot(self):
        path = self.path("tmpfiles.d", "pages.conf")
        self.assertEqual((self.bring(("2M", 512), check=True), self.reserved(), self.setting()), (["2M 0 -> 512", "write " + path], 0, False))
        self.assertEqual((self.bring(("2M", 512)), self.reserved()), (["2M 0 -> 512", "write " + path], 512))
        self.assertEqual(self.setting(), ["w %s/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 512" % self.path("sys")])
        for check in (False, True):
            self.assertEqual(self.bring(("2M", 512), check=check), [])
        self.assertEqual((self.bring(("1G", 4)), self.reserved(), self.reserved("1G")), (["hugepages-2048kB 512 -> 0", "1G 0 -> 4", "write " + path], 0, 4))
        self.assertEqual((self.bring(), self.reserved("1G"), self.setting()), (["hugepages-1048576kB 4 -> 0", "remove " + path], 0, False))
        self.assertEqual(self.bring(), [])

    def test_what_others_reserved_stays(self):
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "7\n")
        self.bring(("1G", 1))
        self.bring()
        self.assertEqual(self.reserved(), 7)

    def test_nodes(self):
        self.bring(("1G", 2, 0), ("1G", 3, 1), ("2M", 5))
        self.assertEqual([self.reserved("1G", "devices/system/node/node%d" % node) for node in (0, 1)], [2, 3])
        self.assertEqual(self.reserved(), 5)
        self.assertEqual(self.bring(("1G", 2, 0), ("2M", 5))[0], "hugepages-1048576kB 3 -> 0")

    def test_pages_in_use_that_are_released_later_are_no_difference(self):
        self.bring(("2M", 4))
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "9\n")
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages", "5\n")
        self.assertEqual(self.bring(("2M", 4)), [])

    def test_too_few(self):
        self.write("sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages", "3\n")
        message = self.failure(**self.options(("2M", 8)))
        self.assertIn("Only 5 of 8 huge pages of 2M", message)
        self.assertIn("- - - - 8", self.setting()[0], "at the next boot they are reserved")

    def test_what_is_not_valid(self):
        for entries, reason in (((("3M", 1),), "the host has no huge pages of 3M. It has: hugepages-1048576kB, hugepages-2048kB"),
                                ((("2M", 1, 7),), "the host has no huge pages of 2M on NUMA node 7. It has: none"),
                                ((("2M", -1),), "are not valid"), ((("2M/../../x", 1),), "are not valid"), ((("2M", 1, -1),), "are not valid"),
                                ((("2M", 1), ("2M", 2)), "give pages of one size once"), ((("2048K", 1), ("2M", 2)), "give pages of one size once"),
                                ((("2M", 1), ("2M", 2, 0)), "give pages of one size once")):
            with self.subTest(entries):
                self.assertIn(reason, self.failure(**self.options(*entries)))
        self.assertEqual(self.reserved(), 0)


if __name__ == "__main__":
    unittest.main()
