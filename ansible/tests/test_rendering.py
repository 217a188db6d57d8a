"""What roles write and decide, without a host."""

import json
import os
import sys
import unittest

import runs

sys.path.insert(0, os.path.join(runs.COLLECTION, "plugins", "filter"))
import next_hops  # noqa: E402


class NextHopsTest(unittest.TestCase):
    """Routes as ip -json route show default prints them (iproute2 6.1)."""

    CASES = {
        "none": ([], []),
        "one gateway": ([{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []}], [("eth0", "192.0.2.1")]),
        "the first of two": ([{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "metric": 100}, {"dst": "default", "gateway": "192.0.2.2", "dev": "eth1", "metric": 200}],
                             [("eth0", "192.0.2.1")]),
        "several next hops": ([{"dst": "default", "flags": [], "nexthops": [{"gateway": "192.0.2.1", "dev": "eth0", "weight": 1, "flags": []},
                                                                            {"gateway": "198.51.100.1", "dev": "eth1", "weight": 1, "flags": []}]}],
                              [("eth0", "192.0.2.1"), ("eth1", "198.51.100.1")]),
        "a link-local gateway": ([{"dst": "default", "gateway": "fe80::1", "dev": "bond0", "protocol": "ra", "flags": []}], [("bond0", "fe80::1%bond0")]),
        "a global IPv6 gateway": ([{"dst": "default", "gateway": "2001:db8::1", "dev": "eth0"}], [("eth0", "2001:db8::1")]),
        "an IPv6 gateway of an IPv4 route": ([{"dst": "default", "via": {"family": "inet6", "host": "fe80::2"}, "dev": "eth0"}], [("eth0", "fe80::2%eth0")]),
        "no gateway": ([{"dst": "default", "dev": "tun0", "scope": "link"}], [("tun0", "")]),
        "unreachable": ([{"type": "unreachable", "dst": "default", "dev": "lo", "metric": 4294967295}], []),
        "unreachable before another": ([{"type": "blackhole", "dst": "default"}, {"dst": "default", "gateway": "2001:db8::1", "dev": "eth0"}], [("eth0", "2001:db8::1")]),
    }

    def test_next_hops(self):
        for name, (routes, want) in self.CASES.items():
            with self.subTest(name):
                self.assertEqual([(hop["dev"], hop["gateway"]) for hop in next_hops.next_hops(routes)], want)


class Rendering(runs.Run):
    """A run that renders a template of a role."""

    def __init__(self, role, template, **variables):
        self.text = ""
        super().__init__([{"hosts": "all", "gather_facts": False, "vars": variables, "tasks": [{"ansible.builtin.template": {
            "src": os.path.join(runs.COLLECTION, "roles", role, "templates", template), "dest": "{{ inventory_dir }}/../rendered"}}]}], hosts=("h1",))

    def after(self):
        if self.code == 0:
            with open(self.path("rendered"), encoding="utf-8") as file:
                self.text = file.read()


@runs.needs_ansible
class TemplatesTest(unittest.TestCase):
    def rendered(self, role, template, **variables):
        run = Rendering(role, template, **variables)
        self.assertEqual(run.code, 0, run.output)
        return run.text

    def test_settings_of_libvirt(self):
        text = self.rendered("edpm_libvirt", "libvirt.conf.j2", edpm_libvirt_settings={
            "a_list": ["/dev/null", "/dev/kvm"], "b_true": True, "c_false": False, "d_number": 7, "e_text": "0770", "f_quote": 'a "b"',
            "g_numbers": [1, 2], "h_none": [], "i_backslash": "a\\b"})
        self.assertEqual(text.splitlines()[1:], [
            'a_list = ["/dev/null", "/dev/kvm"]', "b_true = 1", "c_false = 0", "d_number = 7", 'e_text = "0770"', "f_quote = 'a \"b\"'",
            "g_numbers = [1, 2]", "h_none = []", 'i_backslash = "a\\b"'])


class Consoles(runs.Run):
    """A run that writes qemu.conf, and the certificates of consoles, by the variables of the roles."""

    def __init__(self, **variables):
        self.conf, self.written = "", {}
        files = [os.path.join(runs.COLLECTION, "roles", role, name, "main.yml")
                 for role in ("edpm_migration", "edpm_libvirt") for name in ("defaults", "vars")]
        names = ("console-ca.crt", "console.crt", "console.key")
        tasks = [
            {"ansible.builtin.template": {"src": os.path.join(runs.COLLECTION, "roles", "edpm_libvirt", "templates", "libvirt.conf.j2"),
                                          "dest": "{{ inventory_dir }}/../rendered"},
             "vars": {"edpm_libvirt_settings": "{{ edpm_libvirt_qemu_conf }}"}},
            {"edpm.operators.config_files": {"directory": "{{ inventory_dir }}/../vnc", "copies": "{{ edpm_migration_of_consoles }}", "mode": "0640",
                                             "directories": [{"path": "{{ inventory_dir }}/../vnc"}]}},
        ]
        config_files = {name: "{{ inventory_dir }}/../given/" + name for name in names}
        super().__init__([{"hosts": "all", "gather_facts": False, "vars_files": files, "vars": {"edpm_config_files": config_files}, "tasks": tasks}],
                         hosts=("h1",), arguments=("--extra-vars", json.dumps(variables)), files={"given/" + name: name for name in names})

    def after(self):
        if self.code == 0:
            with open(self.path("rendered"), encoding="utf-8") as file:
                self.conf = file.read()
            for name in os.listdir(self.path("vnc")):
                with open(self.path("vnc", name), encoding="utf-8") as file:
                    self.written[name] = file.read()


@runs.needs_ansible
class ConsolesTest(unittest.TestCase):
    OURS = ["vnc_tls = 1", 'vnc_tls_x509_cert_dir = "/var/lib/libvirt/pki/vnc"', "vnc_tls_x509_verify = 1"]

    def consoles(self, **variables):
        run = Consoles(**variables)
        self.assertEqual(run.code, 0, run.output)
        return [line for line in run.conf.splitlines() if line.startswith("vnc_")], run

    def test_consoles_over_tls(self):
        lines, run = self.consoles(edpm_libvirt_console_tls=True, edpm_migration_address="192.0.2.1")
        self.assertEqual(lines, self.OURS)
        self.assertIn('default_tls_x509_cert_dir = "/var/lib/libvirt/pki/qemu"', run.conf.splitlines())
        self.assertEqual(run.written, {"ca-cert.pem": "console-ca.crt", "server-cert.pem": "console.crt", "server-key.pem": "console.key"})

    def test_a_host_without_certificates_for_them(self):
        self.assertEqual(self.consoles(edpm_migration_address="192.0.2.1")[0], [])

    def test_settings_of_people_win(self):
        lines, _ = self.consoles(edpm_libvirt_console_tls=True, edpm_libvirt_qemu_settings={"vnc_tls_x509_cert_dir": "/etc/pki/mine"})
        self.assertEqual(lines, [self.OURS[0], 'vnc_tls_x509_cert_dir = "/etc/pki/mine"', self.OURS[2]])


if __name__ == "__main__":
    unittest.main()
