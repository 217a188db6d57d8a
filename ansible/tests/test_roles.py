"""Tests of roles on a real host, see realhost.py:

    EDPM_HOSTS_TEST=1 python3 ansible/tests/test_roles.py -v
"""

import json
import os
import time
import unittest

import realhost
import runs

# What roles do after they have changed files: playbook, command, its arguments.
RELOADS = (
    ("configure_os", "systemctl", "try-reload-or-restart ssh"),
    ("configure_os", "systemctl", "try-restart chrony"),
    ("configure_os", "sysctl", "--load=/etc/sysctl.d/90-edpm.conf"),
    ("configure_os", "systemctl", "reload-or-restart edpm-nftables.service"),
    ("configure_network", "sysctl", "--load=/etc/sysctl.d/90-edpm-network.conf"),
    ("configure_network", "os-net-config", "--detailed-exit-codes -c /etc/os-net-config/config.yaml"),
)
COMMANDS = sorted({command for _, command, _ in RELOADS})
# The first line of units of the role edpm_service.
OURS = "# Written by the role edpm.operators.edpm_service, which overwrites changes.\n"
# Whoever waits says who it is, so that it ends with its run.
WAIT = "echo $$ > /run/reached.pid; touch /run/reached; sleep 600"


@realhost.long
class InterruptedTest(realhost.HostTest):
    """A run can end at any moment. What it wrote is loaded by the next one."""

    def variables(self, number):
        with open(self.path("template"), "w", encoding="utf-8") as file:
            file.write("network_config: []\n# %d\n" % number)
        return dict(edpm_sshd_settings={"MaxAuthTries": number}, edpm_ntp_servers=["192.0.2.%d" % number],
                    edpm_sysctl={"net.ipv4.conf.all.arp_ignore": number % 2}, edpm_network_sysctl={"net.ipv4.conf.all.arp_announce": number % 2},
                    edpm_nftables_rules_extra=[{"protocol": "tcp", "ports": str(4000 + number)}],
                    edpm_network_config_template=self.path("template"))

    def setUp(self):
        self.put("/usr/sbin/os-net-config", "#!/bin/sh\nexit 2\n", "755")

    def tearDown(self):
        for command in COMMANDS:
            self.unshim(command)

    def note_calls(self):
        for command in COMMANDS:
            self.shim(command, "never", ":")
        self.calls()

    def expected(self, playbook):
        return ["%s %s" % (command, arguments) for name, command, arguments in RELOADS if name == playbook]

    def reloads(self, playbook):
        calls = self.calls()
        return [call for call in self.expected(playbook) if call in calls]

    def interrupted(self, playbook):
        self.succeeds(playbook, **self.variables(2))
        pending = self.expected(playbook)
        for number, reload in enumerate(pending):
            with self.subTest("killed at " + reload):
                self.note_calls()
                command, arguments = reload.split(" ", 1)
                self.shim(command, "'%s'" % arguments, WAIT)
                self.killed(playbook, "/run/reached", **self.variables(3))
                # Those before it were in time in the run before.
                self.assertEqual(self.reloads(playbook), pending[max(number - 1, 0):number + 1])
        self.note_calls()
        self.succeeds(playbook, **self.variables(3))
        self.assertEqual(self.reloads(playbook), pending[-1:])
        result = self.succeeds(playbook, **self.variables(3))
        self.assertEqual((self.reloads(playbook), result.changed), ([], []), result.output)

    def test_configure_os(self):
        self.interrupted("configure_os")
        self.assertEqual(self.host("sysctl -n net.ipv4.conf.all.arp_ignore"), "1")
        self.assertIn("4003", self.host("nft list table inet edpm"))

    def test_configure_network(self):
        self.interrupted("configure_network")
        self.assertEqual(self.host("sysctl -n net.ipv4.conf.all.arp_announce"), "1")


@realhost.long
class NetworkTemplateTest(realhost.HostTest):
    """A change of the network that cuts the host off is rolled back by the host, and not tried again with the same template."""

    # What a wrong address does to a connection: packets are dropped, and no one says so.
    TOOL = """#!/bin/sh
grep -q broken "$3" && { echo "$3: is broken"; exit 1; }
nft delete table inet cut 2>/dev/null
grep -q cut "$3" || exit 2
nft add table inet cut
nft 'add chain inet cut input { type filter hook input priority 0; policy drop; }'
exit 2
"""

    def configure(self, template, *arguments, timeout=30):
        with open(self.path("template"), "w", encoding="utf-8") as file:
            file.write(template + "\n")
        return self.run_playbook("configure_network", *arguments, edpm_network_config_template=self.path("template"), edpm_network_timeout_seconds=timeout)

    def recap(self):
        with open(self.path("recap"), encoding="utf-8") as file:
            return json.load(file)["hosts"]["host"]

    def applied(self):
        return self.host("cat /etc/os-net-config/config.yaml; systemctl is-active edpm-network-roll-back.timer; ls /var/lib/edpm/network/before.tar", check=False).splitlines()

    def test_a_host_that_is_cut_off_comes_back(self):
        self.put("/usr/sbin/os-net-config", self.TOOL, "755")
        self.assertEqual(self.configure("good").code, 0)
        self.assertEqual(self.applied()[:2], ["good", "inactive"])
        failed = self.configure("cut")
        self.assertNotEqual(failed.code, 0, failed.output)
        self.assertIn("the host could not be reached with it in time, and has rolled it back; correct networkConfig.template", self.recap()[5])
        self.assertEqual(self.recap()[-1], 1, "refused: the same template is not tried again")
        self.assertEqual(self.applied()[:2], ["good", "inactive"])
        self.assertTrue(self.ssh())
        with self.subTest("check mode says what differs"):
            checked = self.configure("cut", "--check")
            self.assertEqual((checked.code, checked.changed), (0, ["Apply the network configuration"]), checked.output)
        with self.subTest("a tool that fails"):
            failed = self.configure("broken")
            self.assertIn("os-net-config: /etc/os-net-config/config.yaml: is broken (exit code 1); rolled back", self.recap()[5])
            self.assertEqual(self.applied()[:2], ["good", "inactive"])
        self.assertEqual(self.configure("better").code, 0)
        self.assertEqual(self.applied()[:2], ["better", "inactive"])
        result = self.configure("better")
        self.assertEqual((result.code, result.changed), (0, []), result.output)


@realhost.long
class PackagesTest(realhost.HostTest):
    """A host that lost its power while dpkg worked takes packages again."""

    def test_an_installation_that_was_interrupted_is_completed(self):
        self.host("sed '/^$/q' /var/lib/dpkg/status > /var/lib/dpkg/updates/0001")
        self.assertIn("dpkg was interrupted", self.host("apt-get install --yes bash 2>&1", check=False))
        result = self.run_playbook("install_os", edpm_packages=["there-is-no-such-package"])
        self.assertNotEqual(result.code, 0, "the package should be missing")
        self.assertNotIn("dpkg was interrupted", result.output)
        self.assertEqual(self.host("ls /var/lib/dpkg/updates"), "")


@realhost.long
class FirewallTest(realhost.HostTest):
    """Tables of others survive whatever is done with ours."""

    OTHERS = ("ip other", "inet netavark")
    FIREWALLD = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
    NETWORKS = dict(edpm_nftables_vnc_sources=["192.0.2.0/24", "2001:db8::/64"])

    def others(self):
        return self.host("".join("nft list table %s;" % table for table in self.OTHERS))

    def table(self):
        return self.host("nft list table inet edpm", check=False)

    def run_and_keep_others(self, playbook, **variables):
        result = self.succeeds(playbook, **variables)
        self.assertEqual(self.others(), self.before, "%s with %s touched tables of others" % (playbook, variables))
        return result

    def setUp(self):
        self.configuration = self.host("cat /etc/nftables.conf")
        self.assertIn("flush ruleset", self.configuration, "the distribution no longer has this trap")
        self.host("".join("nft add table {0}; nft add chain {0} c; nft add rule {0} c counter;".format(table) for table in self.OTHERS))
        self.before = self.others()
        self.put("/usr/lib/systemd/system/firewalld.service", self.FIREWALLD)
        self.host("systemctl daemon-reload; systemctl enable --now firewalld 2>&1")

    def test_1_enabled(self):
        self.run_and_keep_others("configure_os")
        self.run_and_keep_others("run_os")
        self.assertEqual(self.host("systemctl is-active firewalld nftables", check=False).split(), ["inactive", "inactive"])
        self.assertEqual(self.host("systemctl is-enabled firewalld edpm-nftables", check=False).split(), ["disabled", "enabled"])
        self.assertEqual(self.table().count("udp dport 6081 notrack"), 2, self.table())
        self.assertNotIn("5900", self.table(), "VNC is open")

    def test_2_changed(self):
        self.run_and_keep_others("configure_os", **self.NETWORKS)
        for network in ("ip saddr 192.0.2.0/24", "ip6 saddr 2001:db8::/64"):
            self.assertIn(network + " tcp dport 5900-6923 accept", self.table())
        self.host("systemctl restart edpm-nftables")
        self.assertEqual(self.others(), self.before, "a restart of the unit touched tables of others")

        # Somebody flushed everything, after the run.
        self.host("nft delete table inet edpm")
        self.assertEqual(self.run_and_keep_others("configure_os", **self.NETWORKS).changed, ["Load the firewall"])
        self.assertEqual(self.run_and_keep_others("configure_os", **self.NETWORKS).changed, [])

    def test_3_disabled(self):
        # Earlier versions left a line there.
        self.put("/etc/nftables.conf", self.configuration + '\ninclude "/etc/nftables/edpm.nft"\n')
        self.assertIn("chain input", self.table(), "there is nothing to remove: run the tests before this one, too")
        self.run_and_keep_others("configure_os", edpm_nftables_enabled=False)
        self.assertIn("No such file", self.table())
        self.assertEqual(self.host("cat /etc/nftables.conf"), self.configuration)
        self.assertEqual(self.host("ls /etc/nftables /etc/systemd/system | grep edpm", check=False), "")
        self.assertEqual(self.run_and_keep_others("configure_os", edpm_nftables_enabled=False).changed, [])


