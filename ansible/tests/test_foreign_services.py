"""The module that finds services of other tools, on files of a host that the test writes."""

import os
import unittest

import modules
import runs

OURS = "# Written by the role edpm.operators.edpm_service, which overwrites changes.\n[Unit]\n"
A, B = "a" * 64, "b" * 64
ALL = ["nova", "libvirt", "ovn"]


@runs.needs_ansible
class ForeignServicesTest(modules.ModuleTest):
    MODULE = "foreign_services"

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("proc"))
        # Units are inactive unless the test says what they are.
        self.command("systemctl", "shift 3; for unit; do cat %s/status-$unit 2>/dev/null || printf 'ActiveState=inactive\\nUnitFileState=disabled\\n'; echo; done"
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
                ("kolla-neutron_ovn_metadata_agent-container.service", "ovn", ["kolla-ansible"])):
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
                         "nova-compute and libvirt and OVN of kolla-ansible and packages is on this host: unit kolla-nova_compute-container.service (active, enabled) "
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
        disable = ["disable --now nova-compute.service", "disable libvirt-guests.service"]
        self.assertEqual(self.done(check=True, **self.take_over())["changes"], disable)
        self.assertEqual((self.changed(), os.path.exists(self.path("var/lib/edpm"))), ([], False))
        answer = self.done(**self.take_over())
        self.assertEqual((answer["changed"], answer["changes"]), (True, disable))
        self.assertEqual(answer["edpm_note"], "Taken over from packages, which start with /var/lib/edpm/undo-take-over.sh: nova-compute.service, libvirt-guests.service")
        self.assertEqual(self.changed(), ["systemctl " + each for each in disable])
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

    def test_phase_0_of_a_host_that_is_taken_over_stops_nothing(self):
        self.packages()
        answer = self.done(**self.take_over(replace=False, hostname="another", host="compute-0"))
        self.assertEqual((answer["changed"], self.changed()), (False, []))

    def test_a_host_that_cannot_be_taken_over(self):
        self.packages()
        for options, configuration, why in (
                ({"host": "compute-1"}, None, "The host is compute-0 in nova and would be compute-1. Correct edpm_nova_host or edpm_hostname in ansibleVars"),
                ({"host": "", "hostname": "compute-2", "replace": False}, None, "The host is compute-0 in nova and would be compute-2. Correct"),
                ({}, "[DEFAULT]\nhost=compute-0\nstate_path = /srv/nova", "Cannot be taken over: state_path in /etc/nova is /srv/nova, and guests have to be in /var/lib/nova/instances"),
                ({}, "[DEFAULT]\nhost=compute-0\ninstances_path=/srv", "Cannot be taken over: instances_path in /etc/nova is /srv, and guests")):
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

    def test_ovn_is_not_taken_over(self):
        self.unit("ovn-controller.service")
        self.assertEqual(self.failure(**self.take_over(services=["ovn"])),
                         "OVN of packages cannot be taken over: unit ovn-controller.service (active, enabled). Disable it and rerun")
        self.assertEqual(self.done(**self.take_over(services=ALL, replace=False, host=""))["changed"], False)


if __name__ == "__main__":
    unittest.main()
