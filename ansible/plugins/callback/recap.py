# -*- coding: utf-8 -*-
"""Writes what became of each host to the termination message of the container."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
    name: recap
    type: aggregate
    short_description: compact recap of a run for each host
    description:
      - Writes one JSON object of at most 4,096 bytes, the size of a termination message of Kubernetes.
      - It reads C({"v":1,"hosts":{"<host>":[ok,changed,failed,unreachable,skipped,"message","host key"]}}).
        The message is there when the host failed, or when the run never reached it; the key when ssh met the host for
        the first time.
      - When it would be too long, messages are cut, then left out. When the counts alone are too long, it reads
        C({"v":1,"z":"<base64 of zlib of the JSON of the hosts>"}). Keys that do not fit are left out; the next run
        meets those hosts anew.
      - Nothing is written when the run is killed.
    options:
      path:
        description: File to write.
        default: /dev/termination-log
        env:
          - name: EDPM_RECAP_PATH
        type: str
      known_hosts:
        description: File to which ssh adds the keys of hosts that it meets.
        default: /runner/.known_hosts
        env:
          - name: EDPM_RUNNER_KNOWN_HOSTS
        type: str
    requirements:
      - enable in configuration (C(callbacks_enabled))
"""

import base64
import json
import re
import unicodedata
import zlib

from ansible.plugins.callback import CallbackBase

MAX_BYTES = 4096
MAX_MESSAGE = 200
# A message cut shorter than this says nothing.
MIN_MESSAGE = 12
NOT_REACHED = "not reached"

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-_])")
# Words of Ansible and ssh that say nothing to those who read the message.
NOISE = (
    re.compile(r"Warning: Permanently added .* to the list of known hosts\.?"),
    re.compile(r"Failed to connect to the host via ssh:"),
    re.compile(r"Data could not be sent to remote host \"[^\"]*\"\. Make sure this host can be reached over ssh:"),
    re.compile(r"Shared connection to \S+ closed\.?"),
    re.compile(r"Connection to \S+ closed\.?"),
)
# What ssh says of a host that shows another key than the known one.
HOST_KEY_CHANGED = re.compile(r"HOST IDENTIFICATION HAS CHANGED.*?(SHA256:\S+?)\.?\s", re.DOTALL)
HOST_KEY_ADVICE = "the host shows another key than it had, %s: if it was installed anew, put its public key in annotation " \
    "edpm.openstack.org/host-key of the node"
VAGUE = ("non-zero return code", "MODULE FAILURE", "One or more items failed", "All items completed")


def clean(text):
    """Returns text as one line without colours and control characters."""
    text = ANSI.sub("", str(text))
    for noise in NOISE:
        text = noise.sub(" ", text)
    text = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    return re.sub(r" +", " ", text).strip()


def shorten(text, limit):
    """Returns at most limit characters of text, with a mark where it was cut."""
    if len(text) <= limit:
        return text
    return text[:max(limit - 1, 0)].rstrip() + "\u2026"


def last_line(text):
    lines = [line for line in str(text or "").splitlines() if clean(line)]
    return lines[-1] if lines else ""


def reason(result):
    """Returns in a few words why a task failed, from its cleaned result."""
    changed = HOST_KEY_CHANGED.search(str(result.get("msg") or ""))
    if changed:
        return HOST_KEY_ADVICE % changed.group(1)
    if "censored" in result or result.get("_ansible_no_log"):
        return "details are hidden because they may hold secrets (no_log)"
    for item in result.get("results") or []:
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            return reason(item)
    message = result.get("msg") or result.get("reason") or result.get("exception") or ""
    if isinstance(message, (list, tuple)):
        message = " ".join(str(part) for part in message)
    message = str(message)
    if not message.strip() or message.startswith(VAGUE):
        detail = last_line(result.get("stderr")) or last_line(result.get("module_stderr")) \
            or last_line(result.get("stdout")) or last_line(result.get("module_stdout"))
        if "rc" in result and message.startswith("non-zero"):
            message = "exit code %s" % result["rc"]
        message = "%s: %s" % (message.splitlines()[0].strip(), detail) if message.strip() and detail else detail or message
    return clean(message) or "no reason given"


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def cut(hosts, limit, keys):
    """Returns hosts with messages of at most limit characters, without any for 0, and the first keys."""
    kept = {}
    for name, entry in hosts.items():
        texts = [shorten(entry[5], limit) if len(entry) > 5 and limit else ""]
        if len(entry) > 6 and keys > 0:
            texts.append(entry[6])
            keys -= 1
        kept[name] = entry[:5] + (texts if any(texts) else [])
    return kept


