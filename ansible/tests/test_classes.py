"""The plays of classes of config/samples/classes on a real host, see realhost.py:

    EDPM_HOSTS_TEST=1 E2E_LONG=1 python3 ansible/tests/test_classes.py -v

What the operator does with classes is in test/e2e, and cinder-volume with a real database and message bus in test/e2e/openstack.
"""

import os
import unittest

import yaml

import realhost

CLASSES = os.path.join(os.path.dirname(realhost.COLLECTION), "config", "samples", "classes")


@realhost.long
class CinderVolumeTest(realhost.HostTest):
    """A host has cinder-volume, and has it no more. The tests build on each other.

    Cinder has a database of its own on the host, and no message bus. The logical volume is in the metadata alone, which needs no device mapper.
    """

    IMAGES = ("cinder-volume",)
    DIRECTORY = "/var/lib/openstack/cinder-volume"
    SECRET = "[DEFAULT]\ntransport_url = fake:/\n[database]\nconnection = sqlite:////var/lib/cinder/cinder.sqlite\n"
    CINDER = "cinder-manage --config-file /dev/null --config-dir /etc/cinder/cinder.conf.d "

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Loop devices are those of the machine: hosts that were killed have left theirs.
        cls.nothing = cls.left()
        cls.addClassCleanup(cls.host, "systemctl stop edpm_cinder-volume edpm_cinder-volume-tgtd edpm-cinder-volume-storage", check=False)
        with open(os.path.join(CLASSES, "edpm_v1beta1_edpmserviceclass_cinder_volume.yaml"), encoding="utf-8") as file:
            cls.spec = yaml.safe_load(file)["spec"]
        for name, text in {"play.yml": cls.spec["play"], "cleanup.yml": cls.spec["cleanupPlay"], "00-cinder.conf": cls.SECRET,
                           "01-cinder-volume.conf": cls.spec["customServiceConfig"]}.items():
            with open(cls.path(name), "w", encoding="utf-8") as file:
                file.write(text)

    def play(self, name, *arguments):
        files = {file: self.path(file) for file in ("00-cinder.conf", "01-cinder-volume.conf")}
        return self.succeeds(self.path(name), *arguments, edpm_service_name="cinder-volume", edpm_service_image=self.spec["image"],
                             edpm_config_files=files, **self.spec["vars"])

    def lvm(self, command):
        return self.host("podman exec edpm_cinder-volume " + command)

    def is_up(self):
        """Waits until cinder has the service as one that reports."""
        self.host("for i in $(seq 60); do podman exec edpm_cinder-volume %s service list 2>/dev/null | grep -q '^cinder-volume *host@lvm .* :-) ' && exit; sleep 1; done; "
                  "journalctl --no-pager -n 60 -u 'edpm*cinder*'; exit 1" % self.CINDER)
        self.assertEqual(self.lvm("vgs --noheadings --options vg_name").split(), ["cinder-volumes"])

    @classmethod
    def left(cls):
        return cls.host("losetup --noheadings --output BACK-FILE | grep cinder-volume/volumes.img; ls -d /etc/systemd/system/*cinder* %s"
                         " /var/lib/edpm/services/cinder-volume* /run/edpm-cinder-volume /dev/*cinder* 2>/dev/null; podman ps --all --quiet; true" % cls.DIRECTORY)

    def test_1_a_check_changes_nothing(self):
        self.assertNotEqual(self.play("play.yml", "--check").changed, [])
        self.assertEqual(self.left(), self.nothing)

    def test_2_deployed(self):
        self.put("/run/cinder.conf", self.SECRET)
        self.host("mkdir -p {0}/state && podman run --rm --network=none --volume={0}/state:/var/lib/cinder --volume=/run/cinder.conf:/run/cinder.conf:ro {1}"
                  " cinder-manage --config-file /run/cinder.conf db sync 2>&1".format(self.DIRECTORY, self.spec["image"]))
        self.play("play.yml")
        self.is_up()
        self.assertEqual(self.play("play.yml").changed, [])
        self.assertEqual(self.play("play.yml", "--check").changed, [])

    def test_3_after_a_reboot(self):
        realhost.sh("podman", "restart", realhost.NAME)
        self.wait()
        self.is_up()
        self.assertEqual(self.play("play.yml").changed, [])

    def test_4_volumes_stay(self):
        self.lvm("lvcreate --driverloaded n --activate n --zero n --wipesignatures n --size 4m --name volume-1 cinder-volumes")
        result = self.play("cleanup.yml")
        self.assertIn("volumes.img and its volume group stay", result.output)
        self.assertEqual(self.host("systemctl is-active edpm_cinder-volume edpm-cinder-volume-storage", check=False).split(), ["inactive", "active"])
        self.assertEqual(self.play("cleanup.yml").changed, [])
        self.play("play.yml")
        self.is_up()
        self.assertEqual(self.lvm("lvs --noheadings --options lv_name").split(), ["volume-1"])

    def test_5_removed(self):
        self.lvm("lvremove --driverloaded n --yes cinder-volumes/volume-1")
        self.play("cleanup.yml")
        self.assertEqual(self.left(), self.nothing)
        self.assertEqual(self.play("cleanup.yml").changed, [])


if __name__ == "__main__":
    unittest.main()
