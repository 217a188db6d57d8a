"""Hosts on which another tool runs nova-compute, libvirt or OVN, see realhost.py:

    EDPM_HOSTS_TEST=1 python3 ansible/tests/test_other_tools.py -v
"""

import base64
import json
import os
import re
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
# The user of nova in their images, which is another one in ours.
THEIRS = 42999
LIBVIRT = {"edpm_libvirt_image": "localhost/edpm-nova-libvirt:latest", "edpm_libvirt_daemons": ["virtlogd", "libvirtd"], "edpm_libvirt_check": False}
# As kolla-ansible writes them for podman.
KOLLA = ("[Unit]\nDescription=podman kolla-{0}-container.service\nPartOf=kolla.target\n[Service]\nExecStart=/usr/bin/podman start -a {0}\n"
         "ExecStop=/usr/bin/podman stop {0} -t 60\nRestart=always\nRestartSec=11\nSuccessExitStatus=143\n[Install]\nWantedBy=multi-user.target\n")
INSTANCE = "/var/lib/nova/instances/6a5c7d1e-0f6c-4b1d-9d3a-1b2c3d4e5f60"
DOMAIN = """<domain type="qemu"><name>instance-1</name><memory unit="MiB">64</memory><vcpu>1</vcpu>
    <os><type arch="x86_64" machine="q35">hvm</type></os>
    <devices><disk type="file"><source file="%s/disk"/><target dev="vda"/></disk></devices></domain>""" % INSTANCE
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

    def certificates(self):
        names = ("ca.crt", "tls.crt", "tls.key")
        for name in names:
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("the content of " + name)
        return {"edpm_config_files": {name: self.path(name) for name in names}}

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
        unit = self.edpm()
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

    @realhost.long
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

    def kolla(self, name, image, *options):
        """Starts a container as kolla-ansible does, with /var/lib/nova in a volume."""
        self.host("podman create --name {0} --network host --privileged --volume /run:/run --volume /dev:/dev --volume nova_compute:/var/lib/nova {1} {2}".format(
            name, " ".join(options), image))
        self.addCleanup(self.host, "podman rm --force --time 0 " + name, check=False)
        return self.service("/etc/systemd/system/kolla-%s-container.service" % name, KOLLA.format(name))

    def guest_of(self, container):
        """Returns the process of the guest and when it started, after libvirt in a container has answered for it."""
        self.assertEqual(self.host("podman exec %s virsh --quiet domstate instance-1" % container), "running")
        return self.host("pid=$(cat /run/libvirt/qemu/instance-1.pid); echo $pid $(cut -d ' ' -f 22 /proc/$pid/stat)")

    def reports(self, *arguments, **variables):
        """Returns the lines of kubectl edpm take-over --dry-run."""
        output = self.succeeds("take_over", *arguments, edpm_other_tools_token="t0ken", **variables).output
        found = json.loads(base64.b64decode(re.search("EDPM_PREFLIGHT t0ken ([A-Za-z0-9+/=]+)", output).group(1)))
        return [(each["check"], each["ok"], each["message"]) for each in found["checks"]]

    def test_y_a_host_of_kolla_ansible_is_taken_over_with_its_guests(self):
        asked, data = {"edpm_take_over": "kolla-ansible"}, "/var/lib/containers/storage/volumes/nova_compute/_data"
        self.addCleanup(self.host, "systemctl disable --now var-lib-nova.mount var-lib-libvirt.mount etc-libvirt-qemu.mount; podman volume rm --all --force", check=False)
        self.put("/srv/nova-compute", PROGRAM, "755")
        units = [self.kolla("nova_compute", IMAGE + " /usr/bin/python3 /opt/bin/nova-compute", "--init", "--volume", "/srv/nova-compute:/opt/bin/nova-compute:ro"),
                 self.kolla("nova_libvirt", "localhost/edpm-nova-libvirt:latest sh -c 'virtlogd --daemon; exec libvirtd'", "--pid host", "--cgroupns host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup",
                            "--volume", "libvirtd:/var/lib/libvirt", "--volume", "nova_libvirt_qemu:/etc/libvirt/qemu")]
        self.host("mkdir -p {0}/instances /etc/kolla/nova-compute; echo id > {0}/compute_id; podman exec nova_compute mkdir -p {1};"
                  "podman exec nova_compute truncate --size 1M {1}/disk; chown -R {2}:{2} {0}; echo '[DEFAULT]' > /etc/kolla/nova-compute/nova.conf".format(data, INSTANCE, THEIRS))
        self.addCleanup(self.host, "rm -rf /etc/kolla /var/lib/nova", check=False)
        self.host("for i in $(seq 30); do podman exec nova_libvirt virsh --quiet uri && break; sleep 1; done;"
                  "podman exec --interactive nova_libvirt virsh --quiet define /dev/stdin && podman exec nova_libvirt virsh --quiet start instance-1", text=DOMAIN)
        self.addCleanup(self.host, "kill -KILL $(cat /run/libvirt/qemu/instance-1.pid)", check=False)
        guest, before = self.guest_of("nova_libvirt"), self.state(*units)
        mounts = ["var-lib-nova.mount", "var-lib-libvirt.mount", "etc-libvirt-qemu.mount"]
        wanted = [("keeps", True, "host %s in nova" % self.host("uname --nodename")), ("keeps", True, "compute ID id"),
                  ("keeps", True, "1 directories of guests, 1 guests that run")] + [("would run", True, "systemctl enable --now " + mount) for mount in mounts] + [
                      ("would run", True, "systemctl disable --now " + unit) for unit in units]
        self.assertEqual([line for line in self.reports("--check", **asked) if line[0] != "found"], wanted)
        self.assertEqual(self.reports("--check", edpm_take_over="packages")[-1], ("take-over", False, "Cannot be taken over from packages: unit %s (active, enabled)" % units[0]))
        self.assertEqual(self.state(*units), before)
        self.succeeds("libvirt_tls", **LIBVIRT, **self.certificates(), **asked)
        self.succeeds("libvirt", **LIBVIRT, **asked)
        self.succeeds("nova", **self.nova(), **asked)
        self.assertEqual(self.host("cat /var/lib/libvirt/pki/CA/cacert.pem"), "the content of ca.crt")
        self.assertEqual(self.host("systemctl is-active {0} edpm_nova_compute edpm_libvirt_libvirtd; systemctl is-enabled {0}".format(" ".join(units)), check=False).split(),
                         ["inactive", "inactive", "active", "active", "disabled", "disabled"])
        self.assertEqual(self.guest_of("edpm_libvirt_libvirtd"), guest)
        self.assertEqual(self.host("podman exec edpm_nova_compute cat /var/lib/nova/compute_id; find {0} /var/lib/nova -user {1}; stat --format %i {0}/compute_id /var/lib/nova/compute_id | uniq | wc -l".format(data, THEIRS)).split(),
                         ["id", "1"])
        for playbook, variables in (("libvirt", LIBVIRT), ("nova", self.nova())):
            self.assertEqual(self.succeeds(playbook, **variables, **asked).changed, [])
        # And back. The daemon of libvirt ends as one that is still busy after 30 seconds.
        busy = "/etc/systemd/system/edpm_libvirt_libvirtd.service.d/busy.conf"
        self.put(busy, "[Service]\nExecStop=/bin/false\n")
        self.host("systemctl daemon-reload")
        self.host("/var/lib/edpm/undo-take-over.sh 2>&1")
        self.assertEqual(self.host("systemctl is-active {0} edpm_nova_compute edpm_libvirt_libvirtd; findmnt /var/lib/nova".format(" ".join(units)), check=False).split(),
                         ["active", "active", "inactive", "inactive"])
        self.host("journalctl --unit edpm_libvirt_libvirtd | grep \"Failed with result 'exit-code'\"; rm {0}; systemctl daemon-reload".format(busy))
        self.host("for i in $(seq 30); do podman exec nova_libvirt virsh --quiet uri && break; sleep 1; done")
        self.assertEqual(self.guest_of("nova_libvirt"), guest)
        # Again, as someone has corrected what was wrong.
        self.succeeds("libvirt", **LIBVIRT, **asked)
        self.assertEqual(self.guest_of("edpm_libvirt_libvirtd"), guest)
        self.host("podman exec edpm_libvirt_libvirtd virsh --quiet destroy instance-1; podman exec edpm_libvirt_libvirtd virsh --quiet undefine instance-1")
        self.succeeds("nova_cleanup")

    def edpm(self):
        """Starts nova-compute as edpm-ansible does, with its configuration where ours is."""
        self.host("mkdir -p /var/lib/openstack/nova; cd /var/lib/openstack/nova; echo '[DEFAULT]' > 01-nova.conf;"
                  "printf '[DEFAULT]\\nhost = compute-0.example.com\\n' > 02-nova-host-specific.conf; touch nova-blank.conf")
        self.addCleanup(self.host, "rm -rf /var/lib/openstack/nova", check=False)
        return self.container("nova_compute", "edpm_nova_compute.service", "nova-compute", "config_id=nova_compute", "managed_by=edpm_ansible")

    @realhost.long
    def test_y_a_host_of_edpm_ansible_is_taken_over_with_its_guests(self):
        asked = {"edpm_take_over": "edpm-ansible", "edpm_nova_host": "compute-0.example.com"}
        self.host("mkdir -p {0}; echo id > /var/lib/nova/compute_id; chmod 400 /var/lib/nova/compute_id; echo disk > {0}/disk; chown -R {1}:{1} /var/lib/nova".format(INSTANCE, THEIRS))
        self.addCleanup(self.host, "rm -rf /var/lib/nova", check=False)
        unit, libvirtd = self.edpm(), self.packaged("libvirtd", "Virtualization daemon")
        guests = self.service("/etc/systemd/system/edpm_libvirt_guests.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
                              "ExecStop=/usr/bin/touch /run/shut-down\n[Install]\nWantedBy=multi-user.target\n")
        self.guest()
        # QEMU has its disk open.
        self.host("systemd-run --unit=guest-2 sh -c 'exec sleep 600 < %s/disk' 2>&1; systemctl show --property MainPID --value guest-2 > /run/libvirt/qemu/instance-2.pid" % INSTANCE)
        self.addCleanup(self.host, "systemctl stop guest-2", check=False)
        guest = self.host("cat /run/libvirt/qemu/instance-1.pid")
        theirs = "cd /var/lib/openstack/nova; md5sum *; cat /etc/systemd/system/{0} /etc/systemd/system/{1}".format(unit, guests)
        before, state = self.host(theirs), self.state(unit, libvirtd, guests)
        self.assertEqual(self.reports("--check", edpm_take_over="edpm-ansible")[-1][2],
                         "The host is compute-0.example.com in nova and would be edpm-takeover. Correct edpm_nova_host or edpm_hostname in ansibleVars".replace("edpm-takeover", realhost.NAME))
        self.assertEqual([line[2] for line in self.reports("--check", **asked) if line[0] == "would run"],
                         ["systemctl disable --now " + unit, "rm /etc/systemd/system/" + guests])
        self.assertEqual(self.state(unit, libvirtd, guests), state)
        self.succeeds("libvirt", **LIBVIRT, **asked)
        self.succeeds("nova", **self.nova(), **asked)
        self.assertEqual(self.host("systemctl is-active {0} {1} edpm_libvirt_libvirtd; podman ps --format '{{{{.Names}}}}' | grep nova_compute; find /run -name shut-down; kill -0 {2}".format(
            unit, libvirtd, guest), check=False).split(), ["active", "inactive", "active", "edpm_nova_compute"])
        self.assertEqual(self.host("cat /var/lib/nova/compute_id; find /var/lib/nova -user %d; grep ^host /var/lib/openstack/nova/01-nova-host.conf" % THEIRS).splitlines(),
                         ["id", INSTANCE + "/disk", "host = compute-0.example.com"])
        for playbook, variables in (("libvirt", LIBVIRT), ("nova", self.nova())):
            self.assertEqual(self.succeeds(playbook, **variables, **asked).changed, [])
        # And back, twice.
        for _ in range(2):
            self.host("/var/lib/edpm/undo-take-over.sh 2>&1")
            self.assertEqual(self.host(theirs), before)
            self.assertEqual(self.host("systemctl is-active {0} {1} edpm_libvirt_libvirtd; podman ps --format '{{{{.Names}}}}'; find /run -name shut-down; kill -0 {2}; find /var/lib/nova ! -user {3}".format(
                unit, libvirtd, guest, THEIRS), check=False).split(), ["active", "active", "inactive", "nova_compute"])
        self.host("systemctl stop guest guest-2", check=False)
        self.succeeds("nova_cleanup")
        self.assertEqual(self.host(theirs), before)

    @realhost.long
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

    # What roles leave on a host: files, what starts at boot, the firewall.
    LEFT = ("find /etc /usr/local /var/lib/edpm /var/lib/openstack /var/lib/libvirt -not -type d | sort;"
            "systemctl list-unit-files --state=enabled --no-legend | cut -d ' ' -f 1 | sort; nft list ruleset; podman ps --all --format '{{.Names}}' | sort")

    nova = OtherToolsTest.nova

    def deploy(self, collection):
        link = self.path("collections", "ansible_collections", "edpm", "operators")
        os.unlink(link)
        os.symlink(collection, link)
        for playbook, variables in (("configure_network", {}), ("configure_os", {"edpm_chronyd_options": "-x"}), ("libvirt", LIBVIRT), ("nova", self.nova())):
            self.succeeds(playbook, **variables)

    def define(self):
        """Has a guest run on the host."""
        self.guest()
        self.put("/etc/libvirt/qemu/instance-1.xml", "<domain/>")

    def test_hosts_of_an_earlier_version(self):
        repository = os.path.dirname(realhost.COLLECTION)
        archive = subprocess.run(["git", "-C", repository, "archive", EARLIER, "ansible"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if archive.returncode != 0:
            self.skipTest("the clone has no commit " + EARLIER)
        directory = tempfile.mkdtemp(prefix=realhost.NAME + "-earlier-")
        self.addCleanup(shutil.rmtree, directory, True)
        subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
        self.deploy(realhost.COLLECTION)
        self.define()
        fresh = self.host(self.LEFT).splitlines()
        self.renew()
        self.deploy(os.path.join(directory, "ansible"))
        self.define()
        self.deploy(realhost.COLLECTION)
        self.assertEqual(self.host(self.LEFT).splitlines(), fresh, "what differs was left by the earlier version")


if __name__ == "__main__":
    unittest.main()
