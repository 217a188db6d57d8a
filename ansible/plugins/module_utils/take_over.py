# -*- coding: utf-8 -*-
"""Takes a host over from another tool: its services are replaced, and its guests continue."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import glob
import json
import os
import re
import shlex
import shutil

from ansible_collections.edpm.operators.plugins.module_utils.files import store_file_system, write

# What the tools configure nova-compute with, in the order in which it is read: the options decide by which name nova knows the host. Kolla-ansible
# has nova.conf in node_config_directory, edpm-ansible has files in edpm_nova_config_dest, which was config/nova until 2025.
CONFIGURATION = {
    "packages": ("usr/share/nova/nova-dist.conf", "etc/nova/nova.conf", "etc/nova/nova-compute.conf"),
    "kolla-ansible": ("etc/kolla/nova-compute/nova.conf",),
    "edpm-ansible": ("var/lib/openstack/config/nova/*nova*.conf", "var/lib/openstack/nova/*nova*.conf"),
}
# The units that a tool has for a container.
UNITS_OF = {"kolla-ansible": ("kolla-%s-container.service", "container-%s.service"), "edpm-ansible": ("edpm_%s.service",)}
# What is stopped with nova-compute: a server of SSH for cold migration, by which other hosts reach the directories of guests.
COMPANIONS = {"kolla-ansible": ("nova_ssh",)}
# The values that do not differ from ours.
EXPECTED = {"state_path": ("/var/lib/nova",), "instances_path": ("/var/lib/nova/instances", "$state_path/instances", "${state_path}/instances")}
# Directories that kolla-ansible has in volumes of its containers.
VOLUMES = (("nova_compute", "/var/lib/nova"), ("nova_libvirt", "/var/lib/libvirt"), ("nova_libvirt", "/etc/libvirt/qemu"))
ENGINES = ("podman", "docker")
# Of packages of libvirt: what listens for clients, what runs, and what shuts guests down with the host.
LIBVIRT = ("libvirtd*.socket", "virt*d*.socket", "libvirtd.service", "virt*d.service", "libvirt-guests.service")
GUESTS = LIBVIRT[-1]
# The same of edpm-ansible. The role edpm_libvirt would take it for a daemon of ours and stop it; without its file systemd stops nothing.
GUESTS_OF_EDPM = "etc/systemd/system/edpm_libvirt_guests.service"
# Files of edpm-ansible for which steps of ours have others.
REPLACED = ("etc/systemd/system/edpm_nova_compute.service", "etc/systemd/system/virt-guest-shutdown.target", "var/lib/openstack/nova")
QUADLETS = "etc/containers/systemd"
# The step nova gives files to the user of its image, and the file with the ID of the compute last.
OWNER = """\
owner=$(stat --format %u /var/lib/nova/compute_id)
[ "$owner" = {user} ] || chown --recursive --no-dereference --from="$owner" {user}:{group} /var/lib/nova
"""
MOUNT = """\
# Written by the module edpm.operators.foreign_services: files of the tool that this host was taken over from.
[Unit]
Description={where} of {tool}
[Mount]
What={what}
Where={where}
Type=none
Options=bind
LazyUnmount=yes
[Install]
WantedBy=local-fs.target
"""
UNDO = """\
#!/bin/sh
# Written by the module edpm.operators.foreign_services: gives this host back to the services that it was taken over from. Guests continue.
# Delete the node without clean-up first, or its next run stops them again.
cd /etc/systemd/system || exit 1
for unit in edpm-health-nova_compute.timer edpm_nova_compute.service edpm-health-libvirt_*.timer edpm_libvirt_*.service; do
  head -n 1 "$unit" 2>/dev/null | grep -q '^# Written by the role edpm.operators.' || continue
  systemctl disable --now "$unit"
  # A daemon of libvirt that is still busy after 30 seconds ends with status 1.
  ! systemctl --quiet is-failed "$unit" || systemctl reset-failed "$unit"
