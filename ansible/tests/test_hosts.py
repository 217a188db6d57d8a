"""Runs the playbooks on real hosts: containers with systemd, sshd and podman.

Needs root, podman and the images of test/lab/images; run it with

    EDPM_HOSTS_TEST=1 python3 ansible/tests/test_hosts.py -v

EDPM_TEST_PREFIX and EDPM_TEST_SUBNET (first three bytes) keep several runs apart.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import zlib

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IMAGES = os.path.join(REPO, "test", "lab", "images")
PREFIX = os.environ.get("EDPM_TEST_PREFIX", "edpm-dev")
SUBNET = os.environ.get("EDPM_TEST_SUBNET", "192.168.123")
# Without CAP_SYS_RESOURCE limits may only be lowered.
LIMITS = ["--ulimit", "nofile=16384:16384", "--ulimit", "nproc=32768:32768"]
IMAGE = "localhost/edpm-host:" + os.environ.get("EDPM_HOST_SUITE", "bookworm")
PASSWORD = "S3cretPass"
NOVA_CONF = """[DEFAULT]
transport_url = rabbit://u:%s@127.0.0.1:5672/
compute_driver = libvirt.LibvirtDriver
debug = false
state_path = /var/lib/nova
[oslo_concurrency]
lock_path = /var/lib/nova/tmp
[libvirt]
virt_type = qemu
""" % PASSWORD
OVERRIDE = "[DEFAULT]\ndebug = true\n"
PHASES = ["configure_network", "validate_network", "install_os", "configure_os", "run_os", "libvirt", "nova"]


def sh(*command, **options):
    options.setdefault("timeout", 300)
    return subprocess.run(command, check=options.pop("check", True), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, **options).stdout.strip()


def image(name):
    sh(os.path.join(IMAGES, "load.sh"), name, timeout=None)


class Host:
    def __init__(self, number, directory, store):
        self.name = "%s-h%d" % (PREFIX, number)
        self.address = "%s.%d" % (SUBNET, 100 + number)
        sh("podman", "--runtime", "runc", "run", "--detach", "--name", self.name, "--hostname", self.name,
           "--privileged", "--systemd=always", "--cgroupns=private", *LIMITS,
           "--network", PREFIX, "--ip", self.address,
           "--volume", "/var/lib/containers", "--volume", store + ":/var/lib/edpm-images:ro",
           "--volume", directory + "/key.pub:/etc/edpm-lab/authorized_keys:ro", IMAGE)

    def run(self, script, check=True):
        """Runs a shell script as root, through ssh as an operator would."""
        return sh("ssh", "-i", self.key, "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=5",
                  "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                  "root@" + self.address, script, check=check, timeout=60)

    def wait(self):
        for _ in range(60):
            if "up" in self.run("echo up", check=False).splitlines():
                return
            time.sleep(0.5)
        raise AssertionError("%s did not come up" % self.name)


class Result:
    def __init__(self, code, log, recap):
        self.code, self.log, self.raw = code, log, recap
        self.recap = json.loads(recap) if recap else {}
        if "z" in self.recap:
            self.hosts = json.loads(zlib.decompress(base64.b64decode(self.recap["z"])))
        else:
            self.hosts = self.recap.get("hosts", {})


@unittest.skipUnless(os.environ.get("EDPM_HOSTS_TEST") == "1", "EDPM_HOSTS_TEST=1 is not set")
class HostsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix=PREFIX)
        os.chmod(cls.directory, 0o755)
        cls.clear()
        cls.addClassCleanup(shutil.rmtree, cls.directory, True)
        if os.environ.get("EDPM_TEST_KEEP") != "1":
            cls.addClassCleanup(cls.clear)
        for name in ("ansibleee", "edpm-host"):
            image(name)
        store = subprocess.run([os.path.join(IMAGES, "store.sh")], check=True, stdout=subprocess.PIPE,
                               universal_newlines=True).stdout.strip()
        for name in ("key", "wrong"):
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", cls.path(name))
        # As a Secret is mounted: owned by root, readable by the group of the Pod.
        for name in ("key", "wrong"):
            shutil.copy(cls.path(name), cls.path(name + "-mounted"))
            os.chown(cls.path(name + "-mounted"), 0, 1001)
            os.chmod(cls.path(name + "-mounted"), 0o440)
        sh("podman", "network", "create", "--subnet", SUBNET + ".0/24", PREFIX)
        Host.key = cls.path("key")
        cls.hosts = [Host(number, cls.directory, store) for number in (1, 2)]
        for host in cls.hosts:
            host.wait()
            host.run("useradd --create-home nosudo && usermod --password '*' nosudo")

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.directory, *parts)

    @classmethod
    def clear(cls):
        for number in (1, 2):
            sh("podman", "rm", "--force", "--volumes", "--time", "2", "%s-h%d" % (PREFIX, number), check=False)
        sh("podman", "network", "rm", "--force", PREFIX, check=False)

    def inventory(self, hosts=None, **variables):
        values = dict({
            "ansible_user": "cloud-admin", "ansible_port": 22, "edpm_step": "nova", "edpm_hash": "h1", "edpm_run": "r1",
            "edpm_nova_compute_image": "localhost/edpm-nova-compute:latest",
            "edpm_libvirt_image": "localhost/edpm-nova-libvirt:latest",
            "edpm_config_files": {"01-nova.conf": "/runner/config/aa", "02-nova-override.conf": "/runner/config/bb"},
        }, **variables)
        hosts = hosts or {host.name: {"ansible_host": host.address} for host in self.hosts}
        return {"all": {"vars": values, "hosts": hosts}}

    def ee(self, playbook, inventory=None, files=None, key="key", user="1001:1001", environment=None, mounts=(),
           kill_after=None):
        """Runs the execution environment as the Job does."""
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            def write(name, text, mode=0o644):
                path = os.path.join(directory, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(path, mode)
                return path

            os.chmod(directory, 0o755)
            runner = os.path.join(directory, "runner")
            os.mkdir(runner)
            os.chmod(runner, 0o777)
            for name, text in (files or {"aa": NOVA_CONF, "bb": OVERRIDE}).items():
                write("config/" + name, text)
            recap = write("recap", "left over", 0o666)
            text = inventory if isinstance(inventory, str) else json.dumps(inventory or self.inventory())
            hosts = write("hosts.yaml", text)
            name = PREFIX + "-ee"
            command = ["podman", "run", "--rm", "--name", name, "--read-only", "--read-only-tmpfs=false",
                       "--user", user, "--group-add", "1001", "--cap-drop", "all",
                       "--security-opt", "no-new-privileges", *LIMITS,
                       "--network", PREFIX, "--volume", runner + ":/runner", "--tmpfs", "/tmp:rw,mode=1777",
                       "--volume", hosts + ":/runner/inventory/hosts.yaml:ro",
                       "--volume", os.path.join(directory, "config") + ":/runner/config:ro",
                       "--volume", self.path(key + "-mounted") + ":/runner/ssh/ssh-privatekey:ro",
                       "--volume", recap + ":/dev/termination-log",
                       "--env", "ANSIBLE_FORKS=4", "--env", "ANSIBLE_PRIVATE_KEY_FILE=/runner/ssh/ssh-privatekey"]
            for variable, value in (environment or {}).items():
                command += ["--env", "%s=%s" % (variable, value)]
            for mount in mounts:
                command += ["--volume", mount]
            command += ["localhost/edpm-ansibleee:latest", "ansible-runner", "run", "/runner", "-p", playbook, "-i", "r1"]
            with open(os.path.join(directory, "log"), "w+", encoding="utf-8") as log:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
                if kill_after:
                    kill_after(name)
                process.wait(600)
                log.seek(0)
                with open(recap, encoding="utf-8") as file:
                    result = Result(process.returncode, log.read(), file.read())
        self.assertNotIn(PASSWORD, result.log, "the log shows a secret")
        self.assertNotIn(PASSWORD, result.raw, "the recap shows a secret")
        return result

    def succeeds(self, playbook, **options):
        started = time.time()
        result = self.ee(playbook, **options)
        print("%-40s %5.1f s  %s" % (playbook, time.time() - started, result.raw))
        self.assertEqual(result.code, 0, result.log)
        self.assertEqual(set(result.hosts), {host.name for host in self.hosts})
        for name, counts in result.hosts.items():
            self.assertEqual((counts[2], counts[3], counts[5]), (0, 0, ""), "%s was met for the first time, and says nothing" % name)
        return result

    def changed(self, result):
        return {name: counts[1] for name, counts in result.hosts.items()}

    @property
    def nothing(self):
        return {host.name: 0 for host in self.hosts}

    def test_1_brings_hosts_up_and_leaves_them_alone_the_second_time(self):
        for playbook in PHASES:
            self.succeeds("edpm.operators." + playbook)
        for playbook in PHASES:
            result = self.succeeds("edpm.operators." + playbook)
            self.assertEqual(self.changed(result), self.nothing, playbook + " changed something again\n" + result.log)
        for host in self.hosts:
            self.assertEqual(host.run("systemctl is-active edpm_nova_compute.service"), "active")
            self.assertIn("Id", host.run("podman exec edpm_libvirt_libvirtd virsh list"))
            self.assertEqual(host.run("ls /var/lib/openstack/nova").split(),
                             ["01-nova-host.conf", "01-nova.conf", "02-nova-override.conf"])
            self.assertEqual(host.run("stat -c %a /var/lib/openstack/nova /var/lib/openstack/nova/01-nova.conf").split(),
                             ["750", "640"])
            # debug is false in 01-nova.conf and true in the override.
            self.assertIn(" DEBUG ", host.run("cat /var/log/containers/nova/nova-compute.log"))
            self.assertIn("nova", host.run("journalctl --identifier edpm_nova_compute --lines 50"))
            self.assertEqual(host.run("grep -c ' start run=r1 step=nova hash=h1$' /var/log/edpm/runs.log"), str(2 * len(PHASES)))

    def test_2_restarts_nova_only_when_its_configuration_changed(self):
        def started():
            return [h.run("podman inspect --format '{{.State.StartedAt}}' edpm_nova_compute") for h in self.hosts]

        before = started()
        self.succeeds("edpm.operators.nova")
        self.assertEqual(started(), before)
        files = {"aa": NOVA_CONF, "bb": OVERRIDE + "reserved_host_memory_mb = 777\n", "cc": "[DEFAULT]\n"}
        names = {"01-nova.conf": "/runner/config/aa", "02-nova-override.conf": "/runner/config/bb",
                 "03-more.conf": "/runner/config/cc"}
        self.succeeds("edpm.operators.nova", files=files, inventory=self.inventory(edpm_config_files=names))
        after = started()
        self.assertTrue(all(a != b for a, b in zip(after, before)), (before, after))
        self.assertEqual(self.effective("reserved_host_memory_mb"), ["777"] * len(self.hosts))
        # A file that is given no more goes away.
        self.succeeds("edpm.operators.nova")
        for host in self.hosts:
            self.assertNotIn("03-more.conf", host.run("ls /var/lib/openstack/nova"))

    def effective(self, option):
        """Returns what nova reads for option of [DEFAULT] in its own container."""
        script = ("from oslo_config import cfg; c = cfg.ConfigOpts(); c.register_opt(cfg.StrOpt('%s')); "
                  "c(['--config-file', '/dev/null', '--config-dir', '/etc/nova/nova.conf.d']); print(c.%s)") % (option, option)
        return [host.run('podman exec edpm_nova_compute python3 -c "%s"' % script) for host in self.hosts]

    def test_3_one_bad_host_does_not_stop_the_others(self):
        hosts = {host.name: {"ansible_host": host.address} for host in self.hosts}
        hosts["gone"] = {"ansible_host": SUBNET + ".250"}
        hosts["faulty"] = {"ansible_host": self.hosts[0].address, "edpm_nova_compute_image": "localhost/none:1",
                           "edpm_podman_pull_retries": 1}
        result = self.ee("edpm.operators.nova", inventory=self.inventory(hosts))
        self.assertNotEqual(result.code, 0)
        self.assertEqual(set(result.hosts), set(hosts))
        for host in self.hosts:
            self.assertEqual(result.hosts[host.name][2:4] + result.hosts[host.name][5:], [0, 0], result.raw)
        self.assertEqual(result.hosts["gone"][3], 1)
        self.assertRegex(result.hosts["gone"][5], "No route to host|timed out")
        self.assertEqual(result.hosts["faulty"][2], 1)
        self.assertRegex(result.hosts["faulty"][5], "Pull the image localhost/none:1")
        print(result.raw)

    def test_4_a_configuration_that_cannot_be_read_says_why(self):
        result = self.ee("edpm.operators.nova", files={"aa": NOVA_CONF, "bb": "[DEFAULT\n" + PASSWORD + "\n"})
        self.assertNotEqual(result.code, 0)
        for host in self.hosts:
            self.assertEqual(result.hosts[host.name][2], 1)
            self.assertRegex(result.hosts[host.name][5], "customServiceConfig line 1: Invalid section")
            self.assertEqual(host.run("systemctl is-active edpm_nova_compute"), "active")
        print(result.raw)
        again = self.ee("edpm.operators.nova", files={"aa": NOVA_CONF, "bb": "[DEFAULT\n" + PASSWORD + "\n"})
        self.assertNotEqual(again.code, 0, "a configuration that is refused counts as converged")
        self.succeeds("edpm.operators.nova")

    def test_5_keys_and_rights_that_are_refused(self):
        result = self.ee("edpm.operators.validate_network", key="wrong")
        for host in self.hosts:
            self.assertEqual(result.hosts[host.name][3], 1)
            self.assertIn("Permission denied (publickey)", result.hosts[host.name][5])
        print(result.raw)
        result = self.ee("edpm.operators.validate_network", inventory=self.inventory(ansible_user="nosudo"))
        for host in self.hosts:
            self.assertEqual(result.hosts[host.name][2], 1)
            self.assertRegex(result.hosts[host.name][5], "(?i)sudo|password")
        print(result.raw)

    def test_6_errors_before_any_host_is_reached(self):
        for playbook, inventory, pattern in (
                ("edpm.operators.none", None, "playbook does not exist"),
                ("edpm.operators.nova", "all: [%s\n" % PASSWORD, "inventory cannot be read")):
            result = self.ee(playbook, inventory=inventory)
            self.assertNotEqual(result.code, 0)
            self.assertEqual(result.hosts, {})
            self.assertRegex(result.recap["error"], pattern)
        playbook = "- hosts: all\n  tasks:\n  - {debug: {}, command: x}\n"
        result = self.ee("playbook.yaml", environment={"RUNNER_PLAYBOOK": playbook})
        self.assertEqual(result.recap["error"], "the playbook is not valid", result.log)

    def test_7_playbook_and_arguments_from_the_environment(self):
        playbook = ("- hosts: all\n  gather_facts: false\n  tasks:\n"
                    "  - {ansible.builtin.debug: {msg: 'I say {{ word }}'}, tags: [a]}\n"
                    "  - {ansible.builtin.fail: {}, tags: [b]}\n")
        result = self.ee("playbook.yaml", user="23456:0", environment={
            "RUNNER_PLAYBOOK": "\n" + playbook + "\n\n", "RUNNER_CMDLINE": "--tags a --limit " + self.hosts[0].name,
            "RUNNER_EXTRA_VARS": "\nword: hello\n\n"})
        self.assertEqual(result.code, 0, result.log)
        self.assertIn("I say hello", result.log)
        self.assertEqual(set(result.hosts), {self.hosts[0].name})
        # Any user id can reach hosts.
        self.assertEqual(self.ee("edpm.operators.validate_network", user="23456:0").code, 0)

    def test_8_a_killed_run_says_nothing(self):
        def kill(name):
            for _ in range(100):
                if "TASK [wait" in sh("podman", "logs", name, check=False):
                    break
                time.sleep(0.2)
            self.killed = time.time()
            sh("podman", "kill", "--signal", "TERM", name)

        playbook = ("- hosts: all\n  gather_facts: false\n  tasks:\n  - {ansible.builtin.debug: {}}\n"
                    "  - {name: wait, ansible.builtin.command: sleep 60}\n")
        started = time.time()
        result = self.ee("playbook.yaml", environment={"RUNNER_PLAYBOOK": playbook}, kill_after=kill)
        self.assertLess(time.time() - started, 60, "the run continued")
        self.assertNotEqual(result.code, 0)
        self.assertEqual(result.raw, "")
        print("stopped after %.1f s" % (time.time() - self.killed))

    def test_9_cleanup_removes_everything_but_disks(self):
        for host in self.hosts:
            host.run("touch /var/lib/nova/instances/disk")
        # Partially there: one unit is gone already on the first host.
        self.hosts[0].run("systemctl disable --now edpm_nova_compute && rm /etc/systemd/system/edpm_nova_compute.service")
        result = self.succeeds("edpm.operators.nova_cleanup")
        self.assertIn("/var/lib/nova/instances with 1 entries", result.log)
        self.assertEqual(self.changed(self.succeeds("edpm.operators.nova_cleanup")), self.nothing)
        for host in self.hosts:
            self.assertEqual(host.run("podman ps --all --quiet"), "")
            self.assertEqual(host.run("ls /etc/systemd/system | grep edpm_ || true"), "")
            self.assertEqual(host.run("ls /var/lib/openstack"), "")
            self.assertEqual(host.run("grep -rl --exclude-dir=edpm-images %s /var/lib /etc 2>/dev/null || true" % PASSWORD), "")
            self.assertEqual(host.run("ls /var/lib/nova/instances"), "disk")

    def test_a_settings_of_the_operating_system(self):
        inventory = self.inventory(
            edpm_hosts_entries=[{"ip": "192.0.2.1", "names": ["api.example", "api"]}],
            edpm_network_sysctl={"net.ipv4.conf.all.arp_announce": 1}, edpm_sysctl={"net.ipv4.conf.all.arp_ignore": 1},
            edpm_validate_names=["api.example"], edpm_validate_addresses=[self.hosts[0].address], edpm_validate_mtu=1280,
            edpm_ntp_servers=["192.0.2.7"], edpm_timezone="Europe/Berlin", edpm_chronyd_options="-x",
            edpm_nftables_rules_extra=[{"comment": "web", "protocol": "tcp", "ports": "80", "source": "192.0.2.0/24"}])
        playbooks = ["configure_network", "validate_network", "configure_os", "run_os"]
        for playbook in playbooks:
            self.succeeds("edpm.operators." + playbook, inventory=inventory)
        for playbook in playbooks:
            result = self.succeeds("edpm.operators." + playbook, inventory=inventory)
            self.assertEqual(self.changed(result), self.nothing, playbook + " changed something again\n" + result.log)
        for host in self.hosts:
            self.assertIn("192.0.2.1", host.run("getent hosts api"))
            self.assertEqual(host.run("sysctl -n net.ipv4.conf.all.arp_announce net.ipv4.conf.all.arp_ignore").split(), ["1", "1"])
            self.assertEqual(host.run("date +%Z"), host.run("TZ=Europe/Berlin date +%Z"))
            self.assertIn("192.0.2.7", host.run("chronyc -n sources"))
            self.assertIn("192.0.2.0/24", host.run("nft list table inet edpm"))
        result = self.ee("edpm.operators.validate_network", inventory=self.inventory(edpm_validate_mtu=9999))
        self.assertRegex(result.hosts[self.hosts[0].name][5], "edpm_validate_mtu asks for 9999")

    def test_b_network_template(self):
        files = {"template": "network_config:\n- type: interface\n  name: {{ nic }}\n"}
        inventory = self.inventory(edpm_network_config_template="/runner/config/template", nic="eth0")
        result = self.ee("edpm.operators.configure_network", inventory=inventory, files=files)
        self.assertRegex(result.hosts[self.hosts[0].name][5], "needs os-net-config or nmstate or netplan")
        for host in self.hosts:
            host.run("printf '#!/bin/sh\\necho \"$@\" >> /tmp/applied; exit 2\\n' > /usr/local/bin/os-net-config; "
                     "chmod 755 /usr/local/bin/os-net-config")
        self.succeeds("edpm.operators.configure_network", inventory=inventory, files=files)
        result = self.succeeds("edpm.operators.configure_network", inventory=inventory, files=files)
        self.assertEqual(self.changed(result), self.nothing, result.log)
        for host in self.hosts:
            self.assertEqual(host.run("cat /tmp/applied"), "--detailed-exit-codes -c /etc/os-net-config/config.yaml")
            self.assertIn("name: eth0", host.run("cat /etc/os-net-config/config.yaml"))


if __name__ == "__main__":
    unittest.main()
