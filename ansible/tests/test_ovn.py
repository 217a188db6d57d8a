"""The roles of Open vSwitch and OVN on a real host, see realhost.py, with a south bound database on the host itself:

    EDPM_HOSTS_TEST=1 E2E_LONG=1 python3 ansible/tests/test_ovn.py -v

Networks, neutron and traffic between hosts are in test/e2e/ovn.
"""

import json
import time
import unittest

import realhost

IMAGE = "localhost/edpm-ovn:latest"
SCHEMA = "/usr/share/ovn/ovn-sb.ovsschema"
OVS = dict(edpm_ovs_datapath_type="netdev", edpm_ovs_bridge_mappings={"datacentre": "br-ex", "other": "br-other"})


@realhost.long
class OVNTest(realhost.HostTest):
    """A host becomes a chassis, and is none any more. The tests build on each other."""

    IMAGES = ("ovn",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.southbound = "tcp:%s:6642" % cls.address
        cls.host("test -e /run/sb.db || {{ cat > {0} && ovsdb-tool create /run/sb.db {0} &&"
                 "systemd-run --unit=sb ovsdb-server --unixctl=none --remote=ptcp:6642 --remote=punix:/run/sb.sock /run/sb.db 2>&1 &&"
                 "until ovsdb-client --timeout=5 list-dbs tcp:127.0.0.1:6642; do sleep 0.2; done; }}".format("/run/sb.ovsschema"), text=cls.schema())
        cls.transact([{"op": "insert", "table": "SB_Global", "row": {}}] if not cls.rows("SB_Global", "nb_cfg") else [])

    @classmethod
    def schema(cls):
        """Returns the schema of the south bound database, which comes with that and not with OVN's agents."""
        realhost.script("load.sh", "edpm-controller")
        return realhost.sh("podman", "--runtime", "runc", "run", "--rm", "--network", "none", *realhost.LIMITS, "localhost/edpm-controller:latest", "cat", SCHEMA)

    @classmethod
    def transact(cls, operations):
        return json.loads(cls.host("ovsdb-client --timeout=10 transact tcp:127.0.0.1:6642 \"$(cat)\"", text=json.dumps(["OVN_Southbound"] + operations)))

    @classmethod
    def rows(cls, table, column):
        """Returns what rows of the south bound database have in a column."""
        return sorted(row[column] for row in cls.transact([{"op": "select", "table": table, "where": [], "columns": [column]}])[0]["rows"])

    def ids(self):
        """Returns the external ids of Open vSwitch."""
        answer = json.loads(self.host("ovs-vsctl --format=json --columns=external_ids list Open_vSwitch"))
        return dict(answer["data"][0][0][1])

    def controller(self, **more):
        return dict({"edpm_ovn_controller_image": IMAGE, "edpm_ovn_southbound": self.southbound}, **more)

    def metadata(self, override="", **more):
        files = {"01-ovn-metadata.conf": "[DEFAULT]\nnova_metadata_host = 192.0.2.1\nmetadata_proxy_shared_secret = S3cretPass\nmetadata_workers = 1\n"
                                         "[ovn]\novn_sb_connection = %s\n" % self.southbound, "02-ovn-metadata-override.conf": override}
        for name, text in files.items():
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        return dict({"edpm_ovn_metadata_image": IMAGE, "edpm_config_files": {name: self.path(name) for name in files}}, **more)

    def started(self, name):
        self.assertEqual(self.host("systemctl is-active edpm_" + name), "active")
        return self.host("podman inspect --format '{{.State.StartedAt}}' edpm_" + name)

    def unchanged(self, playbook, **variables):
        for arguments in ((), ("--check",)):
            result = self.succeeds(playbook, *arguments, **variables)
            self.assertEqual(result.changed, [], result.output)

    def test_1_a_host_without_open_vswitch(self):
        for playbook, variables in (("ovn_controller", self.controller()), ("ovn_metadata", self.metadata())):
            message = self.refused(playbook, **variables)[1]
            self.assertIn("Open vSwitch does not run on this host. Add configure-ovs", message)
        for playbook in ("ovn_metadata_cleanup", "ovn_controller_cleanup"):
            self.assertEqual(self.succeeds(playbook).changed, [])

    def test_2_open_vswitch(self):
        # As Red Hat's unit is, which removes the directory of the sockets at each restart.
        self.host("mkdir -p {0} && printf '[Service]\\nRuntimeDirectoryPreserve=no\\n' > {0}/10-redhat.conf && systemctl daemon-reload".format(
            "/run/systemd/system/ovsdb-server.service.d"))
        checked = self.succeeds("configure_ovs", "--check", **OVS)
        self.assertEqual((checked.changed, self.host("systemctl is-active openvswitch-switch", check=False)),
                         (["Keep the directory of Open vSwitch's sockets when it is restarted", "Start Open vSwitch", "Configure Open vSwitch"], "inactive"))
        self.assertEqual(self.succeeds("configure_ovs", **OVS).changed, checked.changed)
        want = {"hostname": realhost.NAME, "ovn-encap-type": "geneve", "ovn-encap-ip": self.address, "ovn-bridge": "br-int",
                "ovn-bridge-datapath-type": "netdev", "ovn-bridge-mappings": "datacentre:br-ex,other:br-other"}
        self.assertEqual(dict(self.ids(), **want), self.ids())
        self.assertEqual(self.host("systemctl is-enabled openvswitch-switch"), "enabled")
        self.assertEqual(self.host("ovs-vsctl get bridge br-ex datapath_type").strip('"'), "netdev")
        self.assertEqual(self.host("ovs-vsctl get-manager"), "ptcp:6640:127.0.0.1")
        self.unchanged("configure_ovs", **OVS)
        directory = self.host("stat --format=%i /run/openvswitch")
        self.host("systemctl restart openvswitch-switch")
        self.assertEqual(self.host("stat --format=%i /run/openvswitch"), directory, "containers have mounted it")
        self.succeeds("configure_ovs", **dict(OVS, edpm_ovs_bridge_mappings={}, tenant_ip="172.19.0.10"))
        self.assertNotIn("ovn-bridge-mappings", self.ids())
        self.assertEqual(self.ids()["ovn-encap-ip"], "172.19.0.10")
        self.assertIn("br-ex", self.host("ovs-vsctl list-br").split(), "it may be somebody else's")

    def test_3_what_is_not_valid(self):
        self.assertIn("edpm_ovs_encap_ip must be an IP address", self.refused("configure_ovs", edpm_ovs_encap_ip="host-1")[1])
        self.assertIn("edpm_ovs_bridge_mappings must have names", self.refused("configure_ovs", edpm_ovs_bridge_mappings={"datacentre": "br ex"})[1])
        if not self.host("ls -d /sys/module/openvswitch", check=False).startswith("/"):
            self.assertIn("The kernel of this host has no datapath of Open vSwitch", self.refused("configure_ovs", edpm_ovs_datapath_type="system")[1])

    def test_4_a_chassis(self):
        self.add_chassis("gone", "172.19.0.10")
        self.add_chassis("other", "172.19.0.11")
        self.assertIn("the chassis other has the host name %s as well, and its ovn-controller answers" % realhost.NAME, self.refused("ovn_controller", **self.controller())[1])
        self.assertIn("other", self.rows("Chassis", "name"))
        self.transact([{"op": "update", "table": "SB_Global", "where": [], "row": {"nb_cfg": 1}}])
        result = self.succeeds("ovn_controller", **self.controller())
        self.assertIn("Wait until the south bound database has the host", result.changed)
        system = self.ids()["system-id"]
        self.assertEqual((self.rows("Chassis", "name"), self.rows("Chassis_Private", "name")), ([system], [system]))
        self.unchanged("ovn_controller", **self.controller())
        self.assertEqual(self.host("systemctl start edpm-health-ovn_controller; systemctl is-failed edpm-health-ovn_controller", check=False), "inactive")

    def add_chassis(self, name, address):
        """Adds what a machine of the host's name has in the south bound database."""
        self.transact([{"op": "insert", "table": "Encap", "uuid-name": "e", "row": {"type": "geneve", "ip": address, "chassis_name": name}},
                       {"op": "insert", "table": "Chassis", "row": {"name": name, "hostname": realhost.NAME, "encaps": ["named-uuid", "e"]}}])

    def test_5_a_restart_keeps_the_chassis(self):
        before = self.transact([{"op": "select", "table": "Chassis", "where": [], "columns": ["_uuid"]}])
        self.host("systemctl stop edpm_ovn_controller")
        self.assertEqual(self.host("systemctl is-failed edpm_ovn_controller", check=False), "inactive")
        self.assertEqual(self.transact([{"op": "select", "table": "Chassis", "where": [], "columns": ["_uuid"]}]), before)
        self.assertEqual(self.succeeds("ovn_controller", **self.controller()).changed, ["Run edpm_ovn_controller"])
        self.assertEqual(self.ids()["ovn-ofctrl-wait-before-clear"], "8000")

    def test_6_a_database_that_does_not_answer(self):
        other = self.controller(edpm_ovn_southbound="tcp:%s:6699" % self.address, edpm_ovn_register_seconds=3)
        message = self.refused("ovn_controller", **other)[1]
        self.assertIn("6699", message)
        self.assertEqual(self.ids()["ovn-remote"], self.southbound)
        self.assertEqual(self.host("podman exec edpm_ovn_controller ovn-appctl -t ovn-controller connection-status"), "connected")
        self.succeeds("ovn_controller", **self.controller())

    def test_7_the_metadata_agent(self):
        self.succeeds("ovn_metadata", **self.metadata())
        before = self.started("ovn_metadata_agent")
        self.unchanged("ovn_metadata", **self.metadata())
        _, message = self.refused("ovn_metadata", **self.metadata("[ovn]\novn_sb_connection = tcp:192.0.2.1:6642\n"))
        self.assertIn("customServiceConfig line 2: ovn_sb_connection in [ovn] must be that of 01-ovn-metadata*.conf", message)
        result, message = self.refused("ovn_metadata", **self.metadata("[DEFAULT]\ndebug = perhaps\n"))
        self.assertIn("customServiceConfig line 2: debug in [DEFAULT] is not valid", message)
        self.assertNotIn("S3cretPass", result.output)
        self.assertEqual(self.started("ovn_metadata_agent"), before)
        result = self.succeeds("ovn_metadata", **self.metadata("[DEFAULT]\ndebug = true\nmetadata_worker = 2\n"))
        self.assertIn("metadata_worker in [DEFAULT] is unknown to the image", " ".join(result.output.split()))
        self.assertNotEqual(self.started("ovn_metadata_agent"), before)
        self.assertEqual(self.host("findmnt --noheadings --output PROPAGATION --mountpoint /run/netns"), "shared")
        self.assertTrue(any(self.agent() or time.sleep(1) for _ in range(60)))
        self.assertEqual(self.host("systemctl start edpm-health-ovn_metadata_agent; systemctl is-failed edpm-health-ovn_metadata_agent", check=False), "inactive")

    def agent(self):
        """Returns the id of the metadata agent in the south bound database, nothing if it has none."""
        found = self.rows("Chassis_Private", "external_ids")
        return dict(found[0][1]).get("neutron:ovn-metadata-id") if found else None

    def test_8_guests_are_in_the_way_of_clean_up(self):
        self.host("ip link add guest0 type dummy 2>/dev/null || ip link add guest0 type veth peer name guest1;"
                  "ovs-vsctl add-port br-int guest0 -- set Interface guest0 external-ids:iface-id=p external-ids:attached-mac=02:00:00:00:00:01")
        for playbook in ("ovn_metadata_cleanup", "ovn_controller_cleanup"):
            self.assertIn("1 interfaces of guests are in Open vSwitch of this host: guest0.", self.refused(playbook)[1])
        self.started("ovn_metadata_agent")
        self.started("ovn_controller")
        self.succeeds("ovn_metadata_cleanup", edpm_ovn_metadata_cleanup_force=True)
        self.host("ovs-vsctl del-port guest0; ip link delete guest0")
        self.succeeds("ovn_metadata", **self.metadata())

    def test_9_nothing_is_left(self):
        self.assertTrue(any(self.agent() or time.sleep(1) for _ in range(60)))
        # As the agent has for a network.
        self.host("ip netns add ovnmeta-01234567-89ab-4cde-8f01-23456789abcd; ip link add tap01234567-80 type veth peer name tap01234567-81;"
                  "ip link set tap01234567-81 netns ovnmeta-01234567-89ab-4cde-8f01-23456789abcd; ovs-vsctl add-port br-int tap01234567-80;"
                  "ovs-vsctl add-port br-ex patch-1 -- set Interface patch-1 type=patch options:peer=patch-2 -- set Port patch-1 external_ids:ovn-localnet-port=p")
        checked = self.succeeds("ovn_metadata_cleanup", "--check")
        self.assertIn("Remove the units", checked.changed)
        self.started("ovn_metadata_agent")
        self.killed_between("ovn_metadata_cleanup")
        self.succeeds("ovn_metadata_cleanup")
        self.assertIsNone(self.agent())
        self.assertEqual(self.host("ip netns; ls -d /sys/class/net/tap*; ovs-vsctl list-ports br-int; ls /var/lib/openstack /var/lib/edpm/services", check=False).count("ovn"), 1,
                         "only the record of ovn-controller")
        self.unchanged("ovn_metadata_cleanup")

        self.killed_between("ovn_controller_cleanup")
        self.succeeds("ovn_controller_cleanup")
        self.assertEqual((self.rows("Chassis", "name"), self.rows("Chassis_Private", "name"), self.rows("Encap", "ip")), ([], [], []))
        self.assertEqual(self.host("ovs-vsctl list-br").split(), ["br-ex", "br-other", "br-tenant"])
        self.assertEqual(self.host("ovs-vsctl list-ports br-ex"), "")
        self.assertEqual([name for name in self.ids() if name in ("ovn-remote", "ovn-ofctrl-wait-before-clear")], [])
        self.assertEqual(self.ids()["ovn-encap-ip"], "172.19.0.10", "that of phase 0 stays")
        self.assertEqual(self.host("ls /etc/systemd/system | grep -E 'edpm_|edpm-(health|netns)'; ls -d /run/ovn/* /etc/pki/ovn* 2>/dev/null; podman ps -aq; ls /var/lib/edpm/services", check=False), "")
        self.unchanged("ovn_controller_cleanup")

        self.succeeds("ovn_controller", **self.controller())
        self.assertEqual(self.rows("Chassis", "name"), [self.ids()["system-id"]])
        self.succeeds("ovn_controller_cleanup")

    def killed_between(self, playbook):
        """Kills a run when it has stopped the service and is about to change the south bound database."""
        self.shim("podman", "'run '*", "echo $$ > /run/reached.pid; touch /run/reached; sleep 600")
        self.killed(playbook, "/run/reached", edpm_podman_binary="/usr/local/sbin/podman")
        self.unshim("podman")


if __name__ == "__main__":
    unittest.main()