done
systemctl disable --now edpm-libvirt-guests.service
# A libvirt does not know guests whose state a newer one has written.
for file in {guests}/*.xml; do
  name=$(basename "$file" .xml)
  pid=$(cat "/run/libvirt/qemu/$name.pid" 2>/dev/null) && grep -q "<domstatus [^>]*pid='$pid'" "$file" && cp -p "$file" /run/libvirt/qemu/
done
"""


class TakeOver(object):
    """The take-over of a host, which a search for services of other tools has looked at."""

    def __init__(self, host, tool):
        self.host, self.tool, self.module = host, tool, host.module
        self.containers = {}

    def obstacle(self):
        """Returns why the host cannot be taken over, nothing if it can. It has to stay the same one in nova."""
        others = self.host.loose + [what for name, (_, what) in sorted(self.host.units.items()) if not self.host.belongs(name, self.tool)]
        others += [] if self.tool == "kolla-ansible" else ["container " + name for name in sorted(self.host.docker)]
        if others:
            return "Cannot be taken over from %s: %s" % (self.tool, others[0])
        # Guests have their network from it; ovn-controller removes its host from the south bound database when it stops.
        network = [name for service, name in (("ovn", "OVN"), ("ovs", "neutron-openvswitch-agent")) if service in self.host.services]
        if network and self.module.params["replace"]:
            return "%s of %s cannot be taken over: %s. Disable it and rerun" % (network[0], self.tool, self.host.found[0])
        return self.obstacle_of_name() or (self.obstacle_of_containers() if self.tool == "kolla-ansible" else "")

    def obstacle_of_name(self):
        """Returns what differs in the options that make the host the one that nova knows."""
        options = self.options()
        before, name = self.name(options), self.module.params["host"] or self.module.params["hostname"] or os.uname()[1]
        if name != before:
            return "The host is %s in nova and would be %s. Correct edpm_nova_host or edpm_hostname in ansibleVars" % (before, name)
        for option, values in sorted(EXPECTED.items()):
            if options.get(option, values[0]).rstrip("/") not in values:
                return "Cannot be taken over: %s of %s is %s, and guests have to be in %s" % (option, self.tool, options[option], EXPECTED["instances_path"][0])
        return ""

    def obstacle_of_containers(self):
        """Returns what keeps guests from outliving containers, or from being where ours look for them."""
        for container in ("nova_compute", "nova_libvirt"):
            if self.expects(container) and not self.container(container):
                return "Cannot be taken over: neither podman nor docker shows container %s, whose volumes have the guests" % container
        ident = (self.container("nova_libvirt") or {}).get("id")
        for name in self.host.guests:
            if ident and ident in self.host.read("proc", self.host.read("run/libvirt/qemu", name + ".pid").strip(), "cgroup"):
                return "Cannot be taken over: guest %s would end with container nova_libvirt, in whose cgroup it is. Migrate or stop it" % name
        for _, where in self.mounts():
            hidden = self.first_file(where) if where == "/var/lib/nova" else ""
            if hidden:
                return "Cannot be taken over: %s would be hidden by the volume of nova_compute. Move it away" % hidden
        return ""

    def name(self, options):
        """Returns the name of the host in nova."""
        return options.get("host") or os.uname()[1]

    def options(self):
        """Returns the options of the section DEFAULT that nova-compute of the tool reads."""
        found = {}
        for path in [path for pattern in CONFIGURATION[self.tool] for path in sorted(glob.glob(self.host.path(pattern)))]:
            section = "DEFAULT"
            for line in self.host.read(path).splitlines():
                header, option = re.match(r"\[(.*)\]", line), re.match(r"(\w+)\s*=\s*(.*?)\s*\Z", line)
                section = header.group(1) if header else section
                if option and section == "DEFAULT":
                    found[option.group(1)] = option.group(2)
        return found

    def expects(self, container):
        """Reports whether the tool runs a container here."""
        return container in self.host.docker or any(unit % container in self.host.units for unit in UNITS_OF.get(self.tool, ()))

    def container(self, name):
        """Returns the ID of a container of the tool, its engine, and its mounts by where they are in it. Nothing of one that is not there."""
        if name not in self.containers:
            self.containers[name] = next(filter(None, (self.inspect(engine, name) for engine in ENGINES)), None)
        return self.containers[name]

    def inspect(self, engine, name):
        path = self.module.get_bin_path(engine)
        code, out, _ = self.module.run_command([path, "container", "inspect", name]) if path else (1, "", "")
        try:
            found = json.loads(out)[0] if code == 0 else None
            return found and {"engine": path, "id": found["Id"], "mounts": dict((m["Destination"].rstrip("/"), m["Source"]) for m in found["Mounts"])}
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            return None

    def mounts(self):
        """Returns (directory of a volume, where ours look for it) of those that are elsewhere on the host."""
        found = []
        for container, where in VOLUMES if self.tool == "kolla-ansible" else ():
            what = (self.container(container) or {}).get("mounts", {}).get(where, where)
            here = self.host.path(where.lstrip("/"))
            if what != where and not (os.path.exists(here) and os.path.samefile(self.host.path(what.lstrip("/")), here)):
                found.append((what, where))
        return found

    def first_file(self, directory):
        """Returns the first file in a directory, nothing if it has none."""
        for found, _, names in os.walk(self.host.path(directory.lstrip("/"))):
            if names:
                return os.path.join(directory, os.path.relpath(os.path.join(found, names[0]), self.host.path(directory.lstrip("/"))))
        return ""

    def directory(self):
        """Returns what nova-compute of the tool has in /var/lib/nova."""
        return self.host.path(dict((where, what) for what, where in self.mounts()).get("/var/lib/nova", "/var/lib/nova").lstrip("/"))

    def kept(self):
        """Returns what stays as it is."""
        directory = self.directory()
        return {"host": self.name(self.options()), "compute_id": self.host.read(directory, "compute_id").strip(),
                "instances": len(glob.glob(os.path.join(directory, "instances", "????????-????-????-????-????????????"))), "guests": self.host.guests}

    def replace(self):
        """Stops and disables what the tool runs, nova-compute before what it needs, and returns what was done. A run that ended early is continued by the next one."""
        names = sorted(self.host.units, key=lambda name: (("nova", "libvirt").index(self.host.units[name][0]), name))
        stopped = [self.stop_unit(name) for name in self.companions() + names] + [self.stop_container(name) for name in sorted(self.host.docker)]
        libvirt = self.libvirt_of_packages() if "libvirt" in self.module.params["services"] else []
        # Stopped, it would shut guests down.
        stopped += [([["systemctl", "disable", name]], [["systemctl", "enable", name]]) for name in libvirt if name == GUESTS]
        mounts = self.mounts()
        removed = [path for path in self.removed(names) if os.path.exists(self.host.path(path))]
        changes = [["systemctl", "enable", "--now", unit_of(where)] for _, where in mounts] + [command for do, _ in stopped for command in do]
        changes += [["rm", "/" + path] for path in removed]
        if changes and not self.module.check_mode:
            self.note_how_to_undo(stopped, removed, [name for name in libvirt if name != GUESTS])
            self.write_units(mounts, [name for name in names if self.tool == "kolla-ansible" and self.host.units[name][0] == "libvirt"])
            for change in changes:
                self.module.run_command(change, check_rc=True)
            if removed:
                self.module.run_command(["systemctl", "daemon-reload"], check_rc=True)
        return [" ".join(change) for change in changes]

    def companions(self):
        """Returns units that are stopped with nova-compute."""
        units = [unit % name for name in COMPANIONS.get(self.tool, ()) for unit in UNITS_OF[self.tool]]
        present = [unit for unit in units if unit in self.host.unit_files()]
        return [name for name, state, starts in self.host.states(present) if state == "active" or starts]

    def stop_unit(self, name):
        """Returns commands that stop a unit, and have it not start at boot, and those that undo it. The file of one that is generated is removed."""
        if name in self.host.generated:
            return [["systemctl", "stop", name]], [["systemctl", "start", name]]
        return [["systemctl", "disable", "--now", name]], [["systemctl", "enable", "--now", name]]

    def stop_container(self, name):
        """Returns the same of a container that docker starts at boot."""
        if any(unit % name in self.host.units for unit in UNITS_OF[self.tool]):
            return [], []
        docker = self.container(name)["engine"]
        return ([[docker, "update", "--restart=no", name], [docker, "stop", name]],
                [[docker, "update", "--restart=unless-stopped", name], [docker, "start", name]])

    def removed(self, names):
        """Returns files of edpm-ansible that would start services again, or shut guests down, which it can have left behind."""
        files = [os.path.join(QUADLETS, name[:-len(".service")] + ".container") for name in names if name in self.host.generated]
        ours = "libvirt" not in self.module.params["services"] or self.host.is_ours(os.path.basename(GUESTS_OF_EDPM))
        return files + ([] if ours else [GUESTS_OF_EDPM])

    def write_units(self, mounts, libvirt):
        """Writes units that mount volumes, and has systemd not wait for the end of guests, which are children of the monitor of podman, when libvirt stops."""
        for what, where in mounts:
            write(self.module, self.host.path("etc/systemd/system", unit_of(where)), MOUNT.format(tool=self.tool, what=what.replace("%", "%%"), where=where))
        for name in libvirt:
            write(self.module, self.host.path("run/systemd/system", name + ".d", "edpm.conf"), "[Service]\nKillMode=process\n")
        if mounts or libvirt:
            self.module.run_command(["systemctl", "daemon-reload"], check_rc=True)

    def libvirt_of_packages(self):
        """Returns the units of libvirt that start at boot. But for that of guests, the role edpm_libvirt stops and disables them."""
        names = [name for pattern in LIBVIRT for name in self.host.unit_files(pattern) if not self.host.is_ours(name) and name not in self.host.units]
        return [name for name, _, starts in self.host.states(names) if starts]

    def note_how_to_undo(self, stopped, removed, libvirt):
        """Writes the script before anything is stopped, with copies of what libvirt knows of guests: libvirt starts first, and nova-compute last."""
        name = self.module.params["undo"]
        undo = self.host.path(name.lstrip("/"))
        again = self.host.read(undo) or UNDO.replace("{guests}", name + ".guests") + self.owner()
        self.keep(undo + ".guests", glob.glob(self.host.path("run/libvirt/qemu/*.xml")))
        commands = [["systemctl", "disable", "--now", unit_of(where)] for _, where in self.mounts()]
        replaced = list(REPLACED if self.tool == "edpm-ansible" else ())
        commands += [["rm", "--recursive", "--force", "/" + path] for path in replaced]
        for path in replaced + removed:
            if os.path.exists(self.host.path(path)):
                copy = path.replace("/", "+")
                self.keep(undo + ".files", [self.host.path(path)], copy)
                commands.append(["cp", "--archive", "--no-target-directory", os.path.join(name + ".files", copy), "/" + path])
        commands += [["systemctl", "daemon-reload"]] if replaced or removed else []
        commands += [["systemctl", "enable", "--now", unit] for unit in libvirt] + [command for _, back in reversed(stopped) for command in back]
        lines = ["%s\n" % " ".join(map(shlex.quote, command)) for command in commands]
        write(self.module, undo, again + "".join(line for line in lines if line not in again), 0o700)

    def owner(self):
        """Returns how files of nova-compute are given back to their user."""
        path = os.path.join(self.directory(), "compute_id")
        found = os.stat(path) if os.path.exists(path) else None
        return OWNER.format(user=found.st_uid, group=found.st_gid) if found else ""

    def keep(self, directory, paths, name=""):
        """Copies files and directories into a directory, unless that has them. A copy with its name is complete, also after a loss of power."""
        if not os.path.isdir(directory):
            os.makedirs(directory, 0o700)
        copies = [(path, os.path.join(directory, name or os.path.basename(path))) for path in paths]
        missing = [(path, copy) for path, copy in copies if not os.path.exists(copy)]
        for path, copy in missing:
            shutil.rmtree(copy + ".new", ignore_errors=True)
            (shutil.copytree if os.path.isdir(path) else shutil.copy2)(path, copy + ".new")
        if missing:
            store_file_system(self.module, directory)
        for _, copy in missing:
            os.rename(copy + ".new", copy)


def unit_of(where):
    """Returns the name of the unit that mounts a directory, whose name has no character that systemd escapes."""
    return where.strip("/").replace("/", "-") + ".mount"
