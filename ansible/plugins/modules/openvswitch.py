#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that sets external ids, bridges and managers of Open vSwitch."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: openvswitch
short_description: external ids, bridges and managers of Open vSwitch
description:
  - Sets external ids of Open vSwitch, by which ovn-controller is configured, and makes bridges. All changes are one transaction.
  - External ids, bridges, ports and managers that are not given are left alone.
author:
  - The edpm-operators authors
options:
  external_ids:
    description: External ids, as name and value. Those with an empty value are removed.
    type: dict
    default: {}
  hostname:
    description: The external id C(hostname). Empty for the name that the host has.
    type: str
  bridges:
    description: Bridges that are to exist.
    type: list
    elements: str
    default: []
  datapath_type:
    description: Type of the datapath of these bridges.
    type: str
    choices: [system, netdev]
    default: system
  managers:
    description: Where the database is to listen, or whom it is to connect to, for example C(ptcp:6640:127.0.0.1).
    type: list
    elements: str
    default: []
  absent_bridges:
    description: Bridges to remove, with all their ports.
    type: list
    elements: str
    default: []
  absent_ports_of:
    description: Ports to remove, whose external ids have one of these names.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that a transaction may take.
    type: int
    default: 60
attributes:
  check_mode:
    description: Reports what would be changed. Without an Open vSwitch that answers that is everything.
    support: full
  diff_mode:
    description: Shows what is changed.
    support: full
"""

EXAMPLES = """
- name: Tell ovn-controller how hosts reach each other
  edpm.operators.openvswitch:
    external_ids: {ovn-encap-type: geneve, ovn-encap-ip: 192.0.2.1}
    bridges: [br-ex]
"""

RETURN = """
changes:
  description: What was changed, such as C(bridge br-ex).
  type: list
  elements: str
  returned: always
external_ids:
  description: All external ids, as they were before.
  type: dict
  returned: always
"""

import json
import platform

from ansible.module_utils.basic import AnsibleModule


class Silent(Exception):
    """Open vSwitch that does not answer."""


def vsctl(module, *arguments):
    """Runs ovs-vsctl, and returns what it printed."""
    command = module.get_bin_path("ovs-vsctl", opt_dirs=["/usr/bin"])
    if not command:
        raise Silent("it has no ovs-vsctl")
    code, out, err = module.run_command([command, "--timeout=%d" % module.params["timeout"]] + list(arguments))
    if code != 0:
        raise Silent(" ".join((err or out).split()))
    return out


def value(cell):
    """Returns what a cell of OVSDB's JSON means: RFC 7047, section 5.1."""
    if isinstance(cell, list) and cell[0] == "map":
        return dict(cell[1])
    if isinstance(cell, list) and cell[0] == "set":
        return [value(each) for each in cell[1]]
    return cell


def rows(module, table, *columns):
    """Returns the rows of a table, one dictionary for each."""
    answer = json.loads(vsctl(module, "--format=json", "--columns=" + ",".join(columns), "list", table))
    return [dict(zip(answer["headings"], map(value, row))) for row in answer["data"]]


class Transaction(object):
    """What has to be changed, as commands of ovs-vsctl and in words."""

    def __init__(self):
        self.commands, self.changes = [], []

    def add(self, change, *command):
        self.changes.append(change)
        self.commands += (["--"] if self.commands else []) + list(command)

    def ids(self, wanted, current):
        """Sets external ids that differ, and removes those without a value."""
        for name in sorted(wanted):
            text = "" if wanted[name] is None else str(wanted[name])
            if text and current.get(name) != text:
                self.add("external id %s" % name, "set", "Open_vSwitch", ".", "external_ids:%s=%s" % (name, json.dumps(text)))
            elif not text and name in current:
                self.add("no external id %s" % name, "remove", "Open_vSwitch", ".", "external_ids", name)

    def bridges(self, wanted, datapath, current):
        for name in wanted:
            if name not in current:
                self.add("bridge %s" % name, "add-br", name, "--", "set", "Bridge", name, "datapath_type=" + datapath)
            elif (current[name] or "system") != datapath:
                self.add("datapath of %s" % name, "set", "Bridge", name, "datapath_type=" + datapath)

    def managers(self, wanted, current):
        for number, target in enumerate(wanted):
            if target not in current:
                self.add("manager %s" % target, "--id=@manager%d" % number, "create", "Manager", "target=%s" % json.dumps(target),
                         "--", "add", "Open_vSwitch", ".", "manager_options", "@manager%d" % number)

    def remove(self, bridges, ports):
        for name in ports:
            self.add("no port %s" % name, "--if-exists", "del-port", name)
        for name in bridges:
            self.add("no bridge %s" % name, "del-br", name)


def ports_with(module, names):
    """Returns the ports whose external ids have one of the names."""
    if not names:
        return []
    return sorted(row["name"] for row in rows(module, "Port", "name", "external_ids") if set(names) & set(row["external_ids"]))


def managers(module, wanted):
    """Returns the managers that are there, if any is wanted."""
    return [row["target"] for row in rows(module, "Manager", "target")] if wanted else []


def plan(module, options):
    """Returns what has to be changed, and the external ids as they are."""
    transaction, ids = Transaction(), rows(module, "Open_vSwitch", "external_ids")[0]["external_ids"]
    bridges = dict((row["name"], row["datapath_type"]) for row in rows(module, "Bridge", "name", "datapath_type"))
    transaction.ids(options["external_ids"], ids)
    transaction.bridges(options["bridges"], options["datapath_type"], bridges)
    transaction.managers(options["managers"], managers(module, options["managers"]))
    transaction.remove([name for name in options["absent_bridges"] if name in bridges], ports_with(module, options["absent_ports_of"]))
    return transaction, ids


def everything(options):
    """Returns what would be changed on a host without Open vSwitch."""
    transaction = Transaction()
    transaction.ids(options["external_ids"], {})
    transaction.bridges(options["bridges"], options["datapath_type"], {})
    transaction.managers(options["managers"], [])
    return transaction, {}


def main():
    names = dict(type="list", elements="str", default=[])
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        external_ids=dict(type="dict", default={}), hostname=dict(type="str"), bridges=names, datapath_type=dict(type="str", choices=["system", "netdev"], default="system"),
        managers=names, absent_bridges=names, absent_ports_of=names, timeout=dict(type="int", default=60)))
    if module.params["hostname"] is not None:
        module.params["external_ids"]["hostname"] = module.params["hostname"] or platform.node()
    try:
        transaction, ids = plan(module, module.params)
        if transaction.commands and not module.check_mode:
            vsctl(module, *transaction.commands)
    except Silent as error:
        if not module.check_mode:
            module.fail_json(msg="Open vSwitch does not answer on this host: %s. See the log of its unit there." % error)
        transaction, ids = everything(module.params)
    module.exit_json(changed=bool(transaction.changes), changes=transaction.changes, external_ids=ids,
                     diff={"prepared": "".join(change + "\n" for change in transaction.changes)})


if __name__ == "__main__":
    main()
