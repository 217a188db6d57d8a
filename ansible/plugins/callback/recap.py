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
      - It reads C({"v":1,"steps":1,"hosts":{"<host>":[ok,changed,failed,unreachable,skipped,"message","host key",done,
        connected,begun,refused,differences,occupied]}}).
        The message is there when the host failed or did not reach the end, or when a module returned C(edpm_note), what
        a person has to know of a host that is well; the key when ssh met the host for
        the first time. C(steps) is the number of steps of the run, and C(done) how many of them the host has done. Where
        it is missing, a host without failure has done all, and another one none. C(connected) is 0 when ssh
        never logged in to the host, so that nothing ran on it. C(begun) is the number of the last step in which a
        task ran on the host, if that is not the one after those that it has done. C(refused) is 1 when the task that failed
        returned C(edpm_refused), as the same inputs lead to the same failure each time. C(differences) are there in check
        mode, a C([step,"task","name",...]) for each task that would change the host, by the number of its step, with the names of
        files, units or containers as far as the task says them, and C([step,n]) for C(n) more. They never have contents.
        C(occupied) is 1 when the task that failed has the variable C(edpm_needs) with the value C(drained), as it needs a host without guests.
      - A host has done a step if Ansible kept it until the last play of the step was over. Hosts that only stood by when a play
        was aborted (C(any_errors_fatal), C(max_fail_percentage), a failed C(run_once) task or batch) have not.
        Hosts that the meta tasks C(end_host) or C(end_play) sent to the end of a play that they had begun have.
      - When it would be too long, differences are counted instead of named, for each step, and messages are cut, then left out. When the counts alone
        are too long, it reads
        C({"v":1,"steps":1,"z":"<base64 of zlib of the JSON of the hosts>"}). Keys that do not fit are left out; the next run
        meets those hosts again.
      - Nothing is written when the run is killed.
      - The playbook of a run of several steps imports theirs, each with its number, from 1, in the variable
        C(edpm_step_number). Unless there are as many as I(steps) they count as one, which is done or not.
    options:
      steps:
        description: Number of steps of the run.
        default: 1
        env:
          - name: EDPM_RUN_STEPS
        type: int
      connected:
        description: File to which ssh adds a line with the address of each host that it has logged in to.
        default: /runner/.connected
        env:
          - name: EDPM_RUNNER_CONNECTED
        type: str
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
      jump_host:
        description: Address of the host through which all others are reached; empty if they are reached directly.
        default: ""
        env:
          - name: EDPM_RUNNER_JUMP_HOST
        type: str
    requirements:
      - enable in configuration (C(callbacks_enabled))
