#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that finds nova-compute, libvirt, OVN and neutron's agent for Open vSwitch of another tool on a host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: foreign_services
short_description: find nova-compute, libvirt, OVN and neutron's agent for Open vSwitch of another tool
description:
  - Fails if another tool than this collection runs nova-compute, libvirt, OVN or neutron's agent for Open vSwitch on the host, or has the host start them at boot. Nothing is changed.
  - The collection's own services are told by the first line of their units, and by the IDs of containers that these units note in C(/run).
  - libvirt of packages is foreign only with guests, which run or are defined, as nothing depends on it otherwise.
  - The failure has C(edpm_refused), because another run with the same inputs fails in the same way.
  - What belongs to the tool I(take_over) is no failure. With I(replace) it is stopped and disabled. Guests continue, and I(undo) notes how to start it again.
  - Volumes of kolla-ansible's containers are mounted where the roles have their files. Files of edpm-ansible that have the names of ours are kept next to I(undo).
author:
  - The edpm-operators authors
options:
  services:
    description: What to look for. C(ovn) stands for ovn-controller and the metadata agent, C(ovs) for neutron's agent for Open vSwitch.
    type: list
    elements: str
    choices: [nova, libvirt, ovn, ovs]
    required: true
  unless:
    description: Files, one of which a host has that was configured before. Such a host is not looked at.
    type: list
    elements: path
    default: []
  refuse:
    description: Fail if something is found.
    type: bool
    default: true
  take_over:
    description: Tool whose services may be there. Empty for none.
    type: str
    choices: ["", edpm-ansible, kolla-ansible, packages]
    default: ""
  replace:
    description: Stop and disable services of this tool. Not if the host would get another name in nova, or guests are in another directory than C(/var/lib/nova/instances), and
      not OVN or neutron's agent, without which guests have no network.
    type: bool
    default: false
  host:
    description: Name of the host in nova, its host name if empty.
    type: str
    default: ""
  hostname:
    description: Host name that the host gets. Empty for the one that it has.
    type: str
    default: ""
  undo:
    description: Script that is written for a person who wants the services back.
    type: path
    default: /var/lib/edpm/undo-take-over.sh
  root:
    description: Directory with the files of the host.
    type: path
    default: /
attributes:
  check_mode:
    description: Reports what would be stopped.
    support: full
"""

EXAMPLES = """
- name: Check that no other tool runs nova-compute here
  edpm.operators.foreign_services:
    services: [nova, libvirt]
"""

RETURN = """
services:
  description: Which of the services that were looked for another tool runs.
  type: list
  elements: str
  returned: always
units:
  description: Foreign units, with those that neither run nor start at boot, and all whose name begins with C(edpm_).
  type: list
  elements: str
  returned: always
found:
  description: What was found, in words, such as C(unit nova-compute.service (active, enabled)).
  type: list
  elements: str
  returned: always
tools:
  description: Tools that name units and containers like this.
  type: list
  elements: str
  returned: always
guests:
  description: Names of guests that run, which another libvirt has started.
  type: list
  elements: str
  returned: always
kept:
  description: What a take-over keeps. The name of the I(host) in nova, its I(compute_id), the number of directories of I(instances), and I(guests) that run.
  type: dict
  returned: with I(take_over), if something was found
changes:
  description: What was done, such as C(systemctl disable --now nova-compute.service).
  type: list
  elements: str
  returned: with I(take_over)
edpm_note:
  description: The same in words, for the result of the host.
  type: str
  returned: when services were stopped
edpm_refused:
  description: That it is the same in each run with the same inputs.
  type: bool
  returned: on failure