def plain(hosts):
    return dumps({"v": 1, "hosts": hosts})


def packed(hosts):
    return dumps({"v": 1, "z": base64.b64encode(zlib.compress(dumps(hosts), 9)).decode("ascii")})


def encode(hosts, max_bytes=MAX_BYTES):
    """Returns the recap of hosts as JSON of at most max_bytes bytes.

    hosts maps names to [ok, changed, failed, unreachable, skipped] or the same
    with a message, or with a message and a key. As many keys are kept as fit
    without messages, then the longest messages that fit beside them.
    """
    keys = sum(len(entry) > 6 for entry in hosts.values())
    while keys and len(packed(cut(hosts, 0, keys))) > max_bytes:
        keys -= 1
    for form in (plain, packed):
        for limit in [*range(MAX_MESSAGE, MIN_MESSAGE - 1, -4), 0]:
            data = form(cut(hosts, limit, keys))
            if len(data) <= max_bytes:
                return data
    return dumps({"v": 1, "hosts": {}, "error": "the recap of %d hosts does not fit" % len(hosts)})


def entry(counts, message, key=None):
    """Returns one host's part of the recap from the counts of Ansible."""
    numbers = [counts[name] for name in ("ok", "changed", "failures", "unreachable", "skipped")]
    text = ""
    if counts["failures"] or counts["unreachable"]:
        text = message or "no reason given"
    elif not any(numbers):
        text = NOT_REACHED
    return numbers + ([text, key] if key else [text] if text else [])


def known_hosts(path):
    """Returns the key of each name in a file of known hosts, an empty dict if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.split() for line in file]
    except OSError:
        return {}
    return {name: " ".join(parts[1:3]) for parts in lines if len(parts) > 2 for name in parts[0].split(",")}


def known_as(name, variables):
    """Returns by which name ssh knows a host of the inventory."""
    address = str(variables.get("ansible_host") or name)
    port = str(variables.get("ansible_port") or 22)
    return address if port == "22" else "[%s]:%s" % (address, port)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "edpm.operators.recap"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, display=None):
        super(CallbackModule, self).__init__(display=display)
        self.hosts = {}  # in the order of the plays
        self.messages = {}
        self.known_before = {}
        self.names = {}  # by which ssh knows the hosts

    def v2_playbook_on_start(self, playbook):
        self.known_before = known_hosts(self.get_option("known_hosts"))

    def v2_playbook_on_play_start(self, play):
        variables = play.get_variable_manager().get_vars(play=play)
        names = variables.get("ansible_play_hosts_all", [])
        self.hosts.update((name, None) for name in names)
        self.names.update((name, known_as(name, variables["hostvars"][name])) for name in names)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if not ignore_errors:
            self._remember(result)

    def v2_runner_on_unreachable(self, result):
        # Which task met it first says nothing about an unreachable host.
        self.messages[result._host.get_name()] = shorten(reason(result._result), MAX_MESSAGE)

    def v2_playbook_on_stats(self, stats):
        self.hosts.update((name, None) for name in stats.processed)
        met = known_hosts(self.get_option("known_hosts"))
        recap = {name: entry(stats.summarize(name), self.messages.get(name), self._met(name, met)) for name in self.hosts}
        path = self.get_option("path")
        try:
            with open(path, "wb") as file:
                file.write(encode(recap))
        except OSError as error:
            self._display.warning("The recap cannot be written to %s: %s" % (path, error))

    def _met(self, name, known):
        """Returns the key of a host that ssh met for the first time."""
        name = self.names.get(name)
        return None if name in self.known_before else known.get(name)

    def _remember(self, result):
        message = "%s: %s" % (clean(result.task_name), reason(result._result))
        self.messages[result._host.get_name()] = shorten(message, MAX_MESSAGE)