@realhost.long
class GuestsTest(realhost.HostTest):
    """Guests outlive what is done to the host."""

    IMAGES = ("nova",)
    VARIABLES = dict(edpm_libvirt_image="localhost/edpm-nova-libvirt:latest", edpm_libvirt_daemons=["virtlogd"])

    def test_cleanup_refuses_while_guests_run(self):
        self.guest()
        for name in ("nova_compute", "libvirt_virtqemud"):
            self.put("/etc/systemd/system/edpm_%s.service" % name, OURS + "[Service]\nExecStart=/bin/sleep infinity\n")
        self.host("systemctl daemon-reload; systemctl start edpm_nova_compute")
        result = self.run_playbook("nova_cleanup")
        self.assertNotEqual(result.code, 0, result.output)
        self.assertIn("1 guests run on this host: instance-1.", result.output)
        self.assertIn("edpm_nova_cleanup_force", result.output)
        self.assertEqual(self.host("systemctl is-active edpm_nova_compute guest").split(), ["active", "active"])
        self.succeeds("nova_cleanup", edpm_nova_cleanup_force=True)
        self.assertEqual(self.host("ls /etc/systemd/system | grep edpm_", check=False), "")

    def test_guests_that_were_evacuated_are_stopped_with_nova_compute(self):
        stays, left, stubborn = ("11111111-1111-4111-8111-11111111111%d" % i for i in range(3))
        for guest, ignores in ((stays, ""), (left, ""), (stubborn, "signal.signal(signal.SIGTERM, signal.SIG_IGN);")):
            self.host("systemd-run --quiet --unit guest-{0} python3 -c 'import signal;{1}signal.pause()' -name guest=instance -uuid {0} -smp 1".format(guest, ignores))
            self.addCleanup(self.host, "systemctl kill --signal KILL guest-" + guest, check=False)
        self.put("/etc/systemd/system/edpm_nova_compute.service", OURS + "[Service]\nExecStart=/bin/sleep infinity\n")
        self.host("systemctl daemon-reload; systemctl start edpm_nova_compute")
        self.addCleanup(self.host, "systemctl stop edpm_nova_compute; rm /etc/systemd/system/edpm_nova_compute.service", check=False)
        gone = "22222222-2222-4222-8222-222222222222"
        result = self.succeeds("nova_evacuated", edpm_nova_evacuated=[left, gone, stubborn])
        self.assertEqual(result.changed, ["Stop nova-compute", "Stop guests that were evacuated"])
        state = "systemctl is-active edpm_nova_compute " + " ".join("guest-" + guest for guest in (stays, left, stubborn))
        self.assertEqual(self.host(state, check=False).split(), ["inactive", "active", "inactive", "failed"])
        self.assertEqual(self.succeeds("nova_evacuated", edpm_nova_evacuated=[left, gone, stubborn]).changed, [])

    def virtlogd(self):
        return self.host("podman inspect --format '{{.State.StartedAt}}' edpm_libvirt_virtlogd")

    def test_virtlogd_is_restarted_without_guests_only(self):
        self.succeeds("libvirt", **self.VARIABLES)
        started = self.virtlogd()
        self.guest()
        changed = dict(self.VARIABLES, edpm_libvirt_daemon_settings={"log_outputs": "1:file:/var/log/libvirt/test.log"},
                       edpm_libvirt_args=["--privileged", "--network=host", "--label=changed=1"])
        result = self.succeeds("libvirt", **changed)
        self.assertEqual(self.virtlogd(), started, "virtlogd was restarted while guests run")
        self.assertIn("A restart is pending for edpm_libvirt_virtlogd", result.output)
        self.host("test -e /var/log/containers/libvirt/test.log")
        self.assertEqual(self.host("systemctl is-active edpm_libvirt_virtlogd"), "active")
        self.assertEqual(self.succeeds("libvirt", **changed).changed, [])
        self.host("systemctl stop guest")
        self.succeeds("libvirt", **changed)
        self.assertNotEqual(self.virtlogd(), started, "virtlogd keeps running with its old unit")


    def test_daemons_that_are_no_longer_chosen_go(self):
        both = dict(self.VARIABLES, edpm_libvirt_daemons=["virtlogd", "libvirtd"])
        self.succeeds("libvirt", **both)
        self.assertEqual(self.units(), ["libvirtd", "virtlogd"])
        self.succeeds("libvirt", **self.VARIABLES)
        self.assertEqual(self.units(), ["virtlogd"])
        self.assertEqual(self.host("podman ps --format '{{.Names}}'; ls /var/lib/openstack/libvirt").split(),
                         ["edpm_libvirt_virtlogd", "conmon.sh", "shut_down_guests.sh", "virtlogd"])
        self.assertEqual(self.succeeds("libvirt", **self.VARIABLES).changed, [])
        # Guests would lose their consoles with virtlogd.
        self.guest()
        alone = dict(self.VARIABLES, edpm_libvirt_daemons=["libvirtd"])
        self.succeeds("libvirt", **alone)
        self.assertEqual(self.units(), ["libvirtd", "virtlogd"])
        self.host("systemctl stop guest")
        self.succeeds("libvirt", **alone)
        self.assertEqual(self.units(), ["libvirtd"])

    def units(self):
        """Returns the daemons that have a unit, all of which run."""
        units = self.host("ls /etc/systemd/system | grep edpm_libvirt_").split()
        self.assertEqual(self.host("systemctl is-active " + " ".join(units)).split(), ["active"] * len(units))
        return [unit[len("edpm_libvirt_"):-len(".service")] for unit in units]

    def test_an_image_is_pulled_once(self):
        self.shim("podman", "'pull '*", "shift 2; exec /usr/bin/podman image inspect --format '{{.Id}}' \"$@\"")
        self.addCleanup(self.unshim, "podman")
        self.calls()
        self.succeeds("libvirt", **dict(self.VARIABLES, edpm_podman_binary="/usr/local/sbin/podman", edpm_podman_pull="always",
                                        edpm_libvirt_daemons=["virtlogd", "libvirtd"]))
        pull = "podman pull --quiet localhost/edpm-nova-libvirt:latest"
        self.assertEqual([call for call in self.calls() if call.startswith("podman pull")], [pull])
        self.succeeds("libvirt", **self.VARIABLES)

    def test_credentials_are_not_shown(self):
        result = self.run_playbook("libvirt", "-v", **dict(self.VARIABLES, edpm_podman_pull="always", edpm_podman_pull_retries=1,
                                                           edpm_podman_pull_args=["--creds=user:S3cretPass"]))
        self.assertNotEqual(result.code, 0, "there is a registry")
        self.assertIn("TASK [edpm.operators.edpm_service : Pull the image", result.output)
        self.assertNotIn("S3cretPass", result.output)


