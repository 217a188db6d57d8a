"""The module that sets kernel arguments, with boot loaders that keep them in files of the test."""

import json
import os
import unittest

import modules
import runs

# A grubby of one kernel, which has one value for each name.
GRUBBY = r"""cd %s
[ "$1" != --info=ALL ] || { printf 'index=0\nargs="%%s"\nroot="UUID=1"\n' "$(cat entry)"; exit; }
for each; do case "$each" in
--remove-args=*) for word in ${each#--remove-args=}; do sed -i "s,^,  ,; s,\$,  ,; s, $word , ,g; s,^ *,,; s, *\$,," entry; done;;
--args=*) for word in ${each#--args=}; do name=${word%%%%=*}; sed -i "s,^, ,; s,\$, ,; s, $name=[^ ]* , ,; s,^ *,,; s, *\$,," entry; echo "$(cat entry) $word" > entry; done;;
esac; done"""


@runs.needs_ansible
class ArgumentsTest(modules.ModuleTest):
    MODULE = "kernel_arguments"

    def setUp(self):
        super().setUp()
        self.write("sys/devices/system/cpu/present", "0-7\n")
        self.boots("BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet", "boot1")

    def boots(self, line, boot):
        self.write("proc/cmdline", line + "\n")
        self.write("proc/sys/kernel/random/boot_id", boot + "\n")

    def options(self, *arguments, **options):
        return dict({"arguments": list(arguments), "grub_directory": self.path("grub.d"), "record": self.path("state", "record"),
                     "proc": self.path("proc"), "sys": self.path("sys")}, **options)

    def bring(self, *arguments, **options):
        answer = self.done(**self.options(*arguments, **options))
        self.assertEqual((answer["changed"], bool(answer["edpm_note"])), (bool(answer["changes"]), bool(answer["pending"])))
        return answer["changes"], answer["pending"]

    def fails(self, *arguments, **options):
        return self.failure(**self.options(*arguments, **options))

    def files(self):
        return sorted(os.path.join(place, name) for place, _, names in os.walk(self.directory) for name in names if "collections" not in place)


class DebianTest(ArgumentsTest):
    def setUp(self):
        super().setUp()
        self.command("update-grub", "[ ! -e %s ] || { echo disk is full >&2; exit 1; }" % self.path("full"))

    def grub(self):
        path = self.path("grub.d", "90-edpm.cfg")
        return self.read("grub.d/90-edpm.cfg").splitlines()[1:] if os.path.exists(path) else None

    def test_they_are_added_and_removed(self):
        before = self.files()
        self.assertEqual(self.bring("iommu=pt", "nosmt", check=True), (["add iommu=pt", "add nosmt"], ["+iommu=pt", "+nosmt"]))
        self.assertEqual(self.files(), before, "check mode changes nothing")
        self.assertEqual(self.bring("iommu=pt", "nosmt"), (["add iommu=pt", "add nosmt"], ["+iommu=pt", "+nosmt"]))
        self.assertEqual(self.grub(), ['GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt nosmt"'])
        self.assertEqual(self.calls(), ["update-grub "])
        for check in (False, True):
            self.assertEqual(self.bring("iommu=pt", "nosmt", check=check), ([], ["+iommu=pt", "+nosmt"]), "it stays pending until the host is booted")
        self.boots("ro quiet iommu=pt nosmt", "boot2")
        self.assertEqual(self.bring("iommu=pt", "nosmt"), ([], []))
        self.assertEqual(self.bring("iommu=pt"), (["remove nosmt"], ["-nosmt"]))
        self.assertEqual(self.bring("iommu=pt"), ([], ["-nosmt"]))
        self.boots("ro quiet iommu=pt", "boot3")
        self.assertEqual(self.bring("iommu=pt"), ([], []))
        self.assertEqual(self.bring(), (["remove iommu=pt"], ["-iommu=pt"]))
        self.assertIsNone(self.grub())

    def test_what_is_taken_back_before_the_boot_is_not_pending(self):
        self.bring("nosmt")
        self.assertEqual(self.bring(), (["remove nosmt"], []))

    def test_what_others_set_as_well_is_no_reason_to_boot_twice(self):
        self.boots("ro nosmt", "boot1")
        self.bring("nosmt", "iommu=pt")
        self.boots("ro nosmt iommu=pt", "boot2")
        self.assertEqual(self.bring("iommu=pt"), (["remove nosmt"], ["-nosmt"]))
        self.boots("ro nosmt iommu=pt", "boot3")
        self.assertEqual(self.bring("iommu=pt"), ([], []))
        self.assertEqual(self.bring("iommu=pt", "quiet"), (["add quiet"], ["+quiet"]))

    def test_a_run_that_ended_early_is_completed(self):
        self.write("full", "")
        self.assertEqual(self.fails("nosmt"), "update-grub failed with exit code 1: disk is full")
        os.unlink(self.path("full"))
        # What it may have added is removed, too.
        self.assertEqual(self.bring("iommu=pt"), (["remove nosmt", "add iommu=pt"], ["+iommu=pt"]))
        self.write("full", "")
        self.fails()
        os.unlink(self.path("full"))
        self.calls()
        self.assertEqual(self.bring(), (["remove iommu=pt"], []))
        self.assertEqual(self.calls(), ["update-grub "])

    def test_a_file_that_somebody_changed(self):
        self.bring("nosmt")
        self.write("grub.d/90-edpm.cfg", "")
        self.assertEqual(self.bring("nosmt")[0], ["update the boot loader"])
        self.assertIn("nosmt", self.grub()[0])

    def test_a_damaged_record(self):
        self.bring("nosmt")
        for text in ("{", "[1]", '{"arguments": 7}'):
            self.write("state/record", text)
            self.bring("nosmt")
            self.assertEqual(self.bring("nosmt"), ([], ["+nosmt"]))

    def test_a_host_that_boots_something_else_is_not_booted_again(self):
        self.bring("nosmt", "iommu=pt")
        self.boots("ro quiet iommu=pt", "boot2")
        self.assertIn("See which entry or other boot loader it uses. Missing: nosmt", self.fails("nosmt", "iommu=pt"))

    def test_isolated_cpus(self):
        self.assertEqual(self.bring("nosmt", isolated_cpus="1,4-7")[1],
                         ["+nosmt", "+isolcpus=managed_irq,domain,1,4-7", "+nohz_full=1,4-7", "+rcu_nocbs=1,4-7"])
        for text, reason in (("4-9", "4-9 are not all CPUs of the host, which has 0 to 7"), ("0-7", "0-7 are all CPUs of the host. Leave some"),
                             ("7-4", "are not all CPUs"), ("2-", "'2-' is not a list of CPUs"), ("2\n", "is not a list"), ("1-99999", "is not a list")):
            with self.subTest(text):
                self.assertIn("edpm_kernel_isolated_cpus: ", self.fails(isolated_cpus=text))
                self.assertIn(reason, self.fails(isolated_cpus=text))

    def test_what_is_no_argument(self):
        for word in ("a b", "a$(reboot)", 'a"', "a'", "a;b", "a\n", "a`b`", "a\\", "", "=a", "-a", "a=\x1b[1m", "a#b", "a|b", "a>b"):
            with self.subTest(word):
                self.assertIn("is not a kernel argument", self.fails(word))
        for word in ("root=/dev/sda", "init=/bin/sh", "rdinit", "initrd=x", "BOOT_IMAGE=x"):
            with self.subTest(word):
                self.assertIn("belongs to the boot loader", self.fails(word))
        self.assertEqual((self.calls(), self.grub()), ([], None))


