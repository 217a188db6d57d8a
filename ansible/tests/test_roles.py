"""Tests of roles on a real host, see realhost.py:

    EDPM_HOSTS_TEST=1 python3 ansible/tests/test_roles.py -v
"""

import unittest

import realhost

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
# Whoever waits says who it is, so that it ends with its run.
WAIT = "echo $$ > /run/reached.pid; touch /run/reached; sleep 600"


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


class GuestsTest(realhost.HostTest):
    """Guests outlive what is done to the host."""

    IMAGES = True
    VARIABLES = dict(edpm_libvirt_image="localhost/edpm-nova-libvirt:latest", edpm_libvirt_daemons=["virtlogd"])

    def guest(self):
        """Starts what looks like a guest, besides what does not."""
        self.host("mkdir -p /run/libvirt/qemu; cd /run/libvirt/qemu; echo 1 > driver.pid; echo 999999 > dead.pid;"
                  "systemd-run --unit=guest sleep 600 2>&1; systemctl show --property MainPID --value guest > instance-1.pid")

    def tearDown(self):
        self.host("systemctl stop guest", check=False)

    def test_cleanup_refuses_while_guests_run(self):
        self.guest()
        self.put("/etc/systemd/system/edpm_nova_compute.service", "[Service]\nExecStart=/bin/sleep infinity\n")
        self.host("systemctl daemon-reload; systemctl start edpm_nova_compute")
        result = self.run_playbook("nova_cleanup")
        self.assertNotEqual(result.code, 0, result.output)
        self.assertIn("1 guests run on this host: instance-1.", result.output)
        self.assertIn("edpm_nova_cleanup_force", result.output)
        self.assertEqual(self.host("systemctl is-active edpm_nova_compute guest").split(), ["active", "active"])
        self.succeeds("nova_cleanup", edpm_nova_cleanup_force=True)
        self.assertEqual(self.host("ls /etc/systemd/system | grep edpm_", check=False), "")

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
        self.assertIn("keeps running as it was started", result.output)
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
        self.assertEqual(self.host("podman ps --format '{{.Names}}'; ls /var/lib/openstack/libvirt").split(), ["edpm_libvirt_virtlogd", "virtlogd"])
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

    IMAGES = True
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
        self.host("mkdir -p /etc/nvme /var/lib/vhost_sockets; touch /etc/multipath.conf")
        for playbook in self.PLAYBOOKS:
            self.succeeds(playbook, **self.variables())
        self.assertEqual(self.host("tail -n 14 /var/log/edpm/runs.log | cut -d ' ' -f 2").split(), ["start", "end"] * 7)
        for container, paths in (("nova_compute", ["/etc/nvme", "/etc/multipath.conf"]), ("libvirt_libvirtd", ["/var/lib/vhost_sockets"])):
            mounts = self.host("podman inspect --format '{{range .Mounts}}{{.Destination}} {{end}}' edpm_" + container).split()
            self.assertLessEqual(set(paths), set(mounts), container)
        for playbook in self.PLAYBOOKS:
            with self.subTest(playbook):
                result = self.check(playbook)
                self.assertEqual(result.changed, [], result.output)

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

    def test_2_the_difference_of_a_unit_is_shown(self):
        result = self.check("libvirt", edpm_libvirt_args=["--privileged", "--network=host", "--label=a=b"])
        self.assertEqual(result.output.count('+  "--label=a=b" \\'), 2, result.output)
        self.assertIn("/etc/systemd/system/edpm_libvirt_virtlogd.service", result.output)

    def test_3_a_password_is_not_shown(self):
        result = self.check("libvirt", edpm_libvirt_qemu_settings={"vnc_password": "S3cretPass"})
        self.assertEqual(result.changed, ["Configure the daemons"])
        self.assertNotIn("S3cretPass", result.output)

    def test_4_cleanup(self):
        self.assertIn("Remove the units", self.check("nova_cleanup").changed)
        self.succeeds("nova_cleanup", **self.variables())
        self.assertEqual(self.check("nova_cleanup").changed, [])


if __name__ == "__main__":
    unittest.main()