class LibvirtGuestsTest(realhost.HostTest):
    """A guest of libvirt keeps its process, console and network, and is shut down with the host."""

    IMAGES = ("nova",)
    IMAGE = "localhost/edpm-nova-libvirt:latest"
    # Its firmware prints to the console whenever the guest is reset.
    DOMAIN = """<domain type="qemu"><name>instance-1</name><memory unit="MiB">64</memory><vcpu>1</vcpu>
        <os><type arch="x86_64" machine="q35">hvm</type><bios useserial="yes"/></os>
        <devices><interface type="bridge"><source bridge="br-test"/><target dev="tap-test"/><rom enabled="no"/></interface>
        <serial type="pty"><log file="/var/log/libvirt/console.log" append="on"/></serial></devices></domain>"""
    SCOPE = "/machine.slice/machine-qemu"
    PENDING = "A restart is pending for %s, which guests need: rerun the step when no guests run"

    def variables(self, **more):
        return dict({"edpm_libvirt_image": self.IMAGE, "edpm_libvirt_guests_shutdown_seconds": 5}, **more)

    def virsh(self, arguments, **options):
        return self.host("podman exec --interactive edpm_libvirt_libvirtd virsh --quiet " + arguments, **options)

    def start_guest(self, domain=DOMAIN):
        self.host("ip link show br-test || ip link add br-test type bridge")
        self.virsh("create /dev/stdin", text=domain)
        self.addCleanup(self.virsh, "destroy instance-1", check=False)
        return self.guest_now()

    def guest_now(self):
        """Returns what changes if the guest is started again: its process and its network. Its console still works."""
        console = "wc --bytes < /var/log/containers/libvirt/console.log"
        before = int(self.host(console))
        self.virsh("reset instance-1")
        self.assertTrue(any(int(self.host(console)) > before or time.sleep(1) for _ in range(30)), "nothing reaches the console")
        pid = self.host("cat /run/libvirt/qemu/instance-1.pid")
        return pid, self.host("cut -d ' ' -f 22 /proc/%s/stat; ip -oneline link show tap-test master br-test" % pid)

    def cgroups(self):
        return self.host("cat /proc/$(cat /run/libvirt/qemu/instance-1.pid)/cgroup")

    def started(self, daemon="libvirtd"):
        return self.host("podman inspect --format '{{.State.StartedAt}}' edpm_libvirt_" + daemon)

    def bring(self, **more):
        """Runs libvirt, and returns what the result of the host says."""
        self.succeeds("libvirt", **self.variables(**more))
        with open(self.path("recap"), encoding="utf-8") as file:
            return "".join(json.load(file)["hosts"]["host"][5:6])

    def another_image(self):
        self.host("podman create --name next {0} true && podman commit --quiet --change LABEL=next=1 next localhost/next:1; podman rm next".format(self.IMAGE))
        return "localhost/next:1"

    def test_1_a_guest_outlives_daemons(self):
        self.assertEqual(self.bring(), "")
        guest = self.start_guest()
        self.assertIn(self.SCOPE, self.cgroups())
        self.assertEqual(self.succeeds("libvirt", **self.variables()).changed, [])
        virtlogd = self.started("virtlogd")
        for what, changes, pending in (
                ("another unit of libvirtd", {"edpm_libvirt_qemu_args": ["--pid=host", "--cgroupns=host", "--pids-limit=-1", "--label=a=b"]}, ""),
                ("another configuration", {"edpm_libvirt_qemu_settings": {"max_core": 0}}, ""),
                ("another image", {"edpm_libvirt_image": self.another_image()}, self.PENDING % "edpm_libvirt_virtlogd"),
        ):
            with self.subTest(what):
                before = self.started()
                self.assertEqual(self.bring(**changes), pending)
                self.assertNotEqual(self.started(), before, "libvirtd was not restarted")
                self.assertEqual((self.guest_now(), self.started("virtlogd")), (guest, virtlogd))
        for what, command in (("a restart of the unit", "systemctl restart edpm_libvirt_libvirtd"), ("a crash of libvirtd", "podman kill edpm_libvirt_libvirtd"),
                              ("a restart of podman", "systemctl restart podman.socket podman.service")):
            with self.subTest(what):
                self.host(command)
                self.assertTrue(any(self.virsh("uri", check=False) == "qemu:///system" or time.sleep(1) for _ in range(30)))
                self.assertEqual(self.guest_now(), guest)
        self.virsh("destroy instance-1")
        self.assertEqual(self.bring(**changes), "")
        self.assertNotEqual(self.started("virtlogd"), virtlogd, "what waited for the guest was not done after it")

    def test_1_a_guest_with_a_tpm_that_is_in_the_container(self):
        """On cgroup v1 libvirt leaves the process of the TPM in its container. QEMU ends when it resets a TPM that is gone."""
        self.bring()
        self.start_guest(self.DOMAIN.replace("<interface", '<tpm model="tpm-crb"><backend type="emulator" version="2.0"/></tpm><interface'))
        processes = "pgrep swtpm; cat /run/libvirt/qemu/instance-1.pid"
        before, started, changes = self.host(processes), self.started(), {"edpm_libvirt_qemu_settings": {"max_core": 1}}
        if "libpod-" in self.host("cat /proc/$(pgrep swtpm)/cgroup"):
            self.assertEqual(self.bring(**changes), self.PENDING % "edpm_libvirt_libvirtd")
            self.assertEqual(self.started(), started)
        else:
            self.assertEqual(self.bring(**changes), "")
            self.assertNotEqual(self.started(), started)
        self.virsh("reset instance-1")
        self.assertEqual(self.host(processes), before)
        self.virsh("destroy instance-1")
        self.assertEqual(self.bring(**changes), "")
        self.assertNotEqual(self.started(), started)

    def test_1_libvirtd_ends_without_the_guests_that_it_started(self):
        """conmon, whose children they become, waits for its children."""
        self.bring()
        ended = "systemctl show --property=Result --property=ExecMainCode --property=ExecMainStatus --value edpm_libvirt_libvirtd"
        for what, command, result in (("a stop", "systemctl stop edpm_libvirt_libvirtd; %s; systemctl start edpm_libvirt_libvirtd" % ended, ["0", "1", "success"]),
                                      ("a crash", "kill -KILL $(podman inspect --format '{{.State.Pid}}' edpm_libvirt_libvirtd)", [])):
            with self.subTest(what):
                guest, before = self.start_guest(), self.started()
                self.assertEqual(sorted(self.host(command).split()), result)
                self.assertTrue(any(self.virsh("uri", check=False) == "qemu:///system" or time.sleep(1) for _ in range(30)), "no daemon answers")
                self.assertNotEqual(self.started(), before)
                self.assertEqual(self.guest_now(), guest)
                self.virsh("destroy instance-1")

    @realhost.long
    def test_2_libvirtd_waits_for_guests_in_its_container(self):
        """As on a host without systemd-machined."""
        inside = {"edpm_libvirt_qemu_optional_mounts": []}
        self.bring(**inside)
        guest = self.start_guest()
        self.assertNotIn(self.SCOPE, self.cgroups())
        before = self.started()
        self.assertEqual(self.bring(), self.PENDING % "edpm_libvirt_libvirtd")
        self.assertEqual((self.started(), self.guest_now()), (before, guest))
        self.virsh("destroy instance-1")
        self.assertEqual(self.bring(), "")
        self.assertNotEqual(self.started(), before)

    def test_3_a_daemon_is_not_replaced_while_guests_run(self):
        self.bring()
        guest = self.start_guest()
        message = self.refused("libvirt", **self.variables(edpm_libvirt_daemons=["virtlogd", "virtqemud"]))[1]
        self.assertIn("1 guests run (instance-1), and libvirtd would be replaced by virtlogd, virtqemud. Migrate or stop", message)
        self.assertEqual(self.guest_now(), guest)

    def test_4_guests_are_shut_down_with_the_host(self):
        self.bring()
        guest = self.start_guest()
        self.host("systemctl restart edpm-libvirt-guests")
        self.assertEqual(self.guest_now(), guest, "a guest ended though the host does not")
        # As by systemctl poweroff, which needs logind.
        realhost.sh("podman", "stop", "--time", "60", realhost.NAME)
        realhost.sh("podman", "start", realhost.NAME)
        self.wait()
        log = self.host("cat /var/log/containers/libvirt/qemu/instance-1.log").splitlines()[-1]
        self.assertTrue(log.endswith("shutting down, reason=destroyed"), log)


@realhost.long
class LibvirtConfigurationTest(realhost.HostTest):
    """Daemons try their new configuration in a container of their own."""

    IMAGES = ("nova",)

    def variables(self, **more):
        return dict({"edpm_libvirt_image": "localhost/edpm-nova-libvirt:latest"}, **more)

    def state(self):
        return self.host("podman inspect --format '{{.Name}} {{.State.StartedAt}}' edpm_libvirt_virtlogd edpm_libvirt_libvirtd; cat /var/lib/openstack/libvirt/*/*")

    def test_what_a_daemon_does_not_start_with_is_refused(self):
        self.succeeds("libvirt", **self.variables(edpm_libvirt_qemu_settings={"vnc_password": "S3cretPass"}))
        before = self.state()
        for settings, reason in (
                ({"edpm_libvirt_daemon_settings": {"unix_sock_rw_perms": 770}}, "libvirtd: Can't load config file: .* expected a string for 'unix_sock_rw_perms'"),
                ({"edpm_libvirt_daemon_settings": {"unix_sock_group": "nobodys"}}, "libvirtd: invalid argument: Failed to parse group"),
                ({"edpm_libvirt_daemon_settings": {"log_outputs": "9:nowhere"}}, "virtlogd: invalid argument: Invalid log priority '9'"),
                # libvirtd would be removed.
                ({"edpm_libvirt_daemons": ["virtlogd"], "edpm_libvirt_daemon_settings": {"log_outputs": "8:nowhere"}}, "virtlogd: invalid argument: Invalid log priority '8'"),
                ({"edpm_libvirt_qemu_settings": {"vnc_password": 7}}, "libvirtd: .*qemu.conf: expected a string for 'vnc_password'"),
        ):
            with self.subTest(reason):
                result, message = self.refused("libvirt", "--diff", **self.variables(**settings))
                self.assertRegex(message, "^Configure the daemons: Refused, nothing was changed: .*" + reason)
                self.assertNotIn("S3cretPass", result.output)
                self.assertEqual(self.state(), before)
        self.succeeds("libvirt", **self.variables(edpm_libvirt_qemu_settings={"vnc_password": "other"}))
        self.assertNotEqual(self.state(), before)


