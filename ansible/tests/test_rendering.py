"""What roles write and decide, without a host."""

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


if __name__ == "__main__":
    unittest.main()