"""

import glob
import io
import json
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils.take_over import CONFIGURATION, TakeOver

# The first words of each unit that the role edpm_service has written, in every version.
OURS = "# Written by the role edpm.operators.edpm_service,"
UNIT_DIRECTORIES = ("etc/systemd/system", "run/systemd/system", "run/systemd/generator", "lib/systemd/system", "usr/lib/systemd/system")
# Of packages, kolla-ansible (kolla-<name>-container, once container-<name>), edpm-ansible (edpm_<name>, with quadlets generated), TripleO
# (tripleo_<name>), snaps and DevStack.
UNITS = (
    ("nova", re.compile(r"(?:.*[-_.@])?(?:nova[-_]compute|n-cpu)(?:-container)?\.service\Z")),
    ("libvirt", re.compile(r"(?:.*[-_])?nova_(?:libvirt|virt\w+d)(?:-container)?\.service\Z")),
    ("ovn", re.compile(r"(?:.*[-_.@])?ovn[-_](?:controller|(?:metadata[-_])?agent)(?:-container)?\.service\Z")),
    ("ovs", re.compile(r"(?:.*[-_.@])?(?:neutron[-_](?:openvswitch|ovs)[-_]agent|q-agt)(?:-container)?\.service\Z")),
)
PROGRAMS = {"nova-compute": "nova", "libvirtd": "libvirt", "virtqemud": "libvirt", "ovn-controller": "ovn", "neutron-ovn-metadata-agent": "ovn",
            "neutron-ovn-agent": "ovn", "neutron-openvswitch-agent": "ovs"}
# As kolla-ansible, TripleO and edpm-ansible name them.
CONTAINERS = {"nova_compute": "nova", "nova_libvirt": "libvirt", "ovn_controller": "ovn", "neutron_ovn_metadata_agent": "ovn",
              "ovn_metadata_agent": "ovn", "neutron_openvswitch_agent": "ovs", "neutron_ovs_agent": "ovs"}
TOOLS = {
    "kolla-ansible": re.compile(r"kolla-|container-"),
    "edpm-ansible": re.compile(r"edpm_"),
    "packages": re.compile(r"(?:openstack-)?nova-compute|ovn-controller|neutron-(?:ovn|openvswitch)-"),
}
# By which unit each of them has a container started.
STARTERS = ("kolla-%s-container.service", "container-%s.service", "edpm_%s.service")
NAMES = {"nova": "nova-compute", "libvirt": "libvirt", "ovn": "OVN", "ovs": "neutron-openvswitch-agent"}
CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
UNIT_OF = re.compile(r"/([^/\s]+\.service)(?:/|\s|\Z)")
RUNS = ("active", "activating", "reloading", "deactivating")


def program(arguments):
    """Returns the name of the program that a process runs, which can be a script of Python."""
    names = [os.path.basename(argument) for argument in arguments]
    if not names or not names[0].startswith("python"):
        return names[0] if names else ""
    return ([name for name, argument in zip(names, arguments) if not argument.startswith("-")] + [""])[1]


class Host(object):
    """What is on a host, with its files under a directory."""

    def __init__(self, module):
        self.module, self.root = module, module.params["root"]
        self.services, self.found, self.tools, self.guests = set(), [], set(), []
        # Units that run or start at boot, with their services and what was found; those that generators made; containers of docker; and what nothing
        # here starts.
        self.units, self.generated, self.docker, self.loose = {}, set(), {}, []

    def path(self, *names):
        return os.path.join(self.root, *names)

    def read(self, *names):
        """Returns the text of a file, nothing of one that is not there any more."""
        try:
            with io.open(self.path(*names), encoding="utf-8", errors="replace") as stream:
                return stream.read()
        except (IOError, OSError):
            return ""

    def note(self, service, what, unit=""):
        """Notes that another tool runs a service, as a unit if there is one."""
        self.services.add(service)
        if what not in self.found:
            self.found.append(what)
        self.tools.update(tool for tool in TOOLS if self.belongs(unit, tool))

    def belongs(self, unit, tool):
        """Reports whether a tool names units like this."""
        return bool(TOOLS[tool].match(unit))

    def look(self, services):
        """Looks for services in units, containers, processes and guests. Returns the units that are foreign, whether they run or not."""
        units = dict((name, service) for service, pattern in UNITS if service in services
                     for name in self.unit_files() if pattern.match(name) and not self.is_ours(name))
        self.look_at_units(units)
        self.look_at_docker(services)
        self.look_at_processes(services)
        if "libvirt" in services and not self.has_our_libvirt():
            self.look_at_guests()
        return sorted(set(units).union(name for name in self.unit_files("edpm_*.service") if not self.is_ours(name)))

    def unit_files(self, pattern="*.service"):
        """Returns the names of units that have a file."""
        return sorted(set(os.path.basename(path) for directory in UNIT_DIRECTORIES for path in glob.glob(self.path(directory, pattern))))

    def is_ours(self, unit):
        """Reports whether the role edpm_service has written a unit."""
        return self.read("etc/systemd/system", unit).startswith(OURS)

    def has_our_libvirt(self):
        """Reports whether the role edpm_libvirt was there: guests are its own then. Clean-up removes the file after the definitions of guests."""
        return os.path.exists(self.path("etc/tmpfiles.d/edpm-libvirt.conf")) or any(map(self.is_ours, self.unit_files("edpm_libvirt_*.service")))

    def look_at_units(self, units):
        """Notes those that run, and those that start at boot."""
        for name, state, starts in self.states(sorted(units)):
            if state in RUNS or starts:
                what = "unit %s (%s%s)" % (name, state, ", enabled" if starts else "")
                self.note(units[name], what, name)
                self.units[name] = units[name], what

    def states(self, names):
        """Returns units with what systemd says of them: their state, and whether they start at boot."""
        show = ["systemctl", "show", "--property=ActiveState,UnitFileState", "--"] + names
        blocks = self.module.run_command(show, check_rc=True)[1].strip().split("\n\n") if names else []
        found = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in blocks]
        self.generated.update(name for name, status in zip(names, found) if status.get("UnitFileState") == "generated")
        return [(name, status.get("ActiveState", ""), status.get("UnitFileState", "").startswith(("enabled", "generated"))) for name, status in zip(names, found)]

    def look_at_docker(self, services):
        """Notes containers that docker runs or starts at boot. Its files are read, because its command can start it."""
        for directory in sorted(glob.glob(self.path("var/lib/docker/containers/*"))):
            try:
                container = json.loads(self.read(directory, "config.v2.json"))
                policy = json.loads(self.read(directory, "hostconfig.json"))["RestartPolicy"]["Name"]
                name, runs = container["Name"].lstrip("/"), container["State"]["Running"]
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # It is being made or removed.
            if CONTAINERS.get(name) in services and (runs or policy not in ("", "no")):
                self.note(CONTAINERS[name], "container %s" % name, "kolla-")
                self.docker[name] = CONTAINERS[name]

    def look_at_processes(self, services):
        """Notes processes that belong neither to a container nor to a unit of ours. libvirt of packages is stopped by its role."""
        ours = set(filter(None, (self.read(path).strip() for path in glob.glob(self.path("run/edpm_*.service.cid")))))
        for pid in sorted(filter(str.isdigit, os.listdir(self.path("proc"))), key=int):
            name = program(self.read("proc", pid, "cmdline").split("\0"))
            if PROGRAMS.get(name) in services:
                self.look_at_process(pid, name, ours)

    def look_at_process(self, pid, name, ours):
        """Notes a process of a service by its container or unit, of which the cgroup has the last one last: the host can be a container itself."""
        cgroup = self.read("proc", pid, "cgroup")
        containers = CONTAINER_ID.findall(cgroup)
        unit = UNIT_OF.search(cgroup.rpartition(containers[-1])[2] if containers else cgroup)
        unit = unit.group(1) if unit else ""
        if not cgroup or ours.intersection(containers) or unit and self.is_ours(unit):
            return  # It has ended, or is ours.
        if containers and not unit:
            container = self.container_name(containers[-1], cgroup)
            self.note(PROGRAMS[name], "%s in container %s" % (name, container))
            if container not in self.docker and not any(starter % container in self.units for starter in STARTERS):
                self.loose.append(self.found[-1])
        elif PROGRAMS[name] != "libvirt" and unit not in self.units:
            self.note(PROGRAMS[name], "%s as process %s%s" % (name, pid, " of " + unit if unit else ""), unit)
            self.loose.append(self.found[-1])

    def container_name(self, container, cgroup):
        """Returns the name of a container, its ID if neither podman nor docker knows it."""
        command = ["docker" if "docker" in cgroup else "podman", "container", "inspect", "--format", "{{.Name}}", container]
        path = self.module.get_bin_path(command[0])
        code, out, _ = self.module.run_command([path] + command[1:]) if path else (1, "", "")
        return out.strip().lstrip("/") if code == 0 else container[:12]

    def look_at_guests(self):
        """Notes guests of a libvirt that is not ours: those that run, and those that are defined."""
        running = sorted(os.path.basename(path)[:-len(".pid")] for path in glob.glob(self.path("run/libvirt/qemu/*.pid"))
                         if os.path.basename(path) != "driver.pid" and self.runs(self.read(path).strip()))
        defined = sorted(os.path.basename(path)[:-len(".xml")] for path in glob.glob(self.path("etc/libvirt/qemu/*.xml")))
        self.guests = running
        for names, what in ((running, "running"), (sorted(set(defined) - set(running)), "defined")):
            if names:
                self.note("libvirt", "%d %s guests (%s%s)" % (len(names), what, ", ".join(names[:2]), ", ..." if names[2:] else ""))

    def runs(self, pid):
        return bool(pid) and os.path.isdir(self.path("proc", pid))

    def message(self):
        """Returns why the host is refused, and what to do, in the few words that the status of a host has room for."""
        names = [NAMES[service] for service in ("nova", "libvirt", "ovn", "ovs") if service in self.services]
        more = " and %d more" % (len(self.found) - 1) if self.found[1:] else ""
        return "%s of %s %s on this host: %s%s. Disable it and rerun, or take it over" % (
            " and ".join(names), " and ".join(sorted(self.tools)) or "another tool", "are" if names[1:] else "is", self.found[0], more)


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec={
        "services": dict(type="list", elements="str", choices=["nova", "libvirt", "ovn", "ovs"], required=True),
        "unless": dict(type="list", elements="path", default=[]),
        "refuse": dict(type="bool", default=True),
        "take_over": dict(type="str", choices=[""] + sorted(CONFIGURATION), default=""), "replace": dict(type="bool", default=False),
        "host": dict(type="str", default=""), "hostname": dict(type="str", default=""), "undo": dict(type="path", default="/var/lib/edpm/undo-take-over.sh"),
        "root": dict(type="path", default="/"),
    })
    host = Host(module)
    configured = any(os.path.exists(host.path(path.lstrip("/"))) for path in module.params["unless"])
    units = [] if configured else host.look(module.params["services"])
    result = dict(services=sorted(host.services), units=units, found=host.found, tools=sorted(host.tools), guests=host.guests)
    tool = module.params["take_over"]
    take_over = TakeOver(host, tool) if tool and host.found else None
    why = "" if not host.found or not module.params["refuse"] else take_over.obstacle() if take_over else host.message()
    if why:
        module.fail_json(msg=why, edpm_refused=True, **result)
    if take_over:
        result["kept"] = take_over.kept()
    changes = take_over.replace() if take_over and module.params["replace"] else []
    if changes:
        stopped = dict.fromkeys(line.split()[-1] for line in changes if "stop" in line or "disable" in line)
        result["edpm_note"] = "Taken over from %s, which start with %s: %s" % (tool, module.params["undo"], ", ".join(stopped))
    module.exit_json(changed=bool(changes), changes=changes, **result)


if __name__ == "__main__":
    main()
