"""The module that configures Open vSwitch, with a database that is files of the test."""

import json
import platform
import unittest

import modules
import runs


@runs.needs_ansible
class OpenVSwitchTest(modules.ModuleTest):
    MODULE = "openvswitch"

    def setUp(self):
        super().setUp()
        self.database({"system-id": "s", "ovn-remote": "tcp:192.0.2.1:6642"}, {"br-int": "netdev", "br-ex": ""}, {"tap0": {"iface-id": "i"}, "patch0": {"ovn-localnet-port": "p"}})
        self.command("ovs-vsctl", 'case "$*" in *"list Open_vSwitch") cat %(d)s/ids ;; *"list Bridge") cat %(d)s/bridges ;; *"list Port") cat %(d)s/ports ;;'
                     ' *"list Manager") cat %(d)s/managers ;; esac'
                     % {"d": self.directory})

    def database(self, ids, bridges, ports):
        """Writes the answers of ovs-vsctl, in OVSDB's JSON."""
        def table(name, headings, data):
            self.write(name, json.dumps({"headings": headings, "data": data}))
        table("ids", ["external_ids"], [[["map", sorted(ids.items())]]])
        table("bridges", ["name", "datapath_type"], [list(pair) for pair in sorted(bridges.items())])
        table("managers", ["target"], [["ptcp:6640:127.0.0.1"]])
        table("ports", ["name", "external_ids"], [[name, ["map", sorted(each.items())]] for name, each in sorted(ports.items())])

    def transactions(self):
        return [call.partition(" ")[2].partition(" ")[2] for call in self.calls("ovs-vsctl") if "--format=json" not in call]

    def test_what_differs_is_one_transaction(self):
        options = dict(external_ids={"ovn-remote": "tcp:192.0.2.2:6642", "system-id": "s", "ovn-encap-ip": "192.0.2.7"}, bridges=["br-ex", "br-new"])
        changes = ["external id ovn-encap-ip", "external id ovn-remote", "bridge br-new"]
        self.assertEqual((self.done(check=True, **options)["changes"], self.transactions()), (changes, []))
        answer = self.done(**options)
        self.assertEqual((answer["changed"], answer["changes"], answer["external_ids"]["system-id"]), (True, changes, "s"))
        self.assertEqual(self.transactions(), [
            'set Open_vSwitch . external_ids:ovn-encap-ip="192.0.2.7" -- set Open_vSwitch . external_ids:ovn-remote="tcp:192.0.2.2:6642"'
            " -- add-br br-new -- set Bridge br-new datapath_type=system"])

    def test_what_is_the_same_is_no_change(self):
        answer = self.done(external_ids={"ovn-remote": "tcp:192.0.2.1:6642", "never": "", "none": None}, bridges=["br-ex"], absent_bridges=["br-none"])
        self.assertEqual((answer["changed"], self.transactions()), (False, []))

    def test_the_datapath_of_a_bridge_changes(self):
        self.assertEqual(self.done(bridges=["br-int", "br-ex"], datapath_type="netdev")["changes"], ["datapath of br-ex"])
        self.assertEqual(self.transactions(), ["set Bridge br-ex datapath_type=netdev"])

    def test_the_host_has_its_own_name_unless_one_is_given(self):
        for given, name in (("a.example.com", "a.example.com"), ("", platform.node())):
            self.assertEqual(self.done(hostname=given)["changes"], ["external id hostname"])
            self.assertEqual(self.transactions(), ['set Open_vSwitch . external_ids:hostname="%s"' % name])

    def test_managers_are_added(self):
        self.assertEqual(self.done(managers=["ptcp:6640:127.0.0.1", "ssl:192.0.2.9:6640"])["changes"], ["manager ssl:192.0.2.9:6640"])
        self.assertEqual(self.transactions(), [
            '--id=@manager1 create Manager target="ssl:192.0.2.9:6640" -- add Open_vSwitch . manager_options @manager1'])

    def test_what_is_to_be_removed(self):
        answer = self.done(external_ids={"ovn-remote": ""}, absent_bridges=["br-int"], absent_ports_of=["ovn-localnet-port"])
        self.assertEqual(answer["changes"], ["no external id ovn-remote", "no port patch0", "no bridge br-int"])
        self.assertEqual(self.transactions(), ["remove Open_vSwitch . external_ids ovn-remote -- --if-exists del-port patch0 -- del-br br-int"])

    def test_a_host_on_which_it_does_not_run(self):
        self.command("ovs-vsctl", "echo 'ovs-vsctl: unix:db.sock: database connection failed (No such file or directory)' >&2; exit 1")
        self.assertIn("Open vSwitch does not answer on this host: ovs-vsctl: unix:db.sock: database connection failed", self.failure(bridges=["br-ex"]))
        self.assertEqual(self.done(check=True, external_ids={"a": "b", "c": ""}, bridges=["br-ex"], managers=["ptcp:1"])["changes"],
                         ["external id a", "bridge br-ex", "manager ptcp:1"])


if __name__ == "__main__":
    unittest.main()
