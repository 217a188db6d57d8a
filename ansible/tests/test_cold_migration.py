"""nova copies disks of guests from one real host to another, with what nova-compute of the image runs, and can do nothing else there."""

import json
import os
import subprocess
import unittest
import uuid

import realhost
from realhost import sh

IMAGE = "localhost/edpm-nova-compute:latest"
INSTANCES = "/var/lib/nova/instances/"
PORT = 2022
MARK = "known only to the host"


class Other(realhost.HostTest):
    """The host to which guests are moved."""

    name, address, IMAGES = realhost.NAME + "-b", realhost.SUBNET + ".11", ("nova",)


class ColdMigrationTest(realhost.HostTest):
    """The tests build on each other."""

    IMAGES = ("nova",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        Other.directory = cls.directory
        sh("podman", "rm", "--force", "--volumes", "--time", "0", Other.name, check=False)
        cls.addClassCleanup(sh, "podman", "rm", "--force", "--volumes", "--time", "0", Other.name, check=False)
        Other.start()
        Other.wait()
        cls.keys = {name: cls.key(name) for name in ("first", "second")}
        cls.uid = cls.host("podman run --rm --network none --entrypoint id %s -u nova" % IMAGE).splitlines()[-1]
        for host in (cls, Other):
            host.host("install -d -m 755 -o {0} -g {0} /var/lib/nova /var/lib/nova/instances; umask 77; echo '{1}' > /root/secret; umask 22; echo '{1}' > /etc/for-all;"
                      "install -d /var/lib/openstack/nova; echo '{1}' > /var/lib/openstack/nova/01-nova.conf; chown -R root:{0} /var/lib/openstack".format(cls.uid, MARK))
            host.host("d=/var/lib/libvirt/pki; mkdir -p $d/CA $d/libvirt/private; cd $d; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
                      " -subj /CN=x -keyout libvirt/private/clientkey.pem -out libvirt/clientcert.pem 2>&1; cp libvirt/clientcert.pem CA/cacert.pem")
        container = cls.host("podman run --detach --network host --volume /var/lib/nova:/var/lib/nova --volume /tmp:/tmp --entrypoint sleep %s infinity" % IMAGE).splitlines()[-1]
        cls.inside = "cd /; nsenter --mount --root --wd --target %s setpriv --reuid nova --regid nova --init-groups" % cls.host(
            "podman inspect --format '{{.State.Pid}}' " + container).splitlines()[-1]

    @classmethod
    def key(cls, name):
        sh("rm", "-f", cls.path(name))
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", cls.path(name))
        return cls.path(name)

    @classmethod
    def write(cls, name, text):
        with open(cls.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return cls.path(name)

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            return file.read().strip()

    def bring(self, host, present="first", previous=None, peers=(), known=None):
        """Runs the step on a host, with files as the operator writes them."""
        accepted = [self.read(self.keys[name] + ".pub") for name in (present, previous) if name]
        limit = 'restrict,command="/etc/ssh/copy_disks",from="%s" ' % ",".join(peers or (self.address, Other.address))
        hosts = {each.address: known or " ".join(each.host("cat /etc/ssh/ssh_host_ed25519_key.pub").split()[:2]) for each in (ColdMigrationTest, Other)}
        files = {"ssh-privatekey": self.keys[present], "authorized_keys": self.write("authorized_keys", "".join(limit + key + "\n" for key in accepted)),
                 "known_hosts": self.write("known_hosts", "".join("[%s]:%d %s\n" % (address, PORT, key) for address, key in hosts.items()))}
        if previous:
            files["previous"] = self.keys[previous]
        self.address, before = host.address, self.address
        try:
            return self.succeeds("live_migration", edpm_config_files=files, edpm_nova_compute_image=IMAGE, edpm_migration_ssh_port=PORT,
                                 edpm_migration_address=host.address, edpm_migration_peers={"a": before, "b": Other.address})
        finally:
            self.address = before

    def nova(self, *command, check=True):
        """Runs a command as nova-compute does, in its image and as its user."""
        return self.host("%s %s 2>&1" % (self.inside, " ".join("'%s'" % word for word in command)), check=check)

    def peer(self, *command, check=True):
        return self.nova("ssh", "-o", "BatchMode=yes", Other.address, *command, check=check)

    def disk(self):
        """Makes the directory of a guest as it is when nova moves it, and returns its path."""
        base = INSTANCES + str(uuid.uuid4())
        self.nova("sh", "-c", "mkdir {0}_resize; cd {0}_resize; head -c 5000000 /dev/urandom > disk; truncate -s 50M disk; echo {{}} > disk.info; mkdir swtpm; echo state > swtpm/tpm2".format(base))
        return base

    def same(self, base, name):
        digest = "sha256sum < %s/%s"
        self.assertEqual(Other.host(digest % (base, name)), self.host(digest % (base + "_resize", name)))
        self.assertEqual(Other.host("stat -c %%u %s/%s" % (base, name)), self.uid)

    def test_1_disks_are_copied(self):
        for host in (ColdMigrationTest, Other):
            self.bring(host)
        base = self.disk()
        probe = base + "/" + uuid.uuid4().hex + ".tmp"
        self.assertIn("No such file", self.peer("touch", probe, check=False))
        self.peer("mkdir", "-p", base)
        self.peer("touch", probe)
        Other.host("test -f " + probe)
        self.peer("rm", probe)
        for transport in ((), ("-O",)):  # nova uses the default of scp, which was -O in earlier releases
            self.nova("scp", "-C", *transport, "-r", base + "_resize/disk", "%s:%s/disk" % (Other.address, base))
            self.nova("scp", *transport, "-r", base + "_resize/disk.info", "%s:%s/disk.info" % (Other.address, base))
            self.nova("scp", "-C", *transport, "-r", base + "_resize/swtpm", "%s:%s" % (Other.address, base))
            for name in ("disk", "disk.info", "swtpm/tpm2"):
                self.same(base, name)
            self.peer("rm", "-rf", base)
            Other.host("test ! -e " + base)
            self.peer("mkdir", "-p", base)
        Other.host("install -d -o {0} {1}_base; echo image > {1}_base/0a1b; chown {0} {1}_base/0a1b".format(self.uid, INSTANCES))
        self.nova("scp", "-C", "-r", "%s:%s_base/0a1b" % (Other.address, INSTANCES), base + "_resize/base")
        self.assertEqual(self.host("cat %s_resize/base" % base), "image")

    def test_1_nothing_changes_in_another_run(self):
        self.assertEqual(self.bring(Other).changed, [])

    def test_2_rsync_copies_them_as_well(self):
        # Hosts of the tests have no rsync: that of the image, with what it is linked to.
        Other.host("""set -e; podman run --name rsync --network none %s true; root=$(podman mount rsync); mkdir -p /usr/lib/rsync
            cp -L $root/usr/bin/rsync $(chroot $root ldd /usr/bin/rsync | grep -o '/[^ ]*' | sed "s|^|$root|") /usr/lib/rsync
            printf '#!/bin/sh\\nexec /usr/lib/rsync/ld-linux-x86-64.so.2 --library-path /usr/lib/rsync /usr/lib/rsync/rsync "$@"\\n' > /usr/bin/rsync
            chmod +x /usr/bin/rsync; podman umount rsync; podman rm rsync""" % IMAGE)
        base = self.disk()
        remote, empty = Other.address + ":", "/tmp/" + uuid.uuid4().hex
        probe = uuid.uuid4().hex + ".tmp"
        # As RsyncDriver of nova/virt/libvirt/volume/remotefs.py.
        self.nova("mkdir", "-p", empty + "/dir" + base, empty + "/none")
        self.nova("rsync", "--archive", "--relative", "--no-implied-dirs", "%s/dir/.%s" % (empty, base), remote + "/")
        self.nova("sh", "-c", "mkdir -p {0}/file{1}; touch {0}/file{1}/{2}".format(empty, base, probe))
        self.nova("rsync", "--archive", "--relative", "--no-implied-dirs", "%s/file/.%s/%s" % (empty, base, probe), remote + "/")
        Other.host("test -f %s/%s" % (base, probe))
        self.nova("rsync", "--archive", "--delete", "--include", probe, "--exclude", "*", empty + "/none/", remote + base)
        Other.host("test ! -e %s/%s" % (base, probe))
        self.nova("rsync", "-r", "--sparse", base + "_resize/disk", remote + base + "/disk", "--compress")
        self.nova("rsync", "-r", "--sparse", base + "_resize/disk.info", remote + base + "/disk.info")
        self.same(base, "disk")
        self.same(base, "disk.info")
        self.nova("rsync", "--archive", "--delete-excluded", empty + "/none/", remote + base)
        self.nova("rsync", "--archive", "--delete", "--include", os.path.basename(base), "--exclude", "*", empty + "/none/", remote + INSTANCES.rstrip("/"))
        Other.host("test ! -e " + base)

    def test_3_everything_else_is_refused(self):
        guest = INSTANCES + str(uuid.uuid4())
        self.peer("mkdir", "-p", guest)
        Other.host("ln -s /etc {0}/link; ln -s /var/lib/openstack/nova/01-nova.conf {0}/file; ln -s / {0}/root; chown -h {1} {0}/*".format(guest, self.uid))
        kept = "find / -xdev -newer /run/before -not -path '/run/*' -not -path '/proc/*' -not -path '/var/log/*' -not -path '/var/lib/nova/*' -type f"
        Other.host("sleep 1; touch /run/before; sleep 1")
        for command in (("id",), ("sh", "-c", "id"), ("touch", "/tmp/x"), ("touch", guest + "/../../x"), ("touch", guest + "/link/x"), ("mkdir", "-p", INSTANCES + "../x"),
                        ("rm", "-rf", INSTANCES), ("rm", "-rf", guest + "; id"), ("mkdir", "-p", guest + "\nid"), ("rm", "-rf", guest, "/etc"), ("scp", "-f", "/etc/for-all"),
                        ("scp", "-t", "/etc"), ("scp", "-f", guest + "/../../../../etc/for-all"), ("rsync", "--server", "--daemon", "."), ("",),
                        ("rsync", "--server", "-logDtpre.iLsfxC", "--log-file=/tmp/x", ".", guest), ("cat", guest + "/file"), ("sftp-server", "-R"), ("internal-sftp",)):
            with self.subTest(command):
                out = self.peer("--", *command, check=False)
                self.assertNotIn("uid=", out)
                self.assertNotIn(MARK, out)
                self.assertIn("copies disks of guests of nova, and runs nothing else", out)
        with self.subTest("other users"):
            self.assertIn("Permission denied", self.nova("ssh", "-o", "BatchMode=yes", "-l", "root", Other.address, "true", check=False))
        with self.subTest("the port of the host"):
            self.assertIn("Permission denied", self.nova("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-p", "22", Other.address, "true", check=False))
        with self.subTest("a terminal and forwarding"):
            self.assertNotIn(MARK, self.nova("timeout", "5", "ssh", "-tt", Other.address, check=False))
            self.assertIn("administratively prohibited", self.nova("timeout", "5", "ssh", "-W", "127.0.0.1:22", Other.address, check=False))
        for path in ("/etc/for-all", "/root/secret", "/var/lib/openstack/nova/01-nova.conf", guest + "/file", guest + "/link/for-all", guest + "/root/etc/for-all",
                     guest + "/../../../../etc/for-all", "/proc/1/root/etc/for-all", "/proc/self/root/etc/for-all", "/etc/ssh/ssh_host_ed25519_key"):
            for transport in ((), ("-O",)):
                with self.subTest(path, transport=transport):
                    self.assertNotEqual(self.nova("sh", "-c", 'rm -f /tmp/got; scp %s %s:"%s" /tmp/got && cat /tmp/got || echo refused' % (
                        " ".join(transport), Other.address, path), check=False).splitlines()[-1:], [MARK])
        for batch in ("symlink /etc {0}/made", "ln /etc/passwd {0}/made", "rename {0}/link {0}/made", "put /etc/passwd /etc/made", "put /etc/passwd /usr/bin/made",
                      "put /etc/passwd {0}/link/made", "put /etc/passwd {0}/root/tmp/made", "rm {0}/link", "mkdir /made"):
            with self.subTest(batch):
                self.nova("sh", "-c", "echo %s | sftp -b - %s; true" % (batch.format(guest), Other.address), check=False)
                Other.host("test ! -e {0}/made && test -L {0}/link".format(guest))
        with self.subTest("links by rsync"):
            self.nova("sh", "-c", "mkdir -p /tmp/links; ln -sf /etc/for-all /tmp/links/made; rsync -a /tmp/links/made %s:%s/disk" % (Other.address, guest), check=False)
            self.assertNotIn(MARK, Other.host("cat %s/disk" % guest, check=False))
        self.assertEqual(Other.host(kept, check=False), "")
        with self.subTest("nothing else can be written or has secrets"):
            inside = "nsenter --target $(systemctl show --property MainPID --value edpm-migration-sshd) --mount --root --wd"
            found = Other.host("cd /; {0} setpriv --reuid {1} --regid {1} --clear-groups find / -xdev -writable -not -path '/var/lib/nova/instances*' -not -path '/dev/*' -not -type l"
                               " 2>/dev/null; {0} ls /dev".format(inside, self.uid), check=False)
            self.assertEqual(found.split(), ["null", "random", "urandom", "zero"])

    def test_4_who_is_no_compute_of_the_cell_is_refused(self):
        self.bring(Other, peers=(Other.address,))
        self.assertIn("Permission denied", self.peer("true", check=False))
        self.bring(Other)
        self.assertEqual(self.peer("true"), "")
        self.bring(ColdMigrationTest, known=self.read(self.keys["second"] + ".pub"))
        self.assertIn("Host key verification failed", self.peer("true", check=False))
        self.bring(ColdMigrationTest)

    def test_5_the_key_changes_host_by_host(self):
        self.bring(Other, present="second", previous="first")
        self.assertEqual(self.peer("true"), "")
        self.bring(ColdMigrationTest, present="second", previous="first")
        self.assertEqual(self.peer("true"), "")
        self.bring(Other, present="second")
        self.assertEqual(self.peer("true"), "")
        self.bring(ColdMigrationTest, present="second")
        self.assertEqual(self.peer("true"), "")
        self.host("test ! -e /var/lib/nova/.ssh/edpm-migration-previous")
        self.put("/tmp/old", self.read(self.keys["first"]) + "\n", "600")
        self.host("chown %s /tmp/old" % self.uid)
        self.assertIn("Permission denied", self.nova("ssh", "-F", "/dev/null", "-i", "/tmp/old", "-p", str(PORT), "-l", "nova", "-o", "BatchMode=yes",
                                                     "-o", "StrictHostKeyChecking=no", Other.address, "true", check=False))

    def test_6_cleanup_leaves_nothing_of_it(self):
        self.address, before = Other.address, self.address
        try:
            self.succeeds("nova_cleanup")
        finally:
            self.address = before
        self.assertEqual(Other.host("systemctl list-units --all --no-legend 'edpm-migration*'; ls -d /var/lib/edpm/migration /var/lib/nova/.ssh/* 2>/dev/null", check=False), "")
        self.assertIn("refused", self.peer("true", check=False))


if __name__ == "__main__":
    unittest.main()