class RedHatTest(ArgumentsTest):
    def setUp(self):
        super().setUp()
        self.write("entry", "ro crashkernel=1G $tuned_params\n")
        self.command("grubby", GRUBBY % self.directory)
        self.command("update-grub", "exit 1")

    def test_they_are_added_and_removed(self):
        self.assertEqual(self.bring("iommu=pt", "hugepages=4"), (["add iommu=pt", "add hugepages=4"], ["+iommu=pt", "+hugepages=4"]))
        self.assertEqual(self.read("entry"), "ro crashkernel=1G $tuned_params iommu=pt hugepages=4\n")
        self.assertEqual(self.bring("iommu=pt", "hugepages=4")[0], [])
        self.calls()
        self.assertEqual(self.bring("iommu=pt", "hugepages=8")[0], ["remove hugepages=4", "add hugepages=8"])
        self.assertEqual([call for call in self.calls() if "--info" not in call],
                         ["grubby --update-kernel=ALL --remove-args=hugepages=4 --args=iommu=pt hugepages=8"])
        self.assertEqual(self.bring()[0], ["remove iommu=pt", "remove hugepages=8"])
        self.assertEqual(self.read("entry").strip(), "ro crashkernel=1G $tuned_params")

    def test_a_kernel_that_was_installed_without_them(self):
        self.bring("iommu=pt")
        self.write("entry", "ro\n")
        self.assertEqual(self.bring("iommu=pt")[0], ["update the boot loader"])

    def test_a_name_that_is_given_twice(self):
        self.assertIn("It has one value for each name", self.fails("hugepagesz=2M", "hugepages=4", "hugepagesz=1G", "hugepages=2"))
        self.assertFalse(json.loads(self.read("state/record"))["complete"])


class NoBootLoaderTest(ArgumentsTest):
    def module(self, check=False, **arguments):
        # That of this machine is none of the test's.
        before = os.environ["PATH"]
        os.environ["PATH"] = self.path("bin")
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        return super().module(check, **arguments)

    @unittest.skipIf(any(os.path.exists(os.path.join(place, name)) for place in ("/sbin", "/usr/sbin") for name in ("grubby", "update-grub")),
                     "this machine has a boot loader, which the module finds")
    def test_it_is_needed_for_arguments_only(self):
        self.assertEqual(self.bring(), ([], []))
        self.assertIn("neither grubby nor update-grub", self.fails("nosmt"))


if __name__ == "__main__":
    unittest.main()
