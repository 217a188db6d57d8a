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
    ("configure_os", "nft", "--file /etc/nftables/edpm.nft"),
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


if __name__ == "__main__":
    unittest.main()
