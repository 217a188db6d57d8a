#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that checks what a host needs before anything is deployed on it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: preflight
short_description: check what a host needs before anything is deployed on it
description:
  - Looks at the clock, free space, the MTU, names, and whether services and registries can be reached from the host. Nothing is changed.
  - A check that fails does not fail the module.
author:
  - The edpm-operators authors
options:
  now:
    description: Time in seconds since 1970 by which the clock of the host is judged.
    type: float
    required: true
  max_offset:
    description: Seconds that the clock may differ, with what it takes to start the module.
    type: float
    default: 30
  disk:
    description: GiB that have to be free, by directory. The nearest directory that exists counts.
    type: dict
    default: {}
  mtu:
    description: The least MTU of the interface of the default route.
    type: int
    default: 1500
  endpoints:
    description: What has to be reached, each with I(check), I(host), I(port), I(tls), and I(path) where HTTP is spoken.
    type: list
    elements: dict
    default: []
  ca:
    description: Certificates that are trusted in addition to those of the host, as PEM.
    type: str
    default: ""
  timeout:
    description: Seconds that a connection may take.
    type: float
    default: 10
  root:
    description: Directory with the files of the host.
    type: path
    default: /
attributes:
  check_mode:
    description: Changes nothing anyway.
    support: full
"""

EXAMPLES = """
- name: Check the host
  edpm.operators.preflight:
    now: "{{ now().timestamp() }}"
    disk: {/var/lib/containers: 10}
    endpoints: [{check: keystone, host: keystone.example.com, port: 5000, tls: true, path: /v3}]
"""

RETURN = """
checks:
  description: Name of each check, whether it is C(ok), a C(message), and the C(remedy) if it failed.
  type: list
  elements: dict
  returned: always
"""

import os
import re
import socket
import ssl
import time

from ansible.module_utils.basic import AnsibleModule

GIB = 1 << 30


def passed(check, message):
    return {"check": check, "ok": True, "message": message, "remedy": ""}


def failed(check, message, remedy):
    return {"check": check, "ok": False, "message": message, "remedy": remedy}


def check_time(now, max_offset, clock=time.time):
    """Returns whether the clock is right. It is late by the time that it took to get here, and never early."""
    offset = clock() - now
    if abs(offset) <= max_offset:
        return passed("time", "the clock differs by less than %d s" % max_offset)
    return failed("time", "the clock is %d s %s" % (abs(offset), "ahead" if offset > 0 else "behind"),
                  "set edpm_ntp_servers to servers that the host reaches, or start its time service")


def existing(path):
    """Returns the path, or the nearest directory above it that exists."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def check_disk(disk, statvfs=os.statvfs):
    """Returns whether there is enough free space, by directory."""
    few = []
    for path in sorted(disk):
        found = statvfs(existing(path))
        free = found.f_bavail * found.f_frsize
        if free < float(disk[path]) * GIB:
            few.append("%s has %.1f of %s GiB" % (path, free / GIB, disk[path]))
    if few:
        return failed("disk", "too little is free: " + ", ".join(few), "free space there, or mount a larger file system")
    return passed("disk", "enough is free: " + ", ".join("%s GiB in %s" % (disk[path], path) for path in sorted(disk)))


def default_interfaces(root):
    """Returns the interfaces of the default routes of IPv4 and IPv6 (proc(5))."""
    found = set()
    for name, columns in (("route", (0, 1, 7)), ("ipv6_route", (9, 0, 1))):
        try:
            with open(os.path.join(root, "proc/net", name)) as file:
                rows = [line.split() for line in file]
        except (IOError, OSError):
            continue
        for row in rows:
            if len(row) > max(columns) and not row[columns[1]].strip("0") and not row[columns[2]].strip("0"):
                found.add(row[columns[0]])
    return sorted(found - {"lo"})


def check_mtu(mtu, root):
    """Returns whether the MTU of the interfaces of the default routes is large enough."""
    interfaces = default_interfaces(root)
    if not interfaces:
        return failed("mtu", "the host has no default route", "give its network a gateway")
    small = []
    for name in interfaces:
        with open(os.path.join(root, "sys/class/net", name, "mtu")) as file:
            value = int(file.read())
        if value < mtu:
            small.append("%s of %s" % (value, name))
    if small:
        return failed("mtu", "the MTU is %s, and %d is wanted" % (", ".join(small), mtu),
                      "correct the network configuration of the host, or set edpm_preflight_mtu")
    return passed("mtu", "the MTU of %s is at least %d" % (", ".join(interfaces), mtu))


def is_address(host):
    return ":" in host or re.match(r"[0-9.]+\Z", host) is not None


