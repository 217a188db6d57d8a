"""Hosts on which another tool runs nova-compute, libvirt or OVN, see realhost.py:

    EDPM_HOSTS_TEST=1 python3 ansible/tests/test_other_tools.py -v
"""

import os
import shutil
import subprocess
import tempfile
import unittest

import realhost

# What the packages of Debian have: its script is one of Python, started by a unit.
PROGRAM = "#!/usr/bin/python3\nimport signal\nsignal.pause()\n"
UNIT = "[Unit]\nDescription=%s\n[Service]\nExecStart=%s\n[Install]\nWantedBy=multi-user.target\n"
# Units of containers, of which tools write their own.
CONTAINER = ("[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/podman start {0}\nExecStop=/usr/bin/podman stop --time 2 {0}\n"
             "[Install]\nWantedBy=multi-user.target\n")
IMAGE = "localhost/edpm-nova-compute:latest"
LIBVIRT = {"edpm_libvirt_image": "localhost/edpm-nova-libvirt:latest", "edpm_libvirt_daemons": ["virtlogd", "libvirtd"], "edpm_libvirt_check": False}
# A commit of this project whose hosts this version continues.
EARLIER = "8aabe89b8e6c14f2778c22d2c6256b09908e2938"


class OtherToolsTest(realhost.HostTest):
    """What another tool runs on a host is found before anything is changed."""

    IMAGES = ("nova",)

    def setUp(self):
        # The guests and marks of the test before.
        self.host("rm -rf /run/libvirt /etc/libvirt /etc/sysctl.d/90-edpm*.conf")

    def nova(self):
        with open(self.path("01-nova.conf"), "w", encoding="utf-8") as file:
            file.write("[DEFAULT]\ntransport_url = rabbit://u:p@127.0.0.1:5672/\ncompute_driver = libvirt.LibvirtDriver\nstate_path = /var/lib/nova\n"
                       "[oslo_concurrency]\nlock_path = /var/lib/nova/tmp\n[libvirt]\nvirt_type = qemu\n")
        return {"edpm_nova_compute_image": IMAGE, "edpm_config_files": {"01-nova.conf": self.path("01-nova.conf")}, "edpm_health_seconds": 0,
                "edpm_nova_check": False, "edpm_nova_speak_seconds": 1}

    def service(self, name, text):
        """Starts a unit until the end of the test."""
        self.put(name, text)
        unit = os.path.basename(name)
        self.addCleanup(self.host, "systemctl disable --now {0}; systemctl reset-failed {0}; rm -f {1}; systemctl daemon-reload".format(unit, name), check=False)
        self.host("systemctl daemon-reload; systemctl enable --now %s 2>&1" % unit)
        return unit

    def packaged(self, program="nova-compute", description="OpenStack Compute"):
        self.put("/usr/bin/" + program, PROGRAM, "755")
        return self.service("/usr/lib/systemd/system/%s.service" % program, UNIT % (description, "/usr/bin/" + program))

    def container(self, name, unit, program, *labels):
        """Starts a container and its unit as another tool does."""
        options = " ".join("--label " + label for label in labels)
        self.put("/srv/" + program, PROGRAM, "755")
        self.host("podman run --detach --name {0} --network host {1} --volume /srv/{2}:/opt/bin/{2}:ro {3} /usr/bin/python3 /opt/bin/{2}".format(
            name, options, program, IMAGE))
        self.addCleanup(self.host, "podman rm --force --time 0 " + name, check=False)
        return self.service("/etc/systemd/system/" + unit, CONTAINER.format(name))

    def state(self, *units):
        """Returns what differs if a service of the other tool was stopped, disabled or started again, or a file written."""
        return self.host(
            "systemctl show --property=Id,MainPID,ActiveState,ActiveEnterTimestampMonotonic,UnitFileState -- %s;"
            "podman ps --all --format '{{.Names}}' | sort | xargs -r podman inspect --format '{{.Name}} {{.State.StartedAt}} {{.State.Running}}';"
            "find /etc /usr/bin /usr/lib/systemd /var/lib/nova /var/lib/libvirt /var/lib/openstack /run/libvirt -type f 2>/dev/null | sort | xargs md5sum;"
            "uname --nodename; nft list ruleset" % " ".join(units), check=False)

    def untouched(self, playbook, expected, *units, **variables):
        """Expects that a host is refused for what is expected, and that nothing on it differs then."""
        before = self.state(*units)
        for arguments in ((), ("--check",)):
            result, message = self.refused(playbook, *arguments, **variables)
            self.assertEqual(message, "Look for other tools: %s. Disable it and rerun, or take it over" % expected)
            self.assertIn('"edpm_refused": true', result.output)
            self.assertEqual(result.changed, [])
            self.assertEqual(self.state(*units), before)
        return message

    def refused_everywhere(self, expected, *units):
        """Phase 0 of a new host and the steps of the compute change nothing."""
        self.untouched("configure_network", expected, *units, edpm_hostname="another-name")
        self.untouched("configure_os", expected, *units)
        self.untouched("libvirt", expected, *units, **LIBVIRT)
        self.untouched("nova", expected, *units, **self.nova())

    def cleaned_up(self, *units):
        """The node is deleted again: its clean-up has nothing to do."""
        before = self.state(*units)
        self.assertEqual(self.succeeds("nova_cleanup").changed, [])
        self.assertEqual(self.state(*units), before)

    def test_packages(self):
        unit = self.packaged()
        self.refused_everywhere("nova-compute of packages is on this host: unit nova-compute.service (active, enabled)", unit)
        self.cleaned_up(unit)
        # It would start at the next boot.
        self.host("systemctl stop nova-compute")
        self.untouched("libvirt", "nova-compute of packages is on this host: unit nova-compute.service (inactive, enabled)", unit, **LIBVIRT)

    @realhost.long
    def test_kolla_ansible(self):
        unit = self.container("nova_compute", "kolla-nova_compute-container.service", "nova-compute", "kolla_version=19.3.0", "maintainer=kolla")
        self.refused_everywhere("nova-compute of kolla-ansible is on this host: unit kolla-nova_compute-container.service (active, enabled) and 1 more", unit)
        self.cleaned_up(unit)

    @realhost.long
    def test_a_container_without_a_unit(self):
        libvirtd = self.container("nova_libvirt", "any.service", "libvirtd", "kolla_version=19.3.0")
        self.untouched("libvirt", "libvirt of another tool is on this host: libvirtd in container nova_libvirt", libvirtd, **LIBVIRT)

    def test_edpm_ansible(self):
        unit = self.container("nova_compute", "edpm_nova_compute.service", "nova-compute", "config_id=nova_compute", "managed_by=edpm_ansible")
        self.refused_everywhere("nova-compute of edpm-ansible is on this host: unit edpm_nova_compute.service (active, enabled) and 1 more", unit)
        self.cleaned_up(unit)

    def test_guests_of_a_packaged_libvirt(self):
        libvirtd = self.packaged("libvirtd", "Virtualization daemon")
        self.guest()
        self.put("/etc/libvirt/qemu/instance-2.xml", "<domain/>")
        expected = "libvirt of another tool is on this host: 1 running guests (instance-1) and 1 more"
        for playbook, variables in (("configure_network", {}), ("libvirt", LIBVIRT)):
            self.untouched(playbook, expected, libvirtd, "guest.service", **variables)
        self.cleaned_up(libvirtd, "guest.service")

    @realhost.long
    def test_ovn(self):
        self.host("systemctl start openvswitch-switch; ovs-vsctl set Open_vSwitch . external_ids:system-id=theirs external_ids:ovn-remote=tcp:192.0.2.1:6642")
        self.addCleanup(self.host, "systemctl stop openvswitch-switch; rm -f /etc/openvswitch/conf.db", check=False)
        unit = self.packaged("ovn-controller", "Open Virtual Network host control daemon")
        external = self.host("ovs-vsctl get Open_vSwitch . external_ids")
        expected = "OVN of packages is on this host: unit ovn-controller.service (active, enabled)"
        self.untouched("configure_ovs", expected, unit, edpm_ovs_encap_ip="192.0.2.10", edpm_ovs_datapath_type="netdev")
        self.untouched("ovn_controller", expected, unit, edpm_ovn_controller_image=IMAGE, edpm_ovn_southbound="tcp:192.0.2.2:6642")
        before = self.state(unit)
        for playbook in ("ovn_metadata_cleanup", "ovn_controller_cleanup"):
            self.assertEqual(self.succeeds(playbook).changed, [])
        self.assertEqual((self.host("ovs-vsctl get Open_vSwitch . external_ids"), self.state(unit)), (external, before))

    def test_y_a_host_of_packages_is_taken_over_with_its_guests(self):
        name = self.host("uname --nodename")
        instance = "/var/lib/nova/instances/6a5c7d1e-0f6c-4b1d-9d3a-1b2c3d4e5f60"
        self.host("useradd --system --uid 64060 nova; mkdir -p {0}; echo id > /var/lib/nova/compute_id; echo disk > {0}/disk; chown -R nova /var/lib/nova;"
                  "mkdir -p /etc/nova; printf '[DEFAULT]\\nhost = %s\\nstate_path = /var/lib/nova\\n' > /etc/nova/nova.conf".format(instance) % name)
        self.addCleanup(self.host, "userdel nova; rm -rf /etc/nova /var/lib/nova", check=False)
        compute, libvirtd = self.packaged(), self.packaged("libvirtd", "Virtualization daemon")
        self.guest()
        guest, asked = self.host("cat /run/libvirt/qemu/instance-1.pid"), {"edpm_take_over": "packages"}
        message = self.refused("configure_network", edpm_hostname="another-name", **asked)[1]
        self.assertEqual(message, "Look for other tools: The host is {0} in nova and would be another-name. Correct edpm_nova_host or edpm_hostname in ansibleVars".format(name))
        self.succeeds("configure_network", **asked)
        before = self.state(compute, libvirtd)
        # What the run would start is not there in check mode.
        self.assertIn("Look for other tools", self.run_playbook("libvirt", "--check", **LIBVIRT, **asked).changed)
        self.assertEqual(self.state(compute, libvirtd), before)
        self.succeeds("libvirt", **LIBVIRT, **asked)
        with open(self.path("recap"), encoding="utf-8") as file:
            self.assertIn("Taken over from packages, which start with /var/lib/edpm/undo-take-over.sh: nova-compute.service", file.read())
        self.succeeds("nova", **self.nova(), **asked)
        self.assertEqual(self.host("systemctl is-active nova-compute libvirtd edpm_nova_compute edpm_libvirt_libvirtd; systemctl is-enabled nova-compute libvirtd", check=False).split(),
                         ["inactive", "inactive", "active", "active", "disabled", "disabled"])
        self.assertEqual(self.host("cat /run/libvirt/qemu/instance-1.pid /var/lib/nova/compute_id {0}/disk; kill -0 {1}; find /var/lib/nova -user nova".format(instance, guest)).split(),
                         [guest, "id", "disk"])
        for playbook, variables in (("libvirt", LIBVIRT), ("nova", self.nova())):
            self.assertEqual(self.succeeds(playbook, **variables, **asked).changed, [])
        # And back.
        self.host("/var/lib/edpm/undo-take-over.sh 2>&1")
        self.assertEqual(self.host("systemctl is-active nova-compute edpm_nova_compute edpm_libvirt_libvirtd", check=False).split(), ["active", "inactive", "inactive"])
        self.host("systemctl stop guest", check=False)
        self.succeeds("nova_cleanup")

    def test_z_a_host_with_libvirt_of_packages_is_deployed_again_and_again(self):
        libvirtd = self.packaged("libvirtd", "Virtualization daemon")
        self.put("/etc/libvirt/qemu/networks/default.xml", "<network/>")
        self.succeeds("configure_network")
        self.succeeds("libvirt", **LIBVIRT)
        self.assertEqual(self.host("systemctl is-active " + libvirtd, check=False), "inactive")
        self.succeeds("nova", **self.nova())
        self.guest()
        self.put("/etc/libvirt/qemu/instance-1.xml", "<domain/>")
        for playbook, variables in (("configure_network", {}), ("libvirt", LIBVIRT), ("nova", self.nova())):
            self.assertEqual(self.succeeds(playbook, **variables).changed, [])
        # One of packages that is installed since: it would be a second one.
        unit = self.packaged()
        self.untouched("nova", "nova-compute of packages is on this host: unit nova-compute.service (active, enabled)", unit, **self.nova())
        self.host("systemctl stop guest")
        # Both are there: what is shared stays.
        self.host("touch /etc/libvirt/qemu/instance-3.xml")
        self.succeeds("nova_cleanup")
        self.assertEqual(self.host("systemctl is-active nova-compute; ls /etc/systemd/system | grep edpm_; ls /etc/libvirt/qemu", check=False).split(),
                         ["active", "instance-1.xml", "instance-3.xml", "networks"])


@realhost.long
class EarlierVersionTest(realhost.HostTest):
    """A host that an earlier version deployed is that of this one."""

    IMAGES = ("nova",)

    nova = OtherToolsTest.nova

    def test_hosts_of_an_earlier_version(self):
        repository = os.path.dirname(realhost.COLLECTION)
        archive = subprocess.run(["git", "-C", repository, "archive", EARLIER, "ansible"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if archive.returncode != 0:
            self.skipTest("the clone has no commit " + EARLIER)
        directory = tempfile.mkdtemp(prefix=realhost.NAME + "-earlier-")
        self.addCleanup(shutil.rmtree, directory, True)
        subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
        link = self.path("collections", "ansible_collections", "edpm", "operators")
        steps = (("configure_network", {}), ("configure_os", {"edpm_chronyd_options": "-x"}), ("libvirt", LIBVIRT), ("nova", self.nova()))
        for collection in (os.path.join(directory, "ansible"), realhost.COLLECTION):
            os.unlink(link)
            os.symlink(collection, link)
            for playbook, variables in steps:
                self.succeeds(playbook, **variables)
            self.guest()
            self.put("/etc/libvirt/qemu/instance-1.xml", "<domain/>")


if __name__ == "__main__":
    unittest.main()
