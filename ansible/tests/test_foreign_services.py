"""The module that finds services of other tools, on files of a host that the test writes."""

import json
import os
import unittest

import modules
import runs

OURS = "# Written by the role edpm.operators.edpm_service, which overwrites changes.\n[Unit]\n"
A, B = "a" * 64, "b" * 64
ALL = ["nova", "libvirt", "ovn", "ovs"]


@runs.needs_ansible
class ForeignServicesTest(modules.ModuleTest):
    MODULE = "foreign_services"

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("proc"))
        # Units are inactive unless the test says what they are.
        self.command("systemctl", "[ $1 = show ] || exit 0; shift 3; for unit; do cat %s/status-$unit 2>/dev/null || printf 'ActiveState=inactive\\nUnitFileState=disabled\\n'; echo; done"
                     % self.directory)
        for command in ("podman", "docker"):
            self.command(command, "echo /of-%s" % command)

    def unit(self, name, text="[Unit]\n", active="active", enabled="enabled", directory="usr/lib/systemd/system"):
        self.write("%s/%s" % (directory, name), text)
        self.write("status-" + name, "ActiveState=%s\nUnitFileState=%s\n" % (active, enabled))

    def process(self, pid, cgroup, *arguments):
        self.write("proc/%d/cmdline" % pid, "\0".join(arguments) + "\0")
        self.write("proc/%d/cgroup" % pid, cgroup + "\n")

    def docker(self, name, running="true", policy="unless-stopped"):
        self.write("var/lib/docker/containers/%s/config.v2.json" % name, '{"Name": "/%s", "State": {"Running": %s}}' % (name, running))
        self.write("var/lib/docker/containers/%s/hostconfig.json" % name, '{"RestartPolicy": {"Name": "%s"}}' % policy)

    def look(self, services=ALL, **options):
        return self.done(services=services, root=self.directory, refuse=False, **options)

    def found(self, services=ALL, **options):
        return self.look(services, **options)["found"]

    def test_an_empty_host(self):
        self.assertEqual(self.found(), [])
        self.assertEqual(self.calls(), [], "asks about units that are not there")

    def test_units(self):
        for name, service, tools in (
                ("nova-compute.service", "nova", ["packages"]), ("openstack-nova-compute.service", "nova", ["packages"]),
                ("kolla-nova_compute-container.service", "nova", ["kolla-ansible"]), ("container-nova_compute.service", "nova", ["kolla-ansible"]),
                ("edpm_nova_compute.service", "nova", ["edpm-ansible"]), ("tripleo_nova_compute.service", "nova", []), ("devstack@n-cpu.service", "nova", []),
                ("snap.openstack-hypervisor.nova-compute.service", "nova", []),
                ("kolla-nova_libvirt-container.service", "libvirt", ["kolla-ansible"]), ("tripleo_nova_virtqemud.service", "libvirt", []),
                ("ovn-controller.service", "ovn", ["packages"]), ("edpm_ovn_controller.service", "ovn", ["edpm-ansible"]),
                ("edpm_ovn_metadata_agent.service", "ovn", ["edpm-ansible"]), ("neutron-ovn-metadata-agent.service", "ovn", ["packages"]),
                ("kolla-neutron_ovn_metadata_agent-container.service", "ovn", ["kolla-ansible"]),
                ("neutron-openvswitch-agent.service", "ovs", ["packages"]), ("kolla-neutron_openvswitch_agent-container.service", "ovs", ["kolla-ansible"]),
                ("tripleo_neutron_ovs_agent.service", "ovs", []), ("devstack@q-agt.service", "ovs", [])):
            with self.subTest(name):
                self.unit(name)
                answer = self.look()
                self.assertEqual((answer["found"], answer["services"], answer["tools"], answer["units"]),
                                 (["unit %s (active, enabled)" % name], [service], tools, [name]))
                os.unlink(self.path("usr/lib/systemd/system", name))

    def test_a_unit_that_neither_runs_nor_starts_at_boot(self):
        self.unit("nova-compute.service", active="inactive", enabled="disabled")
        answer = self.look()
        self.assertEqual((answer["found"], answer["units"]), ([], ["nova-compute.service"]))
        self.unit("nova-compute.service", active="inactive")
        self.assertEqual(self.found(), ["unit nova-compute.service (inactive, enabled)"])
        self.unit("nova-compute.service", enabled="disabled")
        self.assertEqual(self.found(), ["unit nova-compute.service (active)"])

    def test_units_of_other_services(self):
        self.unit("edpm_iscsid.service", directory="etc/systemd/system")
        self.unit("edpm_ours.service", OURS, directory="etc/systemd/system")
        self.assertEqual(self.look()["units"], ["edpm_iscsid.service"])
        for name in ("nova-conductor.service", "ovn-controller-vtep.service", "edpm_nova_compute_exporter.service", "libvirtd.service", "virtqemud.service"):
            self.unit(name)
        self.assertEqual(self.found(), [])

    def test_ours(self):
        for name in ("edpm_nova_compute.service", "edpm-health-nova_compute.service", "edpm_ovn_controller.service", "edpm_libvirt_virtqemud.service"):
            self.unit(name, OURS, directory="etc/systemd/system")
        self.write("run/edpm_nova_compute.service.cid", A)
        self.process(7, "0::/machine.slice/libpod-%s.scope/container" % A, "/usr/bin/python3", "/usr/bin/nova-compute")
        self.process(8, "1:name=systemd:/machine.slice/libpod-%s.scope" % A, "/run/podman-init", "--", "nova-compute")
        self.process(9, "0::/system.slice/edpm_ovn_controller.service", "ovn-controller")
        self.write("run/libvirt/qemu/instance-1.pid", "7")
        self.write("etc/libvirt/qemu/instance-1.xml", "<domain/>")
        self.assertEqual(self.found(), [])

    def test_a_unit_of_the_same_name_that_is_not_ours_any_more(self):
        self.unit("edpm_nova_compute.service", OURS, directory="etc/systemd/system")
        self.assertEqual(self.found(), [])
        self.unit("edpm_nova_compute.service", directory="etc/systemd/system")
        self.assertEqual(self.found(), ["unit edpm_nova_compute.service (active, enabled)"])

    def test_processes(self):
        self.process(10, "0::/machine.slice/libpod-%s.scope" % B, "/var/lib/kolla/venv/bin/python3", "-s", "/var/lib/kolla/venv/bin/nova-compute")
        self.process(11, "4:memory:/docker/%s\n1:name=systemd:/docker/%s" % (B, B), "/usr/sbin/libvirtd", "--listen")
        self.process(12, "0::/user.slice/session-1.scope", "/opt/stack/bin/nova-compute")
        self.process(13, "0::/system.slice/my-ovn.service", "ovn-controller", "unix:/run/openvswitch/db.sock")
        # Not what they are called.
        self.process(14, "0::/", "vi", "nova-compute")
        self.process(15, "0::/", "python3", "-m", "pdb", "nova-compute")
        self.process(16, "0::/")
        self.write("proc/self/cmdline", "nova-compute")
        self.assertEqual(self.found(), ["nova-compute in container of-podman", "libvirtd in container of-docker", "nova-compute as process 12",
                                        "ovn-controller as process 13 of my-ovn.service"])

    def test_the_process_of_a_unit_is_not_reported_twice(self):
        self.unit("nova-compute.service")
        self.process(10, "0::/system.slice/nova-compute.service", "/usr/bin/python3", "/usr/bin/nova-compute")
        self.assertEqual(self.found(), ["unit nova-compute.service (active, enabled)"])

    def test_a_host_that_is_a_container(self):
        outside = "1:name=systemd:/machine.slice/libpod-%s.scope/system.slice/" % B
        self.unit("edpm_nova_compute.service", OURS, directory="etc/systemd/system")
        self.write("run/edpm_nova_compute.service.cid", A)
        self.process(7, outside + "libpod-%s.scope" % A, "nova-compute")
        self.process(8, outside + "edpm_nova_compute.service", "nova-compute")
        self.assertEqual(self.found(), [])
        self.process(9, outside + "other.service", "nova-compute")
        self.assertEqual(self.found(), ["nova-compute as process 9 of other.service"])

    def test_containers_of_docker(self):
        self.docker("nova_compute", running="false")
        self.docker("nova_libvirt", policy="no")
        self.docker("ovn_controller", running="false", policy="no")
        self.docker("nova_api")
        self.write("var/lib/docker/containers/broken/config.v2.json", "[")
        answer = self.look()
        self.assertEqual((answer["found"], answer["tools"]), (["container nova_compute", "container nova_libvirt"], ["kolla-ansible"]))

    def test_guests(self):
        self.process(7, "0::/machine.slice/machine-qemu.scope", "/usr/bin/qemu-system-x86_64")
        for name, text in (("driver", "7"), ("dead", "8"), ("instance-1", "7")):
            self.write("run/libvirt/qemu/%s.pid" % name, text)
        for name in ("instance-1", "instance-2", "instance-3", "instance-4"):
            self.write("etc/libvirt/qemu/%s.xml" % name, "<domain/>")
        self.write("etc/libvirt/qemu/networks/default.xml", "<network/>")
        self.assertEqual(self.found(), ["1 running guests (instance-1)", "3 defined guests (instance-2, instance-3, ...)"])
        self.assertEqual(self.look()["guests"], ["instance-1"])
        self.assertEqual(self.found(["nova", "ovn"]), [])
        # Of an interrupted clean-up of ours.
        self.write("etc/tmpfiles.d/edpm-libvirt.conf", "")
        self.assertEqual(self.found(), [])

    def test_libvirt_of_packages_without_guests(self):
        self.unit("libvirtd.service")
        self.process(7, "0::/system.slice/libvirtd.service", "/usr/sbin/libvirtd")
        self.write("etc/libvirt/qemu/networks/default.xml", "<network/>")
        self.assertEqual(self.found(), [])

    def test_only_what_is_asked_for(self):
        self.unit("nova-compute.service")
        self.unit("ovn-controller.service")
        self.process(7, "0::/", "ovn-controller")
        self.assertEqual(self.look(["nova", "libvirt"])["services"], ["nova"])
        self.assertEqual(self.look(["ovn"])["services"], ["ovn"])

    def test_a_host_that_was_configured_before(self):
        self.unit("nova-compute.service")
        mark = self.path("marks", "90-edpm.conf")
        self.assertEqual(len(self.found(unless=["/marks/90-edpm.conf"])), 1)
        self.write("marks/90-edpm.conf", "")
        self.assertTrue(os.path.exists(mark))
        self.assertEqual(self.found(unless=["/marks/none", "/marks/90-edpm.conf"]), [])

    def test_refusal(self):
        self.unit("nova-compute.service")
        for check in (False, True):
            answer = self.module(check=check, services=ALL, root=self.directory)
            self.assertEqual((answer["failed"], answer["edpm_refused"]), (True, True))
            self.assertEqual(answer["msg"], "nova-compute of packages is on this host: unit nova-compute.service (active, enabled). Disable it and rerun, or take it over")
        self.process(7, "0::/user.slice", "ovn-controller")
        self.write("etc/libvirt/qemu/instance-1.xml", "<domain/>")
        self.unit("kolla-nova_compute-container.service")
        self.assertEqual(self.failure(services=ALL, root=self.directory),
                         "nova-compute and libvirt and OVN of kolla-ansible and packages are on this host: unit kolla-nova_compute-container.service (active, enabled) "
                         "and 3 more. Disable it and rerun, or take it over")

    def take_over(self, **options):
        return dict(dict(services=["nova", "libvirt"], root=self.directory, take_over="packages", replace=True, host="compute-0"), **options)

    def changed(self):
        return [call for call in self.calls("systemctl") if not call.startswith("systemctl show")]

    def packages(self, configuration="[DEFAULT]\nhost = compute-0\n[libvirt]\nhost = other\n"):
        self.unit("nova-compute.service")
        for name in ("libvirt-guests.service", "libvirtd.service", "libvirtd.socket"):
            self.unit(name)
        self.write("run/libvirt/qemu/instance-1.pid", "7")
        self.write("run/libvirt/qemu/instance-1.xml", "<domstatus pid='7'>")
        self.process(7, "0::/machine.slice/machine-qemu.scope", "/usr/bin/qemu-system-x86_64")
        with open(self.write("etc/nova/nova.conf", ""), "wb") as file:
            file.write(b"# \xff\n" + configuration.encode())
        self.command("systemctl", "case $1 in show) shift 3; for unit; do printf 'ActiveState=active\\nUnitFileState=enabled\\n\\n'; done;; esac")

    def test_take_over(self):
        self.packages()
        disable = ["systemctl disable --now nova-compute.service", "systemctl disable libvirt-guests.service"]
        self.assertEqual(self.done(check=True, **self.take_over())["changes"], disable)
        self.assertEqual((self.changed(), os.path.exists(self.path("var/lib/edpm"))), ([], False))
        answer = self.done(**self.take_over())
        self.assertEqual((answer["changed"], answer["changes"]), (True, disable))
        self.assertEqual(answer["edpm_note"], "Taken over from packages, which start with /var/lib/edpm/undo-take-over.sh: nova-compute.service, libvirt-guests.service")
        self.assertEqual(self.changed(), disable)
        undo = self.read("var/lib/edpm/undo-take-over.sh")
        self.assertTrue(undo.endswith("".join("systemctl enable %s\n" % each for each in (
            "--now libvirtd.socket", "--now libvirtd.service", "libvirt-guests.service", "--now nova-compute.service"))), undo)
        self.assertEqual(self.read("var/lib/edpm/undo-take-over.sh.guests/instance-1.xml"), "<domstatus pid='7'>")
        # The run ended early, and another libvirt runs: there is one script with everything.
        self.done(**self.take_over())
        self.assertEqual(self.read("var/lib/edpm/undo-take-over.sh"), undo)
        self.write("run/libvirt/qemu/instance-1.xml", "newer")
        self.done(**self.take_over())
        self.assertEqual(self.read("var/lib/edpm/undo-take-over.sh.guests/instance-1.xml"), "<domstatus pid='7'>")

    def test_nothing_is_stopped_before_copies_of_guests_are_on_the_disk(self):
        self.packages()
        self.command("sync", "echo 'Input/output error' >&2; exit 1")
        self.assertEqual(self.failure(**self.take_over()), "Input/output error")
        copies = self.path("var/lib/edpm/undo-take-over.sh.guests")
        self.assertEqual(self.calls("sync", "systemctl disable"), ["sync --file-system " + copies])
        self.assertEqual(os.listdir(copies), ["instance-1.xml.new"], "a copy has its name when it is on the disk")
        self.write("bin/sync", "#!/bin/sh\n", 0o755)
        self.done(**self.take_over())
        self.assertEqual(self.read("var/lib/edpm/undo-take-over.sh.guests/instance-1.xml"), "<domstatus pid='7'>")

    def test_phase_0_of_a_host_that_is_taken_over_stops_nothing(self):
        self.packages()
        answer = self.done(**self.take_over(replace=False, hostname="another", host="compute-0"))
        self.assertEqual((answer["changed"], self.changed()), (False, []))

    def test_a_host_that_cannot_be_taken_over(self):
        self.packages()
        for options, configuration, why in (
                ({"host": "compute-1"}, None, "The host is compute-0 in nova and would be compute-1. Correct edpm_nova_host or edpm_hostname in ansibleVars"),
                ({"host": "", "hostname": "compute-2", "replace": False}, None, "The host is compute-0 in nova and would be compute-2. Correct"),
                ({}, "[DEFAULT]\nhost=compute-0\nstate_path = /srv/nova", "Cannot be taken over: state_path of packages is /srv/nova, and guests have to be in /var/lib/nova/instances"),
                ({}, "[DEFAULT]\nhost=compute-0\ninstances_path=/srv", "Cannot be taken over: instances_path of packages is /srv, and guests")):
            with self.subTest(why):
                self.packages(configuration or "[DEFAULT]\nhost = compute-0\nstate_path=/var/lib/nova/\ninstances_path = $state_path/instances\n")
                self.assertIn(why, self.failure(**self.take_over(**options)))
        self.assertEqual(self.changed(), [])

    def test_a_host_of_another_tool_than_the_one_that_was_named(self):
        self.unit("kolla-nova_compute-container.service")
        self.assertEqual(self.failure(**self.take_over()), "Cannot be taken over from packages: unit kolla-nova_compute-container.service (active, enabled)")
        self.unit("kolla-nova_compute-container.service", active="inactive", enabled="disabled")
        self.packages()
        self.process(8, "0::/machine.slice/libpod-%s.scope" % B, "nova-compute")
        self.assertEqual(self.failure(**self.take_over()), "Cannot be taken over from packages: nova-compute in container of-podman")

    def test_a_unit_that_no_known_tool_has_is_not_taken_over(self):
        self.unit("tripleo_nova_compute.service")
        self.assertEqual(self.failure(**self.take_over()), "Cannot be taken over from packages: unit tripleo_nova_compute.service (active, enabled)")

    def kolla(self, engine="podman", configuration="[DEFAULT]\nstate_path = /var/lib/nova\n"):
        """Writes a host of kolla-ansible: its containers have volumes, its units start them, and a guest runs."""
        for name in ("nova_compute", "nova_libvirt", "nova_ssh"):
            self.unit("kolla-%s-container.service" % name, directory="etc/systemd/system")
        volumes = "/var/lib/containers/storage/volumes/%s/_data"
        mounts = {"nova_compute": {"/var/lib/nova/": volumes % "nova_compute", "/run": "/run"},
                  "nova_libvirt": {"/var/lib/libvirt": volumes % "libvirtd", "/etc/libvirt/qemu": volumes % "nova_libvirt_qemu"}}
        for number, (name, found) in enumerate(mounts.items()):
            self.write("inspect-" + name, json.dumps([{"Id": "%064d" % number, "Mounts": [{"Destination": d, "Source": s} for d, s in found.items()]}]))
            self.process(20 + number, {"podman": "0::/machine.slice/libpod-%064d.scope", "docker": "0::/system.slice/docker-%064d.scope"}[engine] % number, {"nova_compute": "nova-compute"}.get(name, "libvirtd"))
        self.command({"podman": "docker", "docker": "podman"}[engine], "exit 1")
        self.command(engine, "case $3 in --format) case $5 in *0) echo nova_compute;; *) echo nova_libvirt;; esac;; *) [ $1 != container ] || cat %s/inspect-$3;; esac" % self.directory)
        self.write("etc/kolla/nova-compute/nova.conf", configuration)
        self.write(volumes.lstrip("/") % "nova_compute" + "/compute_id", "some-id\n")
        self.write(volumes.lstrip("/") % "nova_compute" + "/instances/6a5c7d1e-0f6c-4b1d-9d3a-1b2c3d4e5f60/disk", "")
        self.write("run/libvirt/qemu/instance-1.pid", "7")
        self.write("run/libvirt/qemu/instance-1.xml", "<domstatus pid='7'>")
        self.process(7, "0::/machine.slice/machine-qemu.scope", "/usr/bin/qemu-system-x86_64")
        return volumes

    def from_kolla(self, **options):
        return self.take_over(take_over="kolla-ansible", host="", hostname="", **options)

    def test_take_over_from_kolla_ansible(self):
        volumes = self.kolla()
        self.assertEqual(self.look(["nova", "libvirt"])["found"], [
            "unit kolla-nova_compute-container.service (active, enabled)", "unit kolla-nova_libvirt-container.service (active, enabled)",
            "nova-compute in container nova_compute", "libvirtd in container nova_libvirt", "1 running guests (instance-1)"])
        mounts = ["var-lib-nova.mount", "var-lib-libvirt.mount", "etc-libvirt-qemu.mount"]
        # Mounted before a libvirt stops, as the next run would not find it any more, and guests would have no sockets.
        expected = ["systemctl enable --now " + mount for mount in mounts] + [
            "systemctl disable --now kolla-%s-container.service" % name for name in ("nova_ssh", "nova_compute", "nova_libvirt")]
        before = self.changed()
        answer = self.done(check=True, **self.from_kolla())
        self.assertEqual((answer["changes"], self.changed(), before), (expected, [], []))
        self.assertFalse(os.path.exists(self.path("etc/systemd/system/var-lib-nova.mount")))
        answer = self.done(**self.from_kolla())
        self.assertEqual(answer["kept"], {"host": os.uname()[1], "compute_id": "some-id", "instances": 1, "guests": ["instance-1"]})
        self.assertEqual(answer["edpm_note"], "Taken over from kolla-ansible, which start with /var/lib/edpm/undo-take-over.sh: "
                         "kolla-nova_ssh-container.service, kolla-nova_compute-container.service, kolla-nova_libvirt-container.service")
        self.assertEqual(self.changed(), ["systemctl daemon-reload"] + expected)
        self.assertEqual(self.read("run/systemd/system/kolla-nova_libvirt-container.service.d/edpm.conf"), "[Service]\nKillMode=process\n")
        self.assertFalse(os.path.exists(self.path("run/systemd/system/kolla-nova_compute-container.service.d")))
        self.assertIn("\nWhat=%s\nWhere=/var/lib/libvirt\nType=none\nOptions=bind\n" % (volumes % "libvirtd"), self.read("etc/systemd/system/var-lib-libvirt.mount"))
        self.assertTrue(self.read("var/lib/edpm/undo-take-over.sh").endswith("".join(
            ['owner=$(stat --format %u /var/lib/nova/compute_id)\n', '[ "$owner" = 0 ] || chown --recursive --no-dereference --from="$owner" 0:0 /var/lib/nova\n'.replace("0", str(os.getuid()))] +
            ["systemctl disable --now %s\n" % mount for mount in mounts] +
            ["systemctl enable --now kolla-%s-container.service\n" % name for name in ("nova_libvirt", "nova_compute", "nova_ssh")])))
        self.assertEqual(self.read("var/lib/edpm/undo-take-over.sh.guests/instance-1.xml"), "<domstatus pid='7'>")

    def test_volumes_that_are_mounted_or_are_the_directories_of_the_host_are_not_mounted(self):
        volumes = self.kolla("docker")
        for source, where in (("nova_compute", "var/lib/nova"), ("libvirtd", "var/lib/libvirt")):
            os.makedirs(self.path(volumes.lstrip("/") % source), exist_ok=True)
            os.symlink(self.path(volumes.lstrip("/") % source), self.path(where))
        self.write("inspect-nova_libvirt", json.dumps([{"Id": "%064d" % 1, "Mounts": [{"Destination": "/etc/libvirt/qemu", "Source": "/etc/libvirt/qemu"}]}]))
        self.assertEqual([change for change in self.done(**self.from_kolla())["changes"] if ".mount" in change], [])

    def test_a_host_of_kolla_ansible_that_cannot_be_taken_over(self):
        guests = "Cannot be taken over: guest instance-1 would end with container nova_libvirt, in whose cgroup it is. Migrate or stop it"
        hidden = "Cannot be taken over: /var/lib/nova/instances/x would be hidden by the volume of nova_compute. Move it away"
        missing = "Cannot be taken over: neither podman nor docker shows container nova_libvirt, whose volumes have the guests"
        for why, change in (
                (guests, lambda: self.process(7, "0::/machine.slice/libpod-%064d.scope/container" % 1, "qemu")),
                (hidden, lambda: self.write("var/lib/nova/instances/x", "")),
                (missing, lambda: os.unlink(self.path("inspect-nova_libvirt"))),
                ("The host is compute-9 in nova and would be %s. Correct edpm_nova_host or edpm_hostname in ansibleVars" % os.uname()[1],
                 lambda: self.write("etc/kolla/nova-compute/nova.conf", "[DEFAULT]\nhost = compute-9\n")),
                ("Cannot be taken over from kolla-ansible: unit nova-compute.service (active, enabled)", lambda: self.unit("nova-compute.service"))):
            with self.subTest(why):
                self.kolla()
                change()
                for options in ({}, {"replace": False}):
                    self.assertEqual(self.failure(**self.from_kolla(**options)), why)
            self.setUp()

    def test_containers_of_docker_that_have_no_unit(self):
        self.kolla("docker")
        for name in ("nova_compute", "nova_libvirt", "nova_ssh"):
            os.unlink(self.path("etc/systemd/system/kolla-%s-container.service" % name))
        for name in ("nova_compute", "nova_libvirt"):
            self.docker(name)
        self.done(**self.from_kolla())
        docker = [call.replace(self.path("bin") + "/", "") for call in self.calls("docker update", "docker stop")]
        self.assertEqual(docker, ["docker update --restart=no nova_compute", "docker stop nova_compute", "docker update --restart=no nova_libvirt", "docker stop nova_libvirt"])
        undo = self.read("var/lib/edpm/undo-take-over.sh").replace(self.path("bin") + "/", "")
        self.assertTrue(undo.endswith("docker update --restart=unless-stopped nova_compute\ndocker start nova_compute\n"), undo)

    def edpm(self, directory="nova"):
        """Writes a host of edpm-ansible: nova-compute in a container that a quadlet starts, libvirt of packages, and what shuts guests down."""
        self.unit("edpm_nova_compute.service", enabled="generated", directory="run/systemd/generator")
        self.unit("edpm_libvirt_guests.service", directory="etc/systemd/system")
        self.unit("virtqemud.socket")
        self.write("etc/containers/systemd/edpm_nova_compute.container", "[Container]\n")
        self.write("var/lib/openstack/%s/01-nova.conf" % directory, "[DEFAULT]\nstate_path = /var/lib/nova\n")
        self.write("var/lib/openstack/%s/02-nova-host-specific.conf" % directory, "[DEFAULT]\nhost = compute-0.example.com\n")
        self.write("var/lib/nova/compute_id", "some-id")
        self.process(20, "0::/system.slice/edpm_nova_compute.service/libpod-payload-%s" % B, "nova-compute")
        self.command("podman", "echo nova_compute")

    def from_edpm(self, **options):
        return self.take_over(**dict({"take_over": "edpm-ansible", "host": "compute-0.example.com"}, **options))

    def test_take_over_from_edpm_ansible(self):
        self.edpm()
        self.assertIn("The host is compute-0.example.com in nova and would be compute-0", self.failure(**self.from_edpm(host="compute-0")))
        expected = ["systemctl stop edpm_nova_compute.service", "rm /etc/containers/systemd/edpm_nova_compute.container", "rm /etc/systemd/system/edpm_libvirt_guests.service"]
        self.assertEqual(self.done(check=True, **self.from_edpm())["changes"], expected)
        self.command("rm", 'exec /bin/rm "%s$1"' % self.directory)
        answer = self.done(**self.from_edpm())
        self.assertEqual((answer["changes"], answer["kept"]["host"], answer["kept"]["compute_id"]), (expected, "compute-0.example.com", "some-id"))
        # Stopped, the unit would shut guests down.
        self.assertEqual(self.changed(), ["systemctl stop edpm_nova_compute.service", "systemctl daemon-reload"])
        self.assertFalse(os.path.exists(self.path("etc/systemd/system/edpm_libvirt_guests.service")))
        undo = self.read("var/lib/edpm/undo-take-over.sh")
        files = "/var/lib/edpm/undo-take-over.sh.files/"
        self.assertTrue(undo.endswith("".join(line + "\n" for line in (
            "rm --recursive --force /etc/systemd/system/edpm_nova_compute.service", "rm --recursive --force /etc/systemd/system/virt-guest-shutdown.target",
            "rm --recursive --force /var/lib/openstack/nova",
            "cp --archive --no-target-directory %svar+lib+openstack+nova /var/lib/openstack/nova" % files,
            "cp --archive --no-target-directory %setc+containers+systemd+edpm_nova_compute.container /etc/containers/systemd/edpm_nova_compute.container" % files,
            "cp --archive --no-target-directory %setc+systemd+system+edpm_libvirt_guests.service /etc/systemd/system/edpm_libvirt_guests.service" % files,
            "systemctl daemon-reload", "systemctl enable --now virtqemud.socket", "systemctl start edpm_nova_compute.service"))), undo)
        self.assertIn("host = compute-0.example.com", self.read(files.lstrip("/") + "var+lib+openstack+nova/02-nova-host-specific.conf"))
        self.assertEqual(os.stat(self.path(files.strip("/"))).st_mode & 0o777, 0o700, "the configuration has passwords")

    def test_take_over_from_an_earlier_edpm_ansible(self):
        self.edpm("config/nova")
        os.unlink(self.path("run/systemd/generator/edpm_nova_compute.service"))
        self.unit("edpm_nova_compute.service", directory="etc/systemd/system")
        self.assertEqual(self.done(check=True, **self.from_edpm())["changes"],
                         ["systemctl disable --now edpm_nova_compute.service", "rm /etc/systemd/system/edpm_libvirt_guests.service"])
        self.done(**self.from_edpm(services=["nova"]))
        self.assertIn("cp --archive --no-target-directory /var/lib/edpm/undo-take-over.sh.files/etc+systemd+system+edpm_nova_compute.service", self.read("var/lib/edpm/undo-take-over.sh"))

    def test_a_quadlet_that_does_not_run_starts_at_boot(self):
        self.unit("edpm_nova_compute.service", active="inactive", enabled="generated", directory="run/systemd/generator")
        self.assertEqual(self.found(), ["unit edpm_nova_compute.service (inactive, enabled)"])

    def test_what_guests_have_their_network_from_is_not_taken_over(self):
        for unit, service, name in (("ovn-controller.service", "ovn", "OVN"), ("neutron-openvswitch-agent.service", "ovs", "neutron-openvswitch-agent")):
            with self.subTest(unit):
                self.unit(unit)
                self.assertEqual(self.failure(**self.take_over(services=[service])),
                                 "%s of packages cannot be taken over: unit %s (active, enabled). Disable it and rerun" % (name, unit))
        self.assertEqual(self.done(**self.take_over(services=ALL, replace=False, host=""))["changed"], False)


if __name__ == "__main__":
    unittest.main()