class ConfigurationTest(realhost.HostTest):
    """A running nova-compute survives whatever is in its configuration."""

    IMAGES = ("nova",)
    NOVA = ("[DEFAULT]\ntransport_url = rabbit://u:S3cretPass@127.0.0.1:5672/\ncompute_driver = libvirt.LibvirtDriver\nstate_path = /var/lib/nova\n"
            "[oslo_concurrency]\nlock_path = /var/lib/nova/tmp\n[libvirt]\nvirt_type = qemu\n")
    DIRECTORY = "/var/lib/openstack/nova"
    # Any text is a valid value, but nova-compute ends at once if there is no such transport.
    FATAL = "[oslo_messaging_notifications]\ntransport_url = nosuch://u:S3cretPass@127.0.0.1/\n"

    def variables(self, override, layers=None, **more):
        files = dict({"01-nova.conf": self.NOVA, "02-nova-override.conf": override}, **layers or {})
        for name, text in files.items():
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        return dict({"edpm_nova_compute_image": "localhost/edpm-nova-compute:latest",
                     "edpm_config_files": {name: self.path(name) for name in files}}, **more)

    def state(self):
        """Returns what changes with each start of nova-compute, and what it reads."""
        self.assertEqual(self.host("systemctl is-active edpm_nova_compute"), "active")
        return self.host("podman inspect --format '{{.State.StartedAt}}' edpm_nova_compute; cat %s/*" % self.DIRECTORY)

    def override(self):
        return self.host("podman exec edpm_nova_compute cat /etc/nova/nova.conf.d/02-nova-override.conf")

    def fails(self, override, *arguments, **more):
        result, message = self.refused("nova", "--diff", *arguments, **self.variables(override, **more))
        self.assertNotIn("S3cretPass", result.output)
        return message.partition(": ")[2]

    def test_0_a_host_of_which_nova_has_another_is_refused(self):
        name, listing = self.host("uname --nodename"), "ls --recursive /var/lib/nova /var/lib/edpm/nova-host %s 2>/dev/null || true" % self.DIRECTORY
        before = self.host(listing)
        self.assertIn("nova-compute is up as %s in nova, and has never run on this host." % name, self.fails("", edpm_nova_in_use=name, edpm_nova_compute_id="theirs"))
        self.assertEqual(self.host(listing), before)

    def test_1_what_cannot_be_read_does_not_replace_anything(self):
        self.succeeds("nova", **self.variables("[DEFAULT]\ndebug = true\n"))
        before = self.state()
        refused = "Refused, nothing was changed: customServiceConfig line "
        for number, (override, reason) in enumerate((
                ("[libvirt]\n# comment\nvirt_type = kwm\n", "3: virt_type in [libvirt] is not valid: Valid values are [kvm, lxc, qemu, parallels], but found 'kwm'"),
                ("[DEFAULT]\nresume_guests_state_on_host_boot = maybe", "2: resume_guests_state_on_host_boot in [DEFAULT] is not valid: Unexpected boolean value 'maybe'"),
                # Only the host knows the value of the other option, which can be a secret one.
                ("[DEFAULT]\nresume_guests_state_on_host_boot = $my_ip", "2: resume_guests_state_on_host_boot in [DEFAULT] is not valid"),
                ("[oslo_messaging_rabbit]\nrabbit_retry_interval = few\n",
                 "2: rabbit_retry_interval in [oslo_messaging_rabbit] is not valid: invalid literal for int() with base 10: 'few'"),
                ("[DEFAULT]\nS3cretPass\n", "2: No ':' or '=' found in assignment"),
                ("[DEFAULT]\nhost = other\n", "2: host in [DEFAULT] must stay " + self.host("uname --nodename")),
                ("[DEFAULT]\ntransport_url = rabbit://u:S3cretPass@127.0.0.1:5673/\n", "2: transport_url in [DEFAULT] must be that of 01-nova.conf"),
        )):
            # Check mode reads the same: one of them shows it where every change is tested.
            for arguments in ((), ("--check",)) if runs.LONG or number == 0 else ((),):
                with self.subTest(override, arguments=arguments):
                    self.assertIn(refused + reason, self.fails(override, *arguments))
                    self.assertEqual(self.state(), before)

    @realhost.long
    def test_1_layers_of_the_cell_come_between_what_is_generated_and_the_override(self):
        layers = {"01-template-01-config.conf": "[DEFAULT]\nreserved_host_memory_mb = 1\nreserved_host_cpus = 1\n",
                  "01-template-01-secrets.conf": "[DEFAULT]\nreserved_host_cpus = 2\nreserved_host_disk_mb = 2\n",
                  "03-nova-secrets.conf": "[DEFAULT]\nreserved_host_disk_mb = 3\n"}
        self.succeeds("nova", **self.variables("[DEFAULT]\nreserved_host_memory_mb = 9\n", layers))
        read = self.host("podman exec edpm_nova_compute python3 -c 'import nova.conf; nova.conf.CONF([\"--config-file\", \"/dev/null\", \"--config-dir\", \"/etc/nova/nova.conf.d\"]); "
                         "print(nova.conf.CONF.reserved_host_memory_mb, nova.conf.CONF.reserved_host_cpus, nova.conf.CONF.reserved_host_disk_mb)'")
        self.assertEqual(read.splitlines()[-1], "9 2 3")
        before = self.state()
        for name, value, detail in (("01-template-01-config.conf", "kwm", ": Valid values are [kvm, lxc, qemu, parallels], but found 'kwm'"),
                                    ("01-template-02-secrets.conf", "S3cretPass", "")):
            message = self.fails("", layers={name: "[libvirt]\nvirt_type = %s\n" % value})
            self.assertIn("Refused, nothing was changed: %s line 2: virt_type in [libvirt] is not valid%s" % (name, detail), message)
            self.assertEqual(self.state(), before)

    @realhost.long
    def test_1_files_next_to_the_options_are_read_and_removed(self):
        provider = "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n  inventories:\n    additional:\n    - CUSTOM_LICENCE: {total: 4}\n"
        files = {"policy.yaml": "a: b\n", "vendor_data.json": "{}", "provider.yaml": provider}
        self.succeeds("nova", **self.variables("", files))
        self.assertEqual(self.succeeds("nova", **self.variables("", files)).changed, [])
        directory = "/etc/nova/nova.conf.d/"
        read = ("import nova.conf; from nova.compute import provider_config; conf = nova.conf.CONF; conf([\"--config-file\", \"/dev/null\", \"--config-dir\", \"%s\"]); "
                "print(conf.find_file(\"policy.yaml\"), conf.api.vendordata_jsonfile_path, sorted(provider_config.get_provider_configs(conf.compute.provider_config_location)))" % directory)
        self.assertEqual(self.host("podman exec edpm_nova_compute python3 -c '%s'" % read).splitlines()[-1],
                         "%spolicy.yaml %svendor_data.json ['$COMPUTE_NODE']" % (directory, directory))
        self.succeeds("nova", **self.variables(""))
        self.assertEqual(self.host("ls %s" % self.DIRECTORY).split(), ["01-nova-host.conf", "01-nova.conf", "02-nova-override.conf"])

    def test_1_what_would_leave_guests_does_not_replace_anything(self):
        self.succeeds("nova", **self.variables(""))
        before, guest = self.state(), "/var/lib/nova/instances/6a5c7d1e-0f6c-4b1d-9d3a-1b2c3d4e5f60"
        self.addCleanup(self.host, "rm --force --recursive /var/lib/nova/compute_id " + guest)
        self.host("touch /var/lib/nova/compute_id; mkdir " + guest)
        for option, left in (("instances_path", "/var/lib/nova/instances, which has directories of guests (1)"), ("state_path", "/var/lib/nova, which has the ID of the compute (1)")):
            with self.subTest(option):
                self.assertIn("Refused, nothing was changed: customServiceConfig line 2: %s in [DEFAULT] would leave %s" % (option, left),
                              self.fails("[DEFAULT]\n%s = /var/lib/nova/elsewhere\n" % option))
                self.assertEqual(self.state(), before)
                self.host("rm --force --recursive " + guest)
        self.succeeds("nova", **self.variables("[DEFAULT]\ninstances_path = /var/lib/nova/elsewhere\n"))

    @realhost.long
    def test_2_an_unknown_option_is_a_warning(self):
        result = self.succeeds("nova", **self.variables("[DEFAULT]\ndebgu = S3cretPass\n"))
        self.assertIn("customServiceConfig line 2: debgu in [DEFAULT] is unknown to the image", " ".join(result.output.split()))
        self.assertNotIn("S3cretPass", result.output)
        self.assertEqual(result.output.count("customServiceConfig"), 1, result.output)

    def test_3_what_ends_the_daemon_is_rolled_back(self):
        good = "[DEFAULT]\ndebug = false\n"
        # There is no bus: the check of health would fail, and then every other run tries it.
        self.succeeds("nova", **self.variables(good, edpm_health_seconds=0))
        for begins in ("Rolled back, ", "Rolled back earlier: "):
            before = self.state()
            message = self.fails(self.FATAL, edpm_health_seconds=0)
            self.assertRegex(message, "^%sedpm_nova_compute.service does not stay up: .*Failed to load transport driver \"nosuch\"" % begins)
            self.assertEqual(self.override(), good.strip())
        self.assertEqual(self.state(), before, "it was restarted again for what was rolled back already")
        self.succeeds("nova", **self.variables(good))
        self.assertEqual(self.state(), before, "it ran with this already")
        self.succeeds("nova", **self.variables("[DEFAULT]\ndebug = true\n"))
        self.assertEqual(self.override(), "[DEFAULT]\ndebug = true")

    @realhost.long
    def test_4_a_run_that_is_killed_between_the_swap_and_the_restart(self):
        self.addCleanup(self.unshim, "systemctl")
        for action in ("restart", "daemon-reload"):
            with self.subTest(action):
                self.succeeds("nova", **self.variables(""))
                self.shim("systemctl", "'%s'*" % action, WAIT)
                self.killed("nova", "/run/reached", **self.variables(self.FATAL))
                self.unshim("systemctl")
                self.assertIn("nosuch", self.host("cat %s/02*" % self.DIRECTORY), "it was killed before the swap")
                # The module outlives its run, and rolls back what was not tried to its end. Until then a run fails, and is retried.
                self.host("flock --timeout 200 /var/lib/edpm/services true")
                self.assertRegex(self.fails(self.FATAL), "^Rolled back, .*nosuch")
                self.assertEqual(self.override(), "")

    @realhost.long
    def test_5_a_command_that_the_image_does_not_have(self):
        self.succeeds("nova", **self.variables(""))
        before = self.state()
        self.assertRegex(self.fails("", edpm_nova_command=["nova-compte"]), "^Rolled back, .*failed to exec")
        self.assertNotEqual(self.state(), before)

    @realhost.long
    def test_6_guests_of_a_host_without_hardware_virtualization(self):
        host = "cat %s/01-nova-host.conf" % self.DIRECTORY
        self.succeeds("nova", **self.variables("", edpm_nova_virt_type="qemu"))
        self.assertIn("\n\n[libvirt]\nvirt_type = qemu", self.host(host))
        self.succeeds("nova", **self.variables(""))
        self.assertNotIn("virt_type", self.host(host))

    @realhost.long
    def test_6_volumes_of_hosts_with_multipathd(self):
        host = "cat %s/01-nova-host.conf" % self.DIRECTORY
        self.succeeds("nova", **self.variables(""))
        self.assertNotIn("multipath", self.host(host))
        self.host("touch /etc/multipath.conf")
        self.addCleanup(self.host, "rm --force /etc/multipath.conf")
        self.succeeds("nova", **self.variables("", edpm_nova_virt_type="qemu"))
        self.assertIn("\n\n[libvirt]\nvirt_type = qemu\nvolume_use_multipath = true", self.host(host))
        self.succeeds("nova", **self.variables("", edpm_nova_multipath=False))
        self.assertNotIn("multipath", self.host(host))

    @realhost.long
    def test_6_the_name_of_the_host_in_nova_never_changes(self):
        self.succeeds("nova", **self.variables(""))
        name = self.host("uname --nodename")
        self.assertIn("\nhost = %s\n" % name, self.host("cat %s/01-nova-host.conf" % self.DIRECTORY))
        before = self.state()
        self.assertIn("The host is %s in nova and would be other, host name %s. Restore" % (name, name), self.fails("", edpm_nova_host="other"))
        self.addCleanup(self.host, "hostname " + name)
        self.host("hostname renamed")
        self.assertIn("The host is %s in nova and would be renamed. Restore" % name, self.fails(""))
        self.assertIn("The host is %s in nova and would be %s, host name renamed. Restore" % (name, name), self.fails("", edpm_nova_host=name))
        self.assertEqual(self.state(), before)
        self.host("hostname " + name)
        self.assertEqual(self.succeeds("nova", **self.variables("", edpm_nova_in_use=name)).changed, [])

    @realhost.long
    def test_7_the_first_configuration(self):
        self.succeeds("nova_cleanup")
        self.assertEqual(self.host("ls /var/lib/edpm/services"), "")
        self.assertRegex(self.fails(self.FATAL), "^edpm_nova_compute.service does not stay up: .*nosuch")
        self.succeeds("nova", **self.variables(""))
        self.state()