def check_dns(endpoints, resolve=socket.getaddrinfo):
    """Returns whether the host resolves the names of the endpoints."""
    names, unknown = sorted(set(e["host"] for e in endpoints if not is_address(e["host"]))), []
    for name in names:
        try:
            resolve(name, None)
        except (socket.error, UnicodeError) as error:
            unknown.append("%s (%s)" % (name, error.args[-1] if error.args else error))
    if unknown:
        return failed("dns", "the host does not resolve " + ", ".join(unknown), "correct /etc/resolv.conf of the host, or the name where it is configured")
    return passed("dns", "names resolve: " + ", ".join(names) if names else "there is no name to resolve")


class Untrusted(Exception):
    """The other side has a certificate that the host does not accept."""


def connect(endpoint, context, timeout):
    """Returns a connection to an endpoint, by TLS if it has that. Untrusted says what is wrong with its certificate."""
    connection = socket.create_connection((endpoint["host"], int(endpoint["port"])), timeout)
    if not endpoint.get("tls"):
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=endpoint["host"])
    except (ssl.SSLError, ssl.CertificateError) as error:
        connection.close()
        raise Untrusted(getattr(error, "verify_message", "") or getattr(error, "reason", "") or str(error))


def ask(connection, host, path):
    """Returns the status that an HTTP server answers a GET with."""
    connection.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host)).encode("ascii"))
    answer = connection.recv(64)
    found = re.match(br"HTTP/1\.[01] (\d{3})", answer)
    if not found:
        raise socket.error("it does not speak HTTP")
    return int(found.group(1))


def reach(endpoint, context, timeout):
    """Returns why an endpoint cannot be used, empty if it can. Untrusted says what is wrong with its certificate."""
    try:
        connection = connect(endpoint, context, timeout)
        try:
            status = ask(connection, endpoint["host"], endpoint["path"]) if endpoint.get("path") else 0
        finally:
            connection.close()
    except socket.timeout:
        return "no answer within %d s" % timeout
    except (socket.error, UnicodeError) as error:
        return str(error.args[-1] if error.args else error)
    return "it answers with HTTP status %d" % status if status >= 500 else ""


REMEDIES = {
    "message bus": "open the port between the host and the message bus, or correct transport_url in the Secret of the cell",
    "keystone": "open the port between the host and keystone, or correct keystoneAuthURL",
    "registry": "let the host reach the registry, configure a proxy or a mirror, or copy the images to the host",
}


def trusting(ca):
    """Returns a context with the authorities of the host, and those that are given.

    It verifies as nova-compute does, which runs with the Python of its image: py-amqp, and urllib3 before 2.4 or with Python before 3.13,
    set no flags. From Python 3.13 on the default context of the host refuses certificates without an identifier of their authority's key.
    """
    context = ssl.create_default_context()
    context.verify_flags = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).verify_flags
    if ca:
        context.load_verify_locations(cadata=ca)
    return context


def check_endpoints(endpoints, ca, timeout):
    """Returns whether each kind of endpoint can be reached, and whether the certificates of all are trusted."""
    context = trusting(ca)
    failures, untrusted, secured = dict((name, []) for name in REMEDIES), [], False
    for endpoint in endpoints:
        where = "%s:%s" % (endpoint["host"], endpoint["port"])
        try:
            problem = reach(endpoint, context, timeout)
        except Untrusted as error:
            untrusted.append("%s (%s)" % (where, error))
            continue
        secured = secured or bool(endpoint.get("tls")) and not problem
        if problem:
            failures[endpoint["check"]].append("%s (%s)" % (where, problem))
    checks = [judged(name, [e for e in endpoints if e["check"] == name], failures[name]) for name in ("message bus", "keystone", "registry")]
    if untrusted:
        checks.append(failed("tls", "the host does not accept the certificate of " + ", ".join(untrusted),
                             "set caBundleSecretName to certificates with the issuer, or correct the certificate"))
    else:
        checks.append(passed("tls", "certificates are accepted") if secured else skipped("tls", "nothing was reached by TLS"))
    return checks


def skipped(check, message):
    return {"check": check, "ok": None, "message": message, "remedy": ""}


def judged(name, endpoints, failures):
    """Returns the check of one kind of endpoint."""
    if failures:
        return failed(name, "not reached: " + ", ".join(failures), REMEDIES[name])
    if not endpoints:
        return skipped(name, "none is known yet")
    return passed(name, "reached: " + ", ".join("%s:%s" % (e["host"], e["port"]) for e in endpoints))


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        now=dict(type="float", required=True), max_offset=dict(type="float", default=30), disk=dict(type="dict", default={}),
        mtu=dict(type="int", default=1500), endpoints=dict(type="list", elements="dict", default=[]), ca=dict(type="str", default=""),
        timeout=dict(type="float", default=10), root=dict(type="path", default="/"),
    ))
    p = module.params
    checks = [check_time(p["now"], p["max_offset"]), check_disk(p["disk"]), check_mtu(p["mtu"], p["root"]), check_dns(p["endpoints"])]
    module.exit_json(changed=False, checks=checks + check_endpoints(p["endpoints"], p["ca"], p["timeout"]))


if __name__ == "__main__":
    main()
