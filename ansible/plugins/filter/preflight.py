# -*- coding: utf-8 -*-
"""Filters that say what a host has to reach, and what is wrong with it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import configparser
import re
from urllib.parse import parse_qs, urlsplit

from ansible.module_utils.parsing.convert_bool import BOOLEANS_TRUE

# The oldest Python of hosts with which the collection is tried.
OLDEST_PYTHON = (3, 9)


def address(text, port):
    """Returns (host, port) of the network location of a URL, without its user."""
    host, _, number = text.rpartition("@")[2].rpartition(":") if re.search(r":\d+\Z", text) else (text.rpartition("@")[2], "", "")
    return host.strip("[]"), int(number or port)


def bus(url, secured):
    """Returns the servers of a transport_url of oslo.messaging, which has one default port, with TLS or without (impl_rabbit.py)."""
    parts = urlsplit(url)
    secured = secured or parse_qs(parts.query).get("ssl", ["0"])[-1].lower() in BOOLEANS_TRUE
    locations = [location for location in parts.netloc.split(",") if location]
    return [{"check": "message bus", "host": host, "port": port, "tls": secured} for host, port in (address(l, 5672) for l in locations)]


def web(check, url, path=""):
    """Returns the server of a URL of HTTP."""
    parts = urlsplit(url)
    host, port = address(parts.netloc, 443 if parts.scheme == "https" else 80)
    return {"check": check, "host": host, "port": port, "tls": parts.scheme == "https", "path": path or parts.path or "/"}


def registry(image):
    """Returns the registry of an image; None if the image is local to the host, or has no registry in its name."""
    name, slash, _ = image.partition("/")
    if not slash or name == "localhost" or not re.search(r"[.:]", name):
        return None
    return web("registry", "https://" + name, "/v2/")


def preflight_endpoints(config, images=()):
    """Returns what nova-compute with a configuration reaches, without passwords, and the registries of images."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True, default_section="")
    parser.read_string(config or "")
    found = []
    url = parser.get("DEFAULT", "transport_url", fallback="")
    if url:
        found += bus(url, parser.get("oslo_messaging_rabbit", "ssl", fallback="").lower() in BOOLEANS_TRUE)
    found += [web("keystone", parser.get(section, "auth_url")) for section in parser.sections() if parser.get(section, "auth_url", fallback="")]
    found += [server for server in map(registry, images) if server]
    return [endpoint for number, endpoint in enumerate(found) if endpoint not in found[:number]]


def text_of(result):
    """Returns what a task said, as one line that is not too long for a person."""
    message = str(result.get("msg") or "")
    if not message or message.startswith("non-zero"):
        message = str(result.get("stderr") or "") + str(result.get("stdout") or "") or message
    return re.sub(r"\s+", " ", message).strip()[:300]


def check(name, ok, message, remedy=""):
    return {"check": name, "ok": ok, "message": message, "remedy": "" if ok else remedy}


def login_checks(ssh, sudo, python):
    """Yields the checks of logging in, until one fails."""
    reached = not ssh.get("unreachable") and not ssh.get("failed")
    yield check("ssh", reached, "logged in" if reached else text_of(ssh), "correct ansibleHost, ansiblePort, ansibleUser, the Secret with the key, or jumpHost, or open the port of ssh")
    if not reached:
        return
    became = "" if sudo.get("failed") else str(sudo.get("stdout") or "").strip()
    root = became.split()[-1:] == ["0"]
    yield check("sudo", root, "the user becomes root" if root else "the user does not become root: " + (text_of(sudo) if not became else "its ID is still " + became[:20]),
                "let the user become root: ansible_user ALL=(ALL) NOPASSWD:ALL in /etc/sudoers.d")
    found = re.search(r"Python (\d+)\.(\d+)[.\w]*", str(python.get("stdout") or "") + str(python.get("stderr") or ""))
    recent = found is not None and tuple(map(int, found.groups())) >= OLDEST_PYTHON
    yield check("python", recent, found.group(0) if found else "there is no python3", "install python3 %d.%d or newer, or set ansible_python_interpreter" % OLDEST_PYTHON)


def preflight_report(ssh, sudo, python, module):
    """Returns the checks of a host from the results of the tasks; what was not reached is left out."""
    checks = list(login_checks(ssh or {}, sudo or {}, python or {}))
    found = (module or {}).get("checks")
    if isinstance(found, list):
        return checks + found
    if all(c["ok"] for c in checks):
        checks.append(check("host", False, text_of(module or {}) or "the checks on the host gave no result", "see the output of the run"))
    return checks


def take_over_report(result):
    """Returns what the search for other tools has found in check mode, as checks of kubectl edpm take-over --dry-run."""
    if result.get("unreachable"):
        return [check("ssh", False, text_of(result), "kubectl edpm preflight says more")]
    found = [check("found", True, str(what)) for what in result.get("found") or []]
    if result.get("failed"):
        return found + [check("take-over", False, text_of(result))]
    kept = result.get("kept")
    if not kept:
        return [check("take-over", True, "there is no nova-compute, and no libvirt with guests, of another tool")]
    keeps = [check("keeps", True, text) for text in (
        "host %s in nova" % kept.get("host"), "compute ID %s" % (kept.get("compute_id") or "that nova-compute makes, as there is none"),
        "%s directories of guests, %d guests that run" % (kept.get("instances"), len(kept.get("guests") or [])))]
    return found + keeps + [check("would run", True, str(change)) for change in result.get("changes") or []]


class FilterModule(object):
    def filters(self):
        return {"preflight_endpoints": preflight_endpoints, "preflight_report": preflight_report, "take_over_report": take_over_report}