@realhost.long
class HealthTest(realhost.HostTest):
    """Who looks at the units of a host sees which service is not well, and nothing is restarted for it."""

    IMAGES = ("nova",)
    CONTAINERS = "nova_compute", "libvirt_libvirtd", "libvirt_virtlogd"
    # nova-compute has a connection, whatever is said through it.
    BUS = ("import socket; s = socket.create_server(('127.0.0.1', 5672)); kept = []\n"
           "while True: kept.append(s.accept())\n")

    def started(self):
        return self.host("podman inspect --format '{{.Name}} {{.State.StartedAt}}' " + " ".join("edpm_" + name for name in self.CONTAINERS))

    def well(self, name):
        """Runs the check of a service, as its timer does, and reports whether it is well."""
        self.host("systemctl start edpm-health-%s.service" % name, check=False)
        return self.host("systemctl is-failed edpm-health-%s.service" % name, check=False) == "inactive"

    def test_health(self):
        with open(self.path("nova.conf"), "w", encoding="utf-8") as file:
            file.write(ConfigurationTest.NOVA)
        variables = {"edpm_nova_compute_image": "localhost/edpm-nova-compute:latest", "edpm_libvirt_image": "localhost/edpm-nova-libvirt:latest",
                     "edpm_config_files": {"01-nova.conf": self.path("nova.conf")}}
        for playbook in ("libvirt", "nova"):
            self.succeeds(playbook, **variables)
            self.assertEqual(self.succeeds(playbook, **variables).changed, [])
        self.assertEqual(self.host("systemctl is-active " + " ".join("edpm-health-%s.timer" % name for name in self.CONTAINERS)).split(), ["active"] * 3)
        before = self.started()
        self.assertEqual([self.well(name) for name in self.CONTAINERS], [False, True, True], self.host("journalctl --lines 30 --no-pager"))
        self.assertIn("edpm-health-nova_compute.service", self.host("systemctl --failed --plain"))
        log = self.host("journalctl --output cat --identifier edpm-health-nova_compute")
        self.assertIn("nova-compute has no connection to its message bus, port 5672.", log)
        self.assertNotIn("S3cretPass", log)

        self.put("/run/bus.py", self.BUS)
        self.host("systemd-run --unit=bus python3 /run/bus.py")
        # The connection is given up and tried again from time to time, as nobody answers.
        self.assertTrue(any(self.well("nova_compute") or time.sleep(1) for _ in range(60)))
        self.assertEqual(self.started(), before, "a check restarted a service")
        self.host("systemctl stop edpm_libvirt_libvirtd")
        self.assertFalse(self.well("libvirt_libvirtd"))

        self.succeeds("nova", **dict(variables, edpm_health_seconds=0))
        self.assertNotIn("edpm-health-nova_compute", self.host("systemctl list-units --all --plain 'edpm-health-*'; ls /etc/systemd/system"))
        self.succeeds("nova_cleanup", **variables)
        self.assertEqual(self.host("systemctl list-units --all --plain --no-legend 'edpm-health-*'; ls /etc/systemd/system | grep edpm-health", check=False), "")


@realhost.long
class ImagesTest(realhost.HostTest):
    """Images are there before a step needs them, and those that nothing uses are removed."""

    IMAGES = ("nova",)
    NOVA = "localhost/edpm-nova-compute:latest"
    LOGIN = '{"auths": {"registry.example.com": {"auth": "dXNlcjpTM2NyZXRQYXNz"}}}'  # user:S3cretPass

    def variables(self, **more):
        with open(self.path("login"), "w", encoding="utf-8") as file:
            file.write(self.LOGIN)
        return dict({"edpm_images": [self.NOVA], "edpm_config_files": {".dockerconfigjson": self.path("login")}}, **more)

    def images(self):
        return set(self.host("podman images --filter readonly=false --format '{{.Repository}}'").split())

    def setUp(self):
        self.host("cd /root; for name in old kept; do echo $name > $name; tar c $name | podman import --quiet - localhost/$name:1; done;"
                  "podman tag localhost/old:1 localhost/other:1; podman create --replace --name keeper localhost/kept:1 /kept")
        self.addCleanup(self.host, "podman rm keeper; podman rmi localhost/kept:1 localhost/old:1 localhost/other:1; rm -rf /root/.config/containers", check=False)

    def test_images_that_nothing_uses_are_removed(self):
        everything = {"localhost/old", "localhost/other", "localhost/kept"}
        self.assertEqual((self.succeeds("pull_images", **self.variables()).changed, self.images()), (["Copy the login for registries"], everything))
        for arguments, left in ((("--check",), everything), ((), {"localhost/kept"})):
            result = self.succeeds("pull_images", "--diff", *arguments, **self.variables(edpm_images_prune=True))
            self.assertEqual((result.changed, self.images()), (["Pull the images"], left))
        self.assertEqual(self.succeeds("pull_images", **self.variables(edpm_images_prune=True)).changed, [])
        self.host("podman image exists " + self.NOVA)

    def test_the_login_is_used_and_not_shown(self):
        result, message = self.refused("pull_images", "--diff", "-vvv", **self.variables(
            edpm_images=["localhost/none:1"], edpm_podman_pull_retries=1, edpm_podman_pull_args=["--creds=user:S3cretPass"]))
        self.assertRegex(message, "^Pull the images: Pulling localhost/none:1 failed: ")
        for secret in ("S3cretPass", "dXNlcjpTM2NyZXRQYXNz"):
            self.assertNotIn(secret, result.output)
        self.assertEqual(self.host("podman login --get-login registry.example.com; stat -c '%a %U' /root/.config/containers/auth.json").split(), ["user", "600", "root"])


@realhost.long
class MigrationCertificatesTest(realhost.HostTest):
    """libvirt lets in libvirt of other hosts, and no one with a key that QEMU reads."""

    IMAGES = ("nova",)
    IMAGE = "localhost/edpm-nova-libvirt:latest"
    NAMES = "OU=libvirt of openstack/cell1,CN=*"

    def openssl(self, *arguments):
        realhost.sh("openssl", *arguments, cwd=self.directory)

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                     "-keyout", name + ".key", "-out", name + ".crt")

    def certificate(self, name, authority, unit):
        """Makes the certificate of the host with a name as certificates of the operators have it."""
        with open(self.path(name + ".ext"), "w", encoding="utf-8") as file:
            file.write("subjectAltName=IP:%s\nkeyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\n" % self.address)
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", unit + "/CN=host", "-keyout", name + ".key", "-out", name + ".csr")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", authority + ".crt", "-CAkey", authority + ".key", "-CAcreateserial", "-days", "1",
                     "-extfile", name + ".ext", "-out", name + ".crt")

    def files(self, libvirt, qemu, *trusted):
        if qemu is None:
            return {"tls.crt": self.path(libvirt + ".crt"), "tls.key": self.path(libvirt + ".key"), "ca.crt": self.path("cell.crt")}
        with open(self.path("trusted.crt"), "w", encoding="utf-8") as bundle:
            for name in trusted:
                with open(self.path(name + ".crt"), encoding="utf-8") as file:
                    bundle.write(file.read())
        return dict(self.files(libvirt, None), **{"qemu.crt": self.path(qemu + ".crt"), "qemu.key": self.path(qemu + ".key"), "qemu-ca.crt": self.path("trusted.crt")})

    def lets_in(self, certificate, key):
        """Reports whether libvirt on the host lets in who has a certificate and key that are on it."""
        self.host("rm -rf /var/lib/libvirt/client; mkdir /var/lib/libvirt/client; cd /var/lib/libvirt/client; cp ../pki/CA/cacert.pem .; "
                  "cp ../pki/%s clientcert.pem; cp ../pki/%s clientkey.pem" % (certificate, key))
        answer = self.host("podman exec edpm_libvirt_libvirtd virsh --quiet --connect 'qemu+tls://%s/system?pkipath=/var/lib/libvirt/client' uri" % self.address, check=False)
        return answer.startswith("qemu")

    def both(self):
        return (self.lets_in("libvirt/clientcert.pem", "libvirt/private/clientkey.pem"), self.lets_in("qemu/client-cert.pem", "qemu/client-key.pem"))

    def started(self):
        return self.host("podman inspect --format '{{.State.StartedAt}}' edpm_libvirt_libvirtd")

    def test_hosts_come_from_one_certificate_to_two(self):
        for name in ("cell", "qemu-ca"):
            self.authority(name)
        for name, authority, unit in (("shared", "cell", ""), ("libvirt", "cell", "/OU=libvirt of openstack\\/cell1"),
                                      ("transitional", "cell", "/OU=QEMU of openstack\\/cell1"), ("qemu", "qemu-ca", "/OU=QEMU of openstack\\/cell1")):
            self.certificate(name, authority, unit)
        common = {"edpm_libvirt_image": self.IMAGE, "edpm_migration_address": self.address}

        def bring(files, **more):
            self.succeeds("libvirt_tls", edpm_config_files=files, **common)
            self.succeeds("libvirt", **common, **more)

        bring(self.files("shared", None))
        self.assertEqual(self.both(), (True, True), "an earlier version")
        bring(self.files("libvirt", "transitional", "qemu-ca", "cell"))
        bring(self.files("libvirt", "qemu", "qemu-ca", "cell"), edpm_libvirt_tls_clients=self.NAMES)
        self.assertEqual(self.both(), (True, False))
        before = self.started()
        self.succeeds("libvirt_tls", edpm_config_files=self.files("libvirt", "qemu", "qemu-ca"), **common)
        self.assertEqual(self.both(), (True, False))
        self.assertEqual(self.started(), before, "certificates restart nothing")
        self.assertEqual(self.host("stat -c '%a %U' /var/lib/libvirt/pki/libvirt/private /var/lib/libvirt/pki/libvirt/private/clientkey.pem"), "700 root\n600 root")

        # What QEMU had before, and while others still trusted the authority of libvirt only.
        for name in ("shared", "transitional"):
            for kind in ("crt", "key"):
                with open(self.path("%s.%s" % (name, kind)), encoding="utf-8") as file:
                    self.put("/var/lib/libvirt/pki/%s.%s" % (name, kind), file.read())
            self.assertFalse(self.lets_in(name + ".crt", name + ".key"), name)
        again = [self.succeeds("libvirt_tls", edpm_config_files=self.files("libvirt", "qemu", "qemu-ca"), **common).changed,
                 self.succeeds("libvirt", **common, edpm_libvirt_tls_clients=self.NAMES).changed]
        self.assertEqual(again, [[], []])


