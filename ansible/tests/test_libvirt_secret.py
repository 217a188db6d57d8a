"""The module that gives libvirt the key of a user of Ceph, with a virsh that keeps secrets in files of the test."""

import json
import os
import unittest

import modules
import runs

UUID = "0b7c1d4e-5a3f-4c6b-9d21-7f0e8a9b1c2d"
KEY = "AQBSdFhWAAAAABAAuXkbWDhaKQZ2W5Z0bm5sZQ=="
OTHER = "AQBSdFhWAAAAABAAb3RoZXJvdGhlcm90aGVyb3RoZQ=="
# The last word of virsh is a file, or the UUID.
PODMAN = r"""cd %s
case "$1 $2" in "ps --format") cat running; exit;; esac
while [ "$1" != qemu:///system ]; do shift; done
shift
case "$1" in
secret-get-value) [ -e "value-$2" ] || { echo "error: Secret not found" >&2; exit 1; }; cat "value-$2";;
secret-define) cat > defined;;
secret-set-value) [ ! -e broken ] || cat >/dev/null; [ ! -e broken ] || { echo "error: no space left" >&2; exit 1; }; cat > "value-$3";;
esac"""


@runs.needs_ansible
class LibvirtSecretTest(modules.ModuleTest):
    MODULE = "libvirt_secret"

    def setUp(self):
        super().setUp()
        self.command("podman", PODMAN % self.directory)
        self.write("running", "edpm_nova_compute\nedpm_libvirt_libvirtd\n")
        self.write("ceph/ceph.conf", "[global]\nfsid = %s\nmon_host = 192.0.2.1\n" % UUID)
        self.keyring(KEY)

    def keyring(self, key, user="openstack"):
        self.write("ceph/ceph.client.%s.keyring" % user, '[client.%s]\n\tkey = %s\n\tcaps mon = "profile rbd"\n' % (user, key))

    def options(self, **options):
        return dict(dict(user="openstack", directory=self.path("ceph"), podman=self.path("bin", "podman")), **options)

    def bring(self, **options):
        answer = self.done(**self.options(**options))
        self.assertNotIn(KEY, json.dumps(answer))
        self.assertNotIn(KEY, "\n".join(self.calls()), "the key is an argument")
        return answer["changed"]

    def value(self, uuid=UUID):
        return os.path.exists(self.path("value-" + uuid)) and self.read("value-" + uuid)

    def test_a_secret_is_defined_once(self):
        self.assertEqual((self.bring(check=True), self.value()), (True, False))
        self.assertEqual((self.bring(), self.value()), (True, KEY))
        self.assertIn("<uuid>%s</uuid><usage type='ceph'><name>client.openstack secret</name>" % UUID, self.read("defined"))
        for check in (False, True):
            self.assertFalse(self.bring(check=check))

    def test_another_key(self):
        self.keyring(OTHER)
        self.bring()
        self.keyring(KEY)
        self.assertEqual((self.bring(), self.value()), (True, KEY))

    def test_a_run_that_ended_before_it_had_a_value(self):
        self.write("broken", "")
        self.assertEqual(self.failure(**self.options()), "virsh secret-set-value failed: error: no space left")
        os.unlink(self.path("broken"))
        self.assertTrue(self.bring())

    def test_the_container(self):
        self.write("running", "edpm_libvirt_libvirtd\nedpm_libvirt_virtqemud\n")
        self.done(**self.options())
        self.assertTrue(all("--user root edpm_libvirt_virtqemud virsh" in call for call in self.calls("podman exec")))

    def test_check_mode_before_the_files_are_copied(self):
        os.unlink(self.path("ceph", "ceph.client.openstack.keyring"))
        os.unlink(self.path("ceph", "ceph.conf"))
        self.assertTrue(self.bring(check=True))
        self.write("running", "")
        self.assertFalse(self.bring(check=True))

    def test_where_libvirt_does_not_run(self):
        self.write("running", "edpm_nova_compute\n")
        self.assertFalse(self.bring())
        self.assertFalse(self.bring(podman="/nonexistent/podman"))

    def test_another_uuid(self):
        uuid = UUID.replace("0", "1")
        self.bring(uuid=uuid.upper())
        self.assertEqual((self.value(uuid), self.value()), (KEY, False))

    def test_what_is_missing_or_not_valid(self):
        for options, reason in (({"user": "nobody"}, "ceph.client.nobody.keyring has no key."), ({"user": "../x"}, "is not the name of a Ceph user"),
                                ({"user": "a\n"}, "is not the name of a Ceph user"), ({"uuid": "x"}, "x is not a UUID")):
            with self.subTest(options):
                self.assertIn(reason, self.failure(**self.options(**options)))
        self.keyring("short")
        self.assertIn("has no key", self.failure(**self.options()))
        self.write("ceph/ceph.conf", "[global]\n")
        self.assertIn("ceph.conf has no fsid", self.failure(**self.options()))


if __name__ == "__main__":
    unittest.main()