"""

import base64
import json
import re
import unicodedata
import zlib

from ansible import constants, context
from ansible.playbook.play import Play
from ansible.plugins.callback import CallbackBase

MAX_BYTES = 4096
MAX_MESSAGE = 200
# As much of a text as is looked at: a host may print as much as it likes.
MAX_TEXT = 4096
# A message cut shorter than this says nothing.
MIN_MESSAGE = 12
# Where an entry has its differences.
DIFFERENCES = 11
# The most differences that are named of a host, of one of its steps, and names of one of them.
MAX_DIFFERENCES, MAX_OF_STEP, MAX_NAMES = 40, 8, 3
MAX_TASK, MAX_NAME = 80, 100
# What a name may be: of a file, a unit, a container or an image. Anything else a host may have made up.
NAME = re.compile(r"[A-Za-z0-9/_][A-Za-z0-9/_.:@+~-]{0,%d}" % (MAX_NAME - 1))
UNIT = re.compile(r"^/|[.](?:service|socket|timer|target|mount|path|slice)$")
NOT_REACHED = "not reached"
ABORTED = "the play ended before this host was through, because other hosts failed"
IDLE = "no task of the step ran on this host"
# How ssh and its connection plugin say that they could not log in, with the address that they used.
NO_LOGIN = (
    re.compile(r"Data could not be sent to remote host \"([^\"]+)\""),
    re.compile(r"ssh: connect to host (\S+) port "),
    re.compile(r"ssh: Could not resolve hostname (\S+?):?\s"),
    re.compile(r"@(\S+): Permission denied \("),
    re.compile(r"Host key for \[?([^\s\]]+)\S* has changed"),
)

# What ssh says where the way to a host leads through a jump host, which it calls jump-host: the
# ssh to the host itself connects to nothing, and does not know the address of its peer. First match wins.
JUMP_KEY = re.compile(r"Host key for jump-host has changed|host key is known for jump-host")
JUMP_FORWARD = re.compile(r"open failed: ([^\n]+)\n|[Ss]tdio forwarding request failed: ([^\n]+)")
JUMP_LOGIN = re.compile(r"ssh: (connect to host [^\n]+|Could not resolve hostname [^\n]+)|@\S+: (Permission denied \([^\n)]*\))")
UNKNOWN_PEER = "UNKNOWN port 65535"

# The address in the name by which ssh knows a host.
ADDRESS = re.compile(r"\[?([^\]]*)")

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-_])")
# Words of Ansible and ssh that say nothing to those who read the message.
NOISE = (
    re.compile(r"Warning: Permanently added .* to the list of known hosts\.?"),
    re.compile(r"Failed to connect to the host via ssh:"),
    re.compile(r"Data could not be sent to remote host \"[^\"]*\"\. Make sure this host can be reached over ssh:"),
    re.compile(r"Shared connection to \S+ closed\.?"),
    re.compile(r"Connection to \S+ closed\.?"),
)
FINGERPRINT = re.compile(r"(SHA256:[A-Za-z0-9+/]+)")
# What ssh says of a host that shows another key than the known one.
HOST_KEY_CHANGED = re.compile(r"HOST IDENTIFICATION HAS CHANGED.*?(SHA256:\S+?)\.?\s", re.DOTALL)
HOST_KEY_ADVICE = "the host shows another key than it had, %s: if it was reinstalled, put its public key in annotation " \
    "edpm.openstack.org/host-key of the node"
VAGUE = ("non-zero return code", "MODULE FAILURE", "Module result deserialization failed", "One or more items failed", "All items completed")
# What Python says of a disk to which it cannot write.
NO_DIRECTORY = re.compile(r"No usable temporary directory found in .*")


def clean(text):
    """Returns text as one line without colours and control characters."""
    text = ANSI.sub("", str(text)[:MAX_TEXT])
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
    """Returns the last line that says something."""
    printed = [line for line in str(text or "")[-MAX_TEXT:].splitlines() if clean(line)]
    return printed[-1] if printed else ""


def reason(result):
    """Returns in a few words why a task failed, from its cleaned result."""
    changed = HOST_KEY_CHANGED.search(str(result.get("msg") or "")[:MAX_TEXT])
    if changed:
        return HOST_KEY_ADVICE % changed.group(1)
    if "censored" in result or result.get("_ansible_no_log"):
        return "details are hidden because they may hold secrets (no_log)"
    items = result.get("results")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            return reason(dict(item, results=None))
    message = result.get("msg") or result.get("reason") or last_line(result.get("exception")) or ""
    if isinstance(message, (list, tuple)):
        message = " ".join(str(part)[:MAX_TEXT] for part in message[:MAX_MESSAGE])
    message = str(message)[:MAX_TEXT]
    if not message.strip() or message.startswith(VAGUE):
        detail = last_line(result.get("stderr")) or last_line(result.get("module_stderr")) \
            or last_line(result.get("stdout")) or last_line(result.get("module_stdout"))
        if "rc" in result and message.startswith("non-zero"):
            message = "exit code %s" % result["rc"]
        message = "%s: %s" % (message.splitlines()[0].strip(), detail) if message.strip() and detail else detail or message
    unwritable = NO_DIRECTORY.search(message)
    if unwritable:
        message = "the disk of the host is full or read-only, see df and mount there: " + unwritable.group()
    return clean(message) or "no reason given"


def jump_reason(message, jump):
    """Returns why a host could not be reached through a jump host and which of the two is the cause, None if it was reached."""
    if JUMP_KEY.search(message):
        shown = FINGERPRINT.search(message)
        return "jump host %s shows another key than its hostKey says%s: correct jumpHost.hostKey if it was reinstalled" % (
            jump, ", " + shown.group(1) if shown else "")
    refused = JUMP_FORWARD.search(message)
    if refused:
        return "jump host %s was reached, but does not connect to the host (%s): check that it is up, its address and port, and that " \
            "the jump host forwards (AllowTcpForwarding)" % (jump, clean(refused.group(1) or refused.group(2)))
    login = JUMP_LOGIN.search(message)
    if login and UNKNOWN_PEER in message:
        return "jump host %s: %s" % (jump, clean(login.group(1) or login.group(2) + ": check user and key of jumpHost"))
    return "no answer through jump host %s: %s" % (jump, reason({"msg": message})) if UNKNOWN_PEER in message else None


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def cut(hosts, limit, keys):
    """Returns hosts with messages of at most limit characters, without any for 0, and the first keys."""
    kept = {}
    for name, entry in hosts.items():
        message, key, rest = (entry[5:7] + ["", ""])[:2] + [entry[7:]]
        if key:
            key, keys = (key if keys > 0 else ""), keys - 1
        kept[name] = entry[:5] + [shorten(message, limit) if limit else "", key] + rest
        while kept[name][-1] == "":
            kept[name].pop()
    return kept


def plain(hosts, steps):
    return dumps({"v": 1, "steps": steps, "hosts": hosts})


def packed(hosts, steps):
    return dumps({"v": 1, "steps": steps, "z": base64.b64encode(zlib.compress(dumps(hosts), 9)).decode("ascii")})


def named(differences, most):
    """Returns differences with at most so many named of each step, and the number of the others."""
    steps = {}
    for difference in differences:
        steps.setdefault(difference[0], []).append(difference)
    most = min(most, max(MAX_DIFFERENCES // max(len(steps), 1), 1))
    kept = []
    for step, found in steps.items():
        kept += found[:most]
        if len(found) > most:
            kept.append([step, len(found) - most])
    return kept


def fewer(hosts, most):
    """Returns hosts with at most so many differences of each step named."""
    return {name: entry[:DIFFERENCES] + [named(entry[DIFFERENCES], most)] + entry[DIFFERENCES + 1:] if len(entry) > DIFFERENCES else entry for name, entry in hosts.items()}


def encode(hosts, steps=1, max_bytes=MAX_BYTES):
    """Returns the recap of hosts as JSON of at most max_bytes bytes.

    Where not even the counts fit they say only whether there was any.

    hosts maps names to [ok, changed, failed, unreachable, skipped, message, key,
    done, connected, begun, refused, differences, occupied]; what is missing at the end is left out. As many differences are named as
    fit alone, and as many keys kept as fit without messages, then the longest messages for which there is room.
    """
    for most in (MAX_OF_STEP, 4, 2, 1, 0):
        bounded = fewer(hosts, most)
        if len(packed(cut(bounded, 0, 0), steps)) <= max_bytes:
            break
    hosts = bounded
    keys = sum(bool(entry[6:7] and entry[6]) for entry in hosts.values())
    while keys and len(packed(cut(hosts, 0, keys), steps)) > max_bytes:
        keys -= 1
    for form in (plain, packed):
        for limit in [*range(MAX_MESSAGE, MIN_MESSAGE - 1, -4), 0]:
            data = form(cut(hosts, limit, keys), steps)
            if len(data) <= max_bytes:
                return data
    data = packed(cut({name: [min(count, 1) for count in entry[:5]] + entry[5:] for name, entry in hosts.items()}, 0, 0), steps)
    if len(data) <= max_bytes:
        return data
    return dumps({"v": 1, "hosts": {}, "error": "the recap of %d hosts does not fit" % len(hosts)})


def entry(counts, message, key=None, done=1, connected=True, begun=0, steps=1, idle=False, note="", refused=False, differences=None,
          occupied=False):
    """Returns one host's part of the recap from the counts of Ansible and of steps."""
    numbers = [counts[name] for name in ("ok", "changed", "failures", "unreachable", "skipped")]
    failed = bool(counts["failures"] or counts["unreachable"])
    text = note
    if failed:
        text = message or "no reason given"
    elif not any(numbers):
        text = NOT_REACHED
    elif done < steps:
        text = IDLE if idle else ABORTED
    rest = [text, key or ""]
    if differences or occupied and failed:
        rest += [done, int(connected), begun if begun > done + 1 else None, int(refused and failed), differences or []] + [1] * (occupied and failed)
    elif refused and failed:
        rest += [done, int(connected), max(begun, done + 1), 1]
    elif begun > done + 1:
        rest += [done, int(connected), begun]
    elif not connected:
        rest += [done, 0]
    elif done != (0 if failed else steps):
        rest += [done]
    while rest and rest[-1] == "":
        rest.pop()
    return numbers + rest