@realhost.long
class CertificatesTest(realhost.HostTest):
    """Hosts and nova-compute trust what is given, and nothing that no longer is."""

    IMAGES = ("nova",)
    VERIFY = "openssl verify -CAfile /etc/ssl/certs/ca-certificates.crt"

    def authority(self, name):
        realhost.sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=" + name,
                    "-keyout", os.devnull, "-out", self.path(name))
        with open(self.path(name), encoding="utf-8") as file:
            self.put("/root/" + name, file.read())
        return self.path(name)

    def trusted(self, name):
        """Reports whether the host and a nova-compute that runs already trust an authority."""
        return (self.host(self.VERIFY + " /root/" + name, check=False).endswith("OK"),
                self.host("podman exec -i edpm_nova_compute " + self.VERIFY + " < /root/" + name, check=False).endswith("OK"))

    def test_certificates(self):
        files = {"one.pem": self.authority("one"), "two": self.authority("two")}
        self.succeeds("trust_certificates", edpm_config_files={"one.pem": files["one.pem"]})
        with open(self.path("nova.conf"), "w", encoding="utf-8") as file:
            file.write(ConfigurationTest.NOVA)
        self.succeeds("nova", edpm_nova_compute_image="localhost/edpm-nova-compute:latest", edpm_config_files={"01-nova.conf": self.path("nova.conf")})
        self.assertEqual((self.trusted("one"), self.trusted("two")), ((True, True), (False, False)))
        self.succeeds("trust_certificates", edpm_config_files=files)
        self.assertEqual((self.trusted("one"), self.trusted("two")), ((True, True), (True, True)))
        self.assertEqual(self.succeeds("trust_certificates", edpm_config_files=files).changed, [])
        with open(self.path("damaged"), "w", encoding="utf-8") as file:
            file.write("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n")
        message = self.refused("trust_certificates", edpm_config_files={"bad": self.path("damaged")})[1]
        self.assertIn("Refused, nothing was changed: bad.crt has no certificate in PEM format", message)
        self.succeeds("trust_certificates", edpm_config_files={"two": files["two"]})
        self.assertEqual((self.trusted("one"), self.trusted("two")), ((False, False), (True, True)))
        self.succeeds("trust_certificates")
        self.assertEqual((self.trusted("one"), self.trusted("two")), ((False, False), (False, False)))


@realhost.long
class KernelTest(realhost.HostTest):
    """A host is rebooted for the arguments of its kernel only where that is allowed, and never while guests run."""

    # The kernel is that of this machine: its arguments and the ID of the boot are files here, and a reboot writes them.
    UPDATE_GRUB = "#!/bin/sh\nfor file in /etc/default/grub.d/*.cfg; do [ ! -e $file ] || . $file; done\necho ro $GRUB_CMDLINE_LINUX_DEFAULT > /var/next\n"
    SHUTDOWN = "#!/bin/sh\necho $* >> /var/reboots\ncat /var/next > /run/cmdline\ncat /proc/sys/kernel/random/uuid > /run/boot_id\n"
    NOVA = "[Service]\nExecStart=/bin/sleep infinity\nExecStop=-/bin/sh /run/meanwhile\n"
    ARGUMENTS = {"edpm_kernel_args": "intel_iommu=on iommu=pt"}
    ALLOWED = dict(ARGUMENTS, edpm_reboot_strategy="auto")

    def setUp(self):
        self.put("/usr/sbin/update-grub", self.UPDATE_GRUB, "755")
        self.put("/usr/local/lib/shutdown", self.SHUTDOWN, "755")
        self.put("/run/cmdline", "ro")
        self.put("/run/boot_id", "boot-1")
        self.put("/etc/systemd/system/edpm_nova_compute.service", self.NOVA)
        self.host("mount --bind /run/cmdline /proc/cmdline; mount --bind /run/boot_id /proc/sys/kernel/random/boot_id;"
                  "ln -sf /usr/local/lib/shutdown /sbin/shutdown; systemctl daemon-reload; systemctl start edpm_nova_compute")
        self.addCleanup(self.host, "umount /proc/cmdline /proc/sys/kernel/random/boot_id; ln -sf /bin/systemctl /sbin/shutdown; rm -rf /var/reboots /var/next "
                        "/run/meanwhile /etc/default/grub.d /var/lib/edpm/kernel-arguments.json /usr/sbin/update-grub; systemctl stop edpm_nova_compute", check=False)

    def reboots(self):
        return len(self.host("cat /var/reboots", check=False).splitlines()) if "reboots" in self.host("ls /var") else 0

    def note(self):
        with open(self.path("recap"), encoding="utf-8") as file:
            return (json.load(file)["hosts"]["host"] + [""])[5]

    def test_a_reboot_has_to_be_allowed(self):
        self.assertEqual(self.succeeds("configure_kernel", "--check", **self.ALLOWED).changed, ["Set the kernel arguments", "Report that the host is rebooted"])
        self.assertEqual(self.host("ls /etc/default/grub.d", check=False).count("90-edpm"), 0)
        for changed in (["Set the kernel arguments"], []):
            self.assertEqual(self.succeeds("configure_kernel", **self.ARGUMENTS).changed, changed)
            self.assertEqual((self.note(), self.reboots()), ("A reboot is pending for the kernel arguments +intel_iommu=on +iommu=pt", 0))
        self.succeeds("configure_kernel", **self.ALLOWED)
        self.assertEqual((self.note(), self.reboots(), self.host("cat /proc/cmdline")), ("", 1, "ro intel_iommu=on iommu=pt"))
        self.assertEqual((self.succeeds("configure_kernel", **self.ALLOWED).changed, self.reboots()), ([], 1))
        self.succeeds("configure_kernel", edpm_reboot_strategy="auto")
        self.assertEqual((self.reboots(), self.host("cat /proc/cmdline")), (2, "ro"))

    def test_guests_keep_the_host_up(self):
        self.guest()
        message = self.refused("configure_kernel", **self.ALLOWED)[1]
        self.assertIn("1 guests run (instance-1): the host is not rebooted. Migrate or stop them", message)
        self.assertEqual((self.reboots(), self.host("systemctl is-active edpm_nova_compute guest").split()), (0, ["active", "active"]))
        self.host("systemctl stop guest")
        # One that nova-compute starts at the last moment.
        self.put("/run/meanwhile", self.GUEST)
        message = self.refused("configure_kernel", **self.ALLOWED)[1]
        self.assertIn("1 guests run (instance-1): the host is not rebooted", message)
        self.assertEqual((self.reboots(), self.host("systemctl is-active edpm_nova_compute guest").split()), (0, ["active", "active"]))
        self.host("systemctl stop guest; rm /run/meanwhile")
        self.succeeds("configure_kernel", **self.ALLOWED)
        self.assertEqual(self.reboots(), 1)

    def test_a_kernel_that_does_not_get_them(self):
        self.put("/usr/local/lib/shutdown", self.SHUTDOWN.replace("/var/next", "/dev/null"), "755")
        self.assertIn("See which entry or other boot loader it uses. Missing: intel_iommu=on iommu=pt", self.refused("configure_kernel", **self.ALLOWED)[1])
        self.assertIn("See which entry or other boot loader it uses. Missing: intel_iommu=on iommu=pt", self.refused("configure_kernel", **self.ALLOWED)[1])
        self.assertEqual(self.reboots(), 1)

    def test_a_run_that_is_killed_before_the_boot_loader_reads_them(self):
        self.shim("update-grub", "*", WAIT)
        self.killed("configure_kernel", "/run/reached", **self.ALLOWED)
        self.unshim("update-grub")
        self.succeeds("configure_kernel", **self.ALLOWED)
        self.assertEqual((self.reboots(), self.host("cat /proc/cmdline")), (1, "ro intel_iommu=on iommu=pt"))

    def test_huge_pages(self):
        file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        before = int(self.host("cat " + file))
        self.addCleanup(self.host, "echo %d > %s" % (before, file))
        pages = [{"size": "2M", "count": before + 2}, {"size": "1G", "count": 0}]
        self.succeeds("configure_kernel", edpm_kernel_hugepages=pages)
        self.assertEqual(int(self.host("cat " + file)), before + 2)
        self.assertEqual(self.host("findmnt --noheadings --output FSTYPE,TARGET /dev/hugepages1G").split(), ["hugetlbfs", "/dev/hugepages1G"])
        for arguments in ((), ("--check",)):
            self.assertEqual(self.succeeds("configure_kernel", *arguments, edpm_kernel_hugepages=pages).changed, [])
        self.host("echo %d > %s; systemd-tmpfiles --create edpm-huge-pages.conf" % (before, file))
        self.assertEqual(int(self.host("cat " + file)), before + 2, "they are not reserved at boot")
        self.succeeds("configure_kernel")
        self.assertEqual((int(self.host("cat " + file)), self.host("findmnt /dev/hugepages1G; ls /etc/tmpfiles.d", check=False).count("huge")), (0, 0))