def names_of(result, arguments):
    """Returns the names of what a task would change: those that its module reports, else those that it was given."""
    if "censored" in result or result.get("_ansible_no_log"):
        return []
    names = []
    changes, items = result.get("changes"), result.get("results")
    for change in changes if isinstance(changes, list) else []:
        name, colon, _ = str(change)[:MAX_TEXT].partition(": ")
        # Others say what is done to which unit, at the end.
        names += [name.strip()] if colon else [word for word in name.split()[-1:] if UNIT.search(word)]
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and item.get("changed"):
            invocation = item.get("invocation")
            names += names_of(dict(item, results=None), (invocation or {}).get("module_args") if isinstance(invocation, dict) else None)
    if not names:
        names = [values.get(key) for values in (result, arguments) if isinstance(values, dict) for key in ("path", "dest")]
    found = list(dict.fromkeys(name for name in names if isinstance(name, str) and NAME.fullmatch(name)))
    return found[:MAX_NAMES]


def lines(path):
    """Returns the words of each line of a file, nothing if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.split() for line in file]
    except OSError:
        return []


def no_login(message):
    """Returns the address at which ssh could not log in, None if it says something else."""
    found = [match for match in (pattern.search(message) for pattern in NO_LOGIN) if match]
    return found[0].group(1) if found else None


def known_hosts(path):
    """Returns the key of each name in a file of known hosts, an empty dict if there is none."""
    return {name: " ".join(parts[1:3]) for parts in lines(path) if len(parts) > 2 for name in parts[0].split(",")}


def known_as(name, variables):
    """Returns by which name ssh knows a host of the inventory. Ansible prefers the older names of the variables."""
    address = str(variables.get("ansible_ssh_host") or variables.get("ansible_host") or name)
    port = str(variables.get("ansible_ssh_port") or variables.get("ansible_port") or 22)
    return address if port == "22" else "[%s]:%s" % (address, port)


def variables_of(play):
    return play.get_variable_manager().get_vars(play=play)


def last_plays(playbook, steps):
    """Returns the last play of each step, only the last of all if there are not as many steps."""
    plays = playbook.get_plays()
    if steps == 1:
        return plays[-1:]
    numbers = [play.vars.get("edpm_step_number") for play in plays]
    last = [play for play, number, after in zip(plays, numbers, numbers[1:] + [None]) if number != after]
    return last if len(last) == steps else plays[-1:]


class End:
    """Which hosts have reached the end of a step: of its last play.

    An empty play of ours follows the last play of the step. Ansible starts it only if
    it did not abort the playbook, and keeps out of it whom it has given up. That
    holds for every way to end a play, and asks nothing of the hosts.
    """

    def __init__(self, playbook, last):
        self.last = last._uuid
        step = last.vars.get("edpm_step")  # of a run of several
        self.play = Play.load({"name": "End of step %s" % step if step else "Reach the end", "hosts": ["all"], "gather_facts": False},
                              variable_manager=last.get_variable_manager(), loader=playbook._loader)
        playbook._entries.insert(playbook._entries.index(last) + 1, self.play)
        self.reached = None  # our play as it runs
        self.before = None  # the play as it ran for the batch before
        self.batch = set()  # the hosts of that batch
        self.waiting = set()  # hosts of the play whose batch has not begun
        self.missed = set()  # hosts whose batch of some play never began (meta: end_play)
        self.early = set()  # hosts of batches of the last play that are over

    def start(self, play, variables):
        """Notes that a play starts for a batch of its hosts; returns whether it is ours."""
        if play._uuid == self.play._uuid:
            self.reached, self.missed = play, self.missed | self.waiting
            return True
        hosts = variables.get("ansible_play_hosts_all", [])
        # Ansible itself, where no inventory has it: it is in no batch and not in "all".
        itself = [name for name in hosts if name in constants.LOCALHOST]
        if self.before is None or self.before._uuid != play._uuid:
            self.missed |= self.waiting
            self.waiting = set(hosts)
        elif play._uuid == self.last and self.batch <= self.kept(self.before):
            # If one of them had failed, the play might have been aborted for all.
            self.early |= self.batch
        self.before, self.batch = play, {*variables.get("ansible_play_batch", []), *itself}
        self.waiting -= self.batch
        # "all" comes last: Ansible caches the hosts of a play by its patterns and restrictions in one list.
        self.play.hosts = [name for name in itself if name not in self.play.hosts] + self.play.hosts
        return False

    @staticmethod
    def kept(play):
        """Returns the hosts of a play that Ansible has not given up."""
        return set(variables_of(play)["ansible_play_hosts"])

    def hosts(self):
        """Returns the hosts that have reached the end, at the end of the run."""
        return (self.early | (self.kept(self.reached) if self.reached else set())) - self.missed


class Progress:
    """How far each host has come in the steps of a run."""

    def __init__(self, playbook, steps):
        self.steps = steps
        self.ends = [End(playbook, last) for last in last_plays(playbook, steps)]
        self.current = 0  # index of the step that is under way
        self.begun = {}  # number of the last step in which a task ran, by host
        self.worked = set()  # (step, host) where a task went well
        self.failed = {}  # index of the first step in which a task failed, by host
        self.idle = set()  # hosts that reached the end of a step without a task of it

    def start(self, play, variables):
        """Notes that a play starts for a batch of its hosts; returns whether it is ours."""
        if not self.ends[min(self.current, len(self.ends) - 1)].start(play, variables):
            return False
        self.current += 1
        return True

    def ran(self, name, well):
        """Notes that a task ran on a host."""
        self.begun[name] = self.current + 1 if len(self.ends) == self.steps else self.steps
        if well:
            self.worked.add((self.current, name))
        else:
            self.failed.setdefault(name, self.current)

    def done(self, failures):
        """Returns how many steps each host has done, given those that have failed in the end.

        A host that fails may be rescued, or be taken back later (meta: clear_host_errors): it
        has done the steps before its first failure.
        """
        reached = [end.hosts() for end in self.ends]
        done = {}
        for name in set().union(*reached):
            far = next((i for i, hosts in enumerate(reached) if name not in hosts or not self._worked(i, name)), len(reached))
            if far < len(reached) and name in reached[far]:
                self.idle.add(name)
            if name in failures:
                far = min(far, self.failed.get(name, 0))
            done[name] = far if len(self.ends) == self.steps else self.steps if far else 0
        return done

    def _worked(self, index, name):
        # The only step of a run counts by the counts of Ansible.
        return len(self.ends) == 1 or (index, name) in self.worked


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "edpm.operators.recap"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, display=None):
        super(CallbackModule, self).__init__(display=display)
        self.hosts = {}  # in the order of the plays
        self.messages = {}
        self.refusals = set()  # hosts whose last failure is the same with the same inputs
        self.occupied = set()  # hosts whose last failure is that they have guests
        self.notes = {}  # by host and module
        self.refused = {}  # addresses at which ssh could not log in
        self.known_before = {}
        self.names = {}  # by which ssh knows the hosts
        self.playbooks = 0
        self.progress = None  # in the last playbook
        self.differences = {}  # by host, in check mode

    def v2_playbook_on_start(self, playbook):
        if not self.playbooks:
            self.known_before = known_hosts(self.get_option("known_hosts"))
        self.playbooks += 1
        if self.playbooks == len(context.CLIARGS.get("args") or [playbook]):
            self.progress = Progress(playbook, self.get_option("steps"))

    def v2_playbook_on_play_start(self, play):
        variables = variables_of(play)
        if self.progress and self.progress.start(play, variables):
            return
        for name in variables.get("ansible_play_hosts_all", []):
            self.hosts[name] = None
            self.names[name] = known_as(name, variables["hostvars"][name])

    def v2_runner_on_ok(self, result):
        self._ran(result, True)
        self._compare(result)
        if isinstance(result._result.get("edpm_note"), str):
            notes = self.notes.setdefault(result._host.get_name(), {})
            notes[result._task.action] = clean(result._result["edpm_note"])

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._ran(result, ignore_errors)
        if not ignore_errors:
            self._remember(result)

    def v2_runner_on_unreachable(self, result):
        self._ran(result, False)
        name = result._host.get_name()
        message, jump = str(result._result.get("msg") or "")[:MAX_TEXT], self.get_option("jump_host")
        behind = jump_reason(message, jump) if jump else None
        # ssh names the jump host that it could not log in to, not the host behind it.
        self.refused[name] = ADDRESS.match(self.names.get(name, name)).group(1) if behind else no_login(message)
        # Which task met it first says nothing about an unreachable host.
        self.messages[name] = shorten(behind or reason(result._result), MAX_MESSAGE)
        self.refusals.discard(name)
        self.occupied.discard(name)

    def v2_playbook_on_stats(self, stats):
        self.hosts.update((name, None) for name in stats.processed)
        met = known_hosts(self.get_option("known_hosts"))
        steps, counts = self.get_option("steps"), {name: stats.summarize(name) for name in self.hosts}
        failed = {name for name in counts if counts[name]["failures"] or counts[name]["unreachable"]}
        done = self.progress.done(failed) if self.progress else {}
        begun = self.progress.begun if self.progress and steps > 1 else {}
        recap = {name: entry(counts[name], self.messages.get(name), self._met(name, met), done.get(name, 0),
                             self._connected(name), begun.get(name, 0), steps, self.progress and name in self.progress.idle, self._note(name), name in self.refusals,
                             self.differences.get(name), name in self.occupied)
                 for name in self.hosts}
        path = self.get_option("path")
        try:
            with open(path, "wb") as file:
                file.write(encode(recap, steps))
        except OSError as error:
            self._display.warning("The recap cannot be written to %s: %s" % (path, error))

    def _note(self, name):
        """Returns what modules noted last of a host."""
        return shorten(". ".join(note for note in self.notes.get(name, {}).values() if note), MAX_MESSAGE)

    def _ran(self, result, well):
        if self.progress:
            self.progress.ran(result._host.get_name(), well)

    def _compare(self, result):
        """Notes what a task would change in check mode."""
        if not context.CLIARGS.get("check") or not result._result.get("changed") or not self.progress:
            return
        task = shorten(clean(result.task_name), MAX_TASK)
        step = self.progress.current + 1 if len(self.progress.ends) == self.progress.steps else 1
        self.differences.setdefault(result._host.get_name(), []).append([step, task] + names_of(result._result, result._task.args))

    def _met(self, name, known):
        """Returns the key of a host that ssh met for the first time."""
        name = self.names.get(name)
        return None if name in self.known_before else known.get(name)

    def _connected(self, name):
        """Returns False only if ssh never logged in to the host, so that nothing can have run there.

        The last message alone proves nothing: a connection may have broken down under a task.
        """
        address = self.refused.get(name)
        return not address or any(address in words for words in lines(self.get_option("connected")))

    def _remember(self, result):
        message, name = "%s: %s" % (clean(result.task_name), reason(result._result)), result._host.get_name()
        self.messages[name] = shorten(message, MAX_MESSAGE)
        (self.refusals.add if result._result.get("edpm_refused") is True else self.refusals.discard)(name)
        (self.occupied.add if result._task.vars.get("edpm_needs") == "drained" else self.occupied.discard)(name)