@realhost.long
class StorageTest(realhost.HostTest):
    """A host keeps its names for storage, and its daemons read what changes without a restart."""

    # They need what containers do not have: their own network namespace of iSCSI, and device mapper.
    DAEMON = "[Unit]\nConditionVirtualization=\n[Service]\nType=simple\nPIDFile=\nExecStart=\nExecStart=/bin/sleep infinity\n"
    NAMES = "cat /etc/iscsi/initiatorname.iscsi /etc/nvme/hostnqn /etc/nvme/hostid"
    READ = "Have multipathd read its configuration again"

    def setUp(self):
        for unit in ("iscsid", "multipathd"):
            self.put("/etc/systemd/system/%s.service.d/test.conf" % unit, self.DAEMON)
        self.host("systemctl daemon-reload")
        self.shim("multipathd", "reconfigure", "exit 0")
        self.shim("modprobe", "--all*", "exit 0")
        self.calls()

    def started(self):
        return self.host("systemctl show --property Id,ActiveEnterTimestamp --value iscsid multipathd")

    def test_storage(self):
        everything = ["Name the host", "Write the configuration", "Load the modules of the kernel", "Start the daemons", self.READ]
        self.assertEqual(self.succeeds("configure_storage", "--check").changed, everything)
        self.assertEqual((self.calls(), self.host("ls /etc/iscsi/initiatorname.iscsi /etc/multipath.conf 2>/dev/null", check=False)), ([], ""))
        self.assertEqual(self.succeeds("configure_storage").changed, everything)
        self.assertEqual(self.calls(), ["modprobe --all -- iscsi_tcp dm_multipath nvme_tcp", "multipathd reconfigure"])
        self.assertEqual(self.host("systemctl is-active iscsid multipathd; systemctl is-enabled iscsid multipathd").split(), ["active"] * 2 + ["enabled"] * 2)
        names, started = self.host(self.NAMES), self.started()
        self.assertRegex(names, r"InitiatorName=iqn\.\S+\nnqn\.2014-08\.org\.nvmexpress:uuid:(\S+)\n\1")
        for arguments in ((), ("--check",)):
            self.assertEqual(self.succeeds("configure_storage", *arguments).changed, [])
        settings = {"user_friendly_names": "no", "no_path_retry": 12}
        self.assertEqual(self.succeeds("configure_storage", edpm_storage_multipath_settings=settings).changed, ["Write the configuration", self.READ])
        self.assertEqual(self.calls(), ["multipathd reconfigure"])
        self.assertRegex(self.host("multipath -t"), r'(?m)^\s*no_path_retry 12')
        for variables, reason in (
                ({"edpm_storage_multipath_settings": {"user_frendly_names": "no"}}, "Refused, nothing was changed: multipath.conf line 3, invalid keyword"),
                ({"edpm_storage_multipath_settings": {"a": 'b"\n}'}}, "edpm_storage_multipath_settings must have names in lower-case letters"),
                ({"edpm_storage_modules": ["a b"]}, "edpm_storage_modules must be names of modules"),
                ({"edpm_storage_initiator_name": "iqn.2026-11.com.example:a"}, "Leave it out, as volumes are exported to that name; or remove the file when none are attached.")):
            with self.subTest(reason):
                self.assertIn(reason, self.refused("configure_storage", **variables)[1])
        self.assertEqual((self.calls(), self.host(self.NAMES), self.started()), ([], names, started))
        self.assertIn("no_path_retry", self.host("cat /etc/multipath.conf"))

    def test_what_a_killed_run_wrote_is_read_by_the_next_one(self):
        with open(self.path("multipath.conf"), "w", encoding="utf-8") as file:
            file.write("defaults {\n\tpolling_interval 7\n}\n")
        own = {"edpm_config_files": {"multipath.conf": self.path("multipath.conf")}}
        self.succeeds("configure_storage")
        self.shim("multipathd", "reconfigure", WAIT)
        self.killed("configure_storage", "/run/reached", **own)
        self.shim("multipathd", "reconfigure", "exit 0")
        self.assertEqual(self.host("cat /etc/multipath.conf"), "defaults {\n\tpolling_interval 7\n}")
        self.calls()
        self.assertEqual(self.succeeds("configure_storage", **own).changed, [self.READ])
        self.assertEqual(self.calls(), ["multipathd reconfigure"])

    def test_parts_that_are_left_out(self):
        self.host("systemctl stop iscsid multipathd; rm -f /etc/iscsi/initiatorname.iscsi /etc/multipath.conf")
        self.succeeds("configure_storage", edpm_storage_iscsi=False, edpm_storage_multipath=False, edpm_storage_modules=[])
        self.assertEqual(self.host("systemctl is-active iscsid multipathd", check=False).split(), ["inactive"] * 2)
        self.assertEqual(self.host("ls /etc/iscsi/initiatorname.iscsi /etc/multipath.conf 2>/dev/null", check=False), "")


@realhost.long
class TunedTest(realhost.HostTest):
    """A host follows a profile of tuned. Its settings are those of the network namespace of the host: others would be those of this machine."""

    PROFILE = "[main]\nsummary=Test\n[sysctl]\nnet.ipv4.conf.all.arp_ignore=%d\n"
    SETTING = "sysctl -n net.ipv4.conf.all.arp_ignore"

    def setUp(self):
        for number in (1, 2):
            self.put("/etc/tuned/edpm-test%d/tuned.conf" % number, self.PROFILE % number)

    def test_profiles(self):
        everything = ["Write the profile", "Start tuned", "Apply the profile"]
        one, two = ({"edpm_tuned_profile": "edpm-test%d" % number} for number in (1, 2))
        self.assertEqual(self.succeeds("configure_tuned", "--check", **one).changed, everything)
        self.assertEqual(self.host("systemctl is-active tuned", check=False), "inactive")
        self.assertEqual(self.succeeds("configure_tuned", **one).changed, everything)
        self.assertEqual(self.host(self.SETTING + "; systemctl is-active tuned; systemctl is-enabled tuned").split(), ["1", "active", "enabled"])
        for arguments in ((), ("--check",)):
            self.assertEqual(self.succeeds("configure_tuned", *arguments, **one).changed, [])
        self.assertEqual(self.succeeds("configure_tuned", **two).changed, ["Write the profile", "Apply the profile"])
        self.assertEqual(self.host(self.SETTING), "2")
        for variables, reason in (({"edpm_tuned_profile": "nosuch"}, "Refused, nothing was changed: tuned has no profile nosuch."),
                                  ({"edpm_tuned_profile": "a;b"}, "edpm_tuned_profile must have names of profiles"),
                                  ({"edpm_tuned_isolated_cores": "2-"}, "edpm_tuned_isolated_cores a list of CPUs")):
            with self.subTest(reason):
                self.assertIn(reason, self.refused("configure_tuned", **variables)[1])
        # Somebody uses another one, and something else sets what the profile sets.
        self.host("tuned-adm profile edpm-test1")
        self.assertIn("Apply the profile", self.succeeds("configure_tuned", **two).changed)
        self.host("sysctl -q net.ipv4.conf.all.arp_ignore=0")
        self.assertIn("Settings of the profile edpm-test2 are not in force.", self.refused("configure_tuned", **two)[1])
        self.succeeds("configure_tuned", **dict(two, edpm_tuned_verify=False))
        self.host("systemctl restart tuned")
        self.succeeds("configure_tuned", **dict(two, edpm_tuned_isolated_cores="1"))
        self.assertIn("isolated_cores=1", self.host("cat /etc/tuned/cpu-partitioning-variables.conf"))

    def test_shared_memory(self):
        run = "/sys/kernel/mm/ksm/run"
        self.addCleanup(self.host, "echo %s > %s" % (self.host("cat " + run), run))
        for setting, value in (("enabled", "1"), ("disabled", "2")):
            variables = {"edpm_tuned_profile": "edpm-test1", "edpm_tuned_ksm": setting}
            self.assertIn("Apply the setting of KSM", self.succeeds("configure_tuned", **variables).changed)
            self.assertEqual(self.host("cat " + run), value)
            self.assertEqual(self.succeeds("configure_tuned", **variables).changed, [])
        self.host("echo 1 > " + run)
        self.assertEqual(self.succeeds("configure_tuned", **variables).changed, ["Apply the setting of KSM"])


@realhost.long
class CephTest(realhost.HostTest):
    """libvirt and nova-compute have the keys of Ceph, and nobody sees them."""

    IMAGES = ("nova",)
    UUID = "0b7c1d4e-5a3f-4c6b-9d21-7f0e8a9b1c2d"
    KEYS = "AQBSdFhWAAAAABAAuXkbWDhaKQZ2W5Z0bm5sZQ==", "AQBSdFhWAAAAABAAb3RoZXJvdGhlcm90aGVyb3RoZQ=="
    GIVE = "Give libvirt the key of the user of Ceph"

    def variables(self, key):
        names = {"ceph.conf": "[global]\nfsid = %s\n" % self.UUID, "ceph.client.openstack.keyring": "[client.openstack]\n\tkey = %s\n" % key}
        for name, text in names.items():
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        return {"edpm_config_files": {name: self.path(name) for name in names}, "edpm_ceph_user": "openstack",
                "edpm_libvirt_image": "localhost/edpm-nova-libvirt:latest"}

    def value(self):
        return self.host("podman exec edpm_libvirt_libvirtd virsh --quiet secret-get-value " + self.UUID, check=False)

    def bring(self, playbook, *arguments, key=KEYS[0]):
        result = self.succeeds(playbook, "--diff", "-vvv", *arguments, **self.variables(key))
        for each in self.KEYS:
            self.assertNotIn(each, result.output)
        return result.changed

    def test_keys(self):
        copy = "Copy the configuration and the keys"
        self.assertEqual(self.bring("configure_ceph", "--check"), [copy])
        self.assertEqual(self.bring("configure_ceph"), [copy])
        self.assertEqual(self.host("stat --format '%a %u %g %n' /etc/ceph/*").splitlines(), ["640 0 42436 /etc/ceph/ceph.client.openstack.keyring", "640 0 42436 /etc/ceph/ceph.conf"])
        self.bring("libvirt")
        self.assertEqual(self.value(), self.KEYS[0])
        for playbook in ("configure_ceph", "libvirt"):
            for arguments in ((), ("--check",)):
                self.assertEqual(self.bring(playbook, *arguments), [])
        self.assertEqual(self.bring("configure_ceph", key=self.KEYS[1]), [copy, self.GIVE])
        self.assertEqual(self.value(), self.KEYS[1])
        self.host("systemctl restart edpm_libvirt_libvirtd")
        self.assertEqual(self.value(), self.KEYS[1])
        self.assertEqual([self.KEYS[1] in text for text in (self.host("journalctl --no-pager"), self.host("cat /proc/*/cmdline 2>/dev/null", check=False))], [False, False])
        # A compute that was removed and added again.
        self.succeeds("nova_cleanup")
        self.assertIn(self.GIVE, self.bring("libvirt"))
        self.assertEqual(self.value(), self.KEYS[1], "the files of the host are those of the step of Ceph")
        result, message = self.refused("configure_ceph", edpm_config_files={"../../etc/x": self.path("ceph.conf")})
        self.assertIn("must have the keys ceph.conf and ceph.client.<user>.keyring", message)


@realhost.long
class TimeTest(realhost.HostTest):
    """What is no longer wanted is taken back."""

    def configuration(self):
        return self.host("cat /etc/chrony/chrony.conf")

    def test_without_servers_those_of_the_distribution_are_back(self):
        self.succeeds("configure_os")
        before = self.configuration()
        self.assertRegex(before, "(?m)^(pool|server) ")
        self.succeeds("configure_os", edpm_ntp_servers=["192.0.2.7"])
        self.assertNotRegex(self.configuration(), "(?m)^(pool|server) ")
        result = self.succeeds("configure_os")
        self.assertEqual(self.configuration(), before)
        self.assertEqual(result.changed, ["Write the time servers", "Restart chrony"])
        self.assertEqual(self.succeeds("configure_os").changed, [])


@realhost.long
class ValidateNetworkTest(realhost.HostTest):
    """Routes that hosts have."""

    def test_several_next_hops(self):
        gateway = self.host("ip -4 route show default").split()[2]
        self.host("ip link add second type veth peer name first; ip address add 198.51.100.1/24 dev second;"
                  "ip link set first up; ip link set second up;"
                  "ip route replace default nexthop via {} dev eth0 nexthop via 198.51.100.2 dev second".format(gateway))
        self.addCleanup(self.host, "ip route replace default via {} dev eth0; ip link delete second".format(gateway))
        failed = self.run_playbook("validate_network", edpm_validate_retries=1, edpm_validate_delay_seconds=1)
        self.assertRegex(failed.output, r"failed: \[host\] \(item=198.51.100.2\)")
        self.assertRegex(failed.output, r"ok: \[host\] => \(item=%s\)" % gateway.replace(".", "[.]"))
        self.host("ip link set second mtu 1400")
        small = self.run_playbook("validate_network", edpm_validate_gateway=False, edpm_validate_mtu=1450)
        self.assertIn("The MTU of eth0, second is 1500, 1400,", small.output)
        self.succeeds("validate_network", edpm_validate_gateway=False, edpm_validate_mtu=1400)

    def test_a_link_local_gateway(self):
        default = self.host("ip -4 route show default")
        self.host("ip netns add router; ip link add v0 type veth peer name v1 netns router;"
                  "sysctl -q net.ipv6.conf.v0.disable_ipv6=0 net.ipv6.conf.v0.accept_dad=0; ip link set v0 up;"
                  "ip netns exec router sysctl -q net.ipv6.conf.v1.disable_ipv6=0; ip -n router address add fe80::1/64 dev v1 nodad;"
                  "ip -n router link set v1 up; ip -4 route delete default; ip -6 route add default via fe80::1 dev v0")
        self.addCleanup(self.host, "ip netns delete router; ip link delete v0; ip route replace " + default, check=False)
        result = self.succeeds("validate_network")
        self.assertIn("(item=fe80::1%v0)", result.output)


class CheckModeTest(realhost.HostTest):
    """With --check every playbook changes nothing, and reports what would be changed: on a converged host nothing."""

    IMAGES = ("nova",)
    PLAYBOOKS = ("configure_network", "validate_network", "install_os", "configure_os", "run_os", "libvirt", "nova")
    NOVA = ("[DEFAULT]\ntransport_url = rabbit://u:p@127.0.0.1:5672/\ncompute_driver = libvirt.LibvirtDriver\nstate_path = /var/lib/nova\n"
            "[oslo_concurrency]\nlock_path = /var/lib/nova/tmp\n[libvirt]\nvirt_type = qemu\n")
    # What shows a change of the host: files that are not logs, and when services were started.
    STATE = ("find /etc /var/lib/openstack /var/lib/edpm /var/lib/nova /run/libvirt -type f ! -name '*.log' ! -path '/var/lib/nova/tmp/*' -printf '%p %m %u %T@\n' | sort;"
             "systemctl show --property Id,ActiveEnterTimestamp --value 'edpm_*' ssh chrony; nft list table inet edpm; podman images --quiet")

    def variables(self, **more):
        for name, text in (("nova.conf", self.NOVA), ("template", "network_config: []\n")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        return dict(dict(edpm_nova_compute_image="localhost/edpm-nova-compute:latest", edpm_libvirt_image="localhost/edpm-nova-libvirt:latest",
                         edpm_config_files={"01-nova.conf": self.path("nova.conf")}, edpm_network_config_template=self.path("template"),
                         edpm_hosts_entries=[{"ip": "192.0.2.1", "names": ["api"]}], edpm_sysctl={"net.ipv4.conf.all.arp_ignore": 1},
                         edpm_ntp_servers=["192.0.2.7"], edpm_timezone="Europe/Prague", edpm_validate_mtu=1280), **more)

    def check(self, playbook, **more):
        """Returns what --check of a playbook reports as changed, and sees that it changed nothing."""
        before = self.host(self.STATE)
        result = self.run_playbook(playbook, "--check", "--diff", **self.variables(**more))
        self.assertEqual(result.code, 0, result.output)
        self.assertEqual(self.host(self.STATE), before, "%s changed the host in check mode:\n%s" % (playbook, result.output))
        return result

    def test_1_nothing_differs_on_a_converged_host(self):
        self.put("/usr/sbin/os-net-config", "#!/bin/sh\nexit 2\n", "755")
        self.host("mkdir -p /etc/nvme /etc/iscsi/nodes /var/lib/vhost_sockets; touch /etc/multipath.conf")
        for playbook in self.PLAYBOOKS:
            self.succeeds(playbook, **self.variables())
        self.assertEqual(self.host("tail -n 14 /var/log/edpm/runs.log | cut -d ' ' -f 2").split(), ["start", "end"] * 7)
        for container, paths in (("nova_compute", ["/etc/nvme", "/etc/multipath.conf", "/etc/iscsi/nodes"]), ("libvirt_libvirtd", ["/var/lib/vhost_sockets"])):
            mounts = self.host("podman inspect --format '{{range .Mounts}}{{.Destination}} {{end}}' edpm_" + container).split()
            self.assertLessEqual(set(paths), set(mounts), container)
        for playbook in self.PLAYBOOKS:
            with self.subTest(playbook):
                result = self.check(playbook)
                self.assertEqual(result.changed, [], result.output)

    @realhost.long
    def test_2_what_differs_is_named(self):
        for playbook, changes, names in (
                ("configure_network", {"edpm_hosts_entries": []}, ["Write the names of hosts"]),
                ("configure_network", {"edpm_network_config_template": self.path("nova.conf")}, ["Write the network configuration"]),
                ("validate_network", {"edpm_validate_names": ["localhost"]}, []),
                ("configure_os", {"edpm_ntp_servers": ["192.0.2.8"]}, ["Write the time servers"]),
                ("libvirt", {"edpm_libvirt_args": ["--privileged", "--network=host", "--label=a=b"]},
                 ["Run edpm_libvirt_virtlogd, edpm_libvirt_libvirtd"]),
                ("nova", {"edpm_nova_my_ip": "192.0.2.9"}, ["Copy the configuration"]),
                ("nova", {"edpm_nova_compute_image": "localhost/none:1"}, ["Report that the host has to pull localhost/none:1"]),
        ):
            with self.subTest("%s with %s" % (playbook, changes)):
                result = self.check(playbook, **changes)
                self.assertEqual(result.changed, names, result.output)

    def differences(self, playbook):
        """Returns what a check reports to the operators: tasks, and names of what each would change."""
        self.check(playbook)
        with open(self.path("recap"), encoding="utf-8") as file:
            entry = json.load(file)["hosts"]["host"]
        return {difference[1]: difference[2:] for difference in (entry[11] if len(entry) > 11 else [])}

    @realhost.long
    def test_2_manual_changes_are_named(self):
        unit = "/etc/systemd/system/edpm_nova_compute.service"
        for change, back, playbook, task, names in (
                ("cp -p /etc/hosts /root/hosts; sed 's/192.0.2.1/192.0.2.66/' /root/hosts > /etc/hosts", "cat /root/hosts > /etc/hosts", "configure_network", "Write the names of hosts", ["/etc/hosts"]),
                ("cp -p {0} /root/unit; echo '# mine' >> {0}".format(unit), "cp -p /root/unit {0}; systemctl daemon-reload".format(unit), "nova", "Run edpm_nova_compute", ["edpm_nova_compute.service"]),
                ("nft delete table inet edpm", "systemctl restart edpm-nftables", "configure_os", "Load the firewall", []),
                ("systemctl stop edpm_nova_compute", "systemctl start edpm_nova_compute", "nova", "Run edpm_nova_compute", ["edpm_nova_compute.service"]),
        ):
            with self.subTest(change):
                self.host(change)
                try:
                    found = self.differences(playbook)
                finally:
                    self.host(back)
                self.assertIn(task, found)
                self.assertEqual(found[task], names)
        self.assertEqual(self.differences("nova"), {})

    @realhost.long
    def test_2_a_package_that_was_removed_is_found_and_installed(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mirror.sh"), encoding="utf-8") as file:
            self.put("/srv/mirror.sh", file.read(), "755")
        self.host("/srv/mirror.sh iputils-ping")
        self.host("mv /etc/apt/sources.list.d/mirror.list /srv; rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin")  # without a mirror it cannot be installed, which the check says, too
        message = self.refused("install_os", "--check", **self.variables())[1]
        self.assertEqual(message, "Install the packages that are missing: No package matching 'iputils-ping' is available")
        self.host("mv /srv/mirror.list /etc/apt/sources.list.d; apt-get update")
        self.assertEqual(list(self.differences("install_os")), ["Install the packages that are missing"])
        self.succeeds("install_os", **self.variables())
        self.host("ping -V")
        self.assertEqual(self.differences("install_os"), {})

    @realhost.long
    def test_2_the_difference_of_a_unit_is_shown(self):
        result = self.check("libvirt", edpm_libvirt_args=["--privileged", "--network=host", "--label=a=b"])
        self.assertEqual(result.output.count('+  "--label=a=b" \\'), 2, result.output)
        self.assertIn("/etc/systemd/system/edpm_libvirt_virtlogd.service", result.output)

    @realhost.long
    def test_3_a_password_is_not_shown(self):
        result = self.check("libvirt", edpm_libvirt_qemu_settings={"vnc_password": "S3cretPass"})
        self.assertEqual(result.changed, ["Configure the daemons"])
        self.assertNotIn("S3cretPass", result.output)

    @realhost.long
    def test_4_cleanup(self):
        self.assertIn("Remove the units", self.check("nova_cleanup").changed)
        self.succeeds("nova_cleanup", **self.variables())
        self.assertEqual(self.check("nova_cleanup").changed, [])


if __name__ == "__main__":
    unittest.main()
