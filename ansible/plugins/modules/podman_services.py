#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that runs containers as services of systemd."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: podman_services
short_description: run containers as services of systemd
description:
  - Writes a unit for each service, enables and starts it, and waits until all of them are stable.
  - A service is restarted only if its unit, the ID of its image or the content of its configuration differ from what its container was
    made from, which the container has as the label C(edpm.definition). So a run that ended early is completed by the next one.
  - If a service does not stay up, the module fails with the last lines of its log, without what looks like a secret.
  - What services came up with is kept in I(records). If one does not come up with something else, unit, image and configuration of
    all services that changed are put back and they are started with them. The module fails nevertheless.
  - A later run with the same unit, image and configuration fails as well, once it has put the files back. It restarts nothing that is active. After
    I(refused_seconds), as the cause may have been elsewhere, it is tried again. If the health of what runs instead is bad, the next run tries it.
  - It fails, and changes nothing, while an earlier run of it is still at work on the host, as one is whose task has timed out.
author:
  - The edpm-operators authors
options:
  services:
    description: The services, in the order of their start.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name. Unit and container are called C(edpm_<name>).
        type: str
        required: true
      description:
        description: Description in the unit.
        type: str
        default: ""
      image:
        description: Image, which the host must have.
        type: str
        required: true
      command:
        description: Command in the container. Empty for that of the image.
        type: list
        elements: str
        default: []
      user:
        description: User in the container. Empty for that of the image.
        type: str
        default: ""
      mounts:
        description: Volumes, as for C(podman run --volume).
        type: list
        elements: str
        default: []
      optional_mounts:
        description: Volumes that are mounted only if their source exists.
        type: list
        elements: str
        default: []
      environment:
        description: Environment of the container. Everybody on the host can read it, so it is no place for secrets.
        type: dict
        default: {}
      args:
        description: More arguments of C(podman run) for this service.
        type: list
        elements: str
        default: []
      config_dirs:
        description: Directories with configuration. The service is restarted if files in them changed.
        type: list
        elements: path
        default: []
      keep_running:
        description: Do not restart the service while it runs, whatever changed.
        type: bool
        default: false
      guest_pid_files:
        description:
          - Shell patterns of files with the process IDs of guests. The service is not restarted while it runs and one of them is in a cgroup of its container,
            whatever changed, as the guest would end with the container. Guests in other cgroups, where systemd-machined has put them, are not affected.
        type: list
        elements: path
        default: []
      conmon:
        description: Program that podman runs as conmon. Empty for its own.
        type: str
        default: ""
      after:
        description: Units that start before this one. Shell patterns stand for the units in I(directory) that they match.
        type: list
        elements: str
        default: []
      restart_seconds:
        description: Seconds that systemd waits before it restarts the service after a failure.
        type: int
        default: 5
      stop_seconds:
        description: Seconds that the service may take to stop.
        type: int
        default: 30
      settle_seconds:
        description: Seconds that the service must stay up to count as started; 15 after an error in its log as oslo.log writes it, unless that says when it tries again.
        type: int
        default: 5
      speak_seconds:
        description: Seconds to wait for a line of its log that matches I(speak_pattern).
        type: int
        default: 0
      speak_pattern:
        description: Extended regular expression of such a line.
        type: str
        default: "."
      health:
        description:
          - Command in the container that fails if the service is not well, run by root. A timer runs it every I(health_seconds), as
            C(edpm-health-<name>.service), which is a failed unit then, with what the command printed in its log. Nothing is restarted for it.
          - Empty for no check. Another command restarts nothing either.
        type: list
        elements: str
        default: []
  podman:
    description: Path of podman.
    type: path
    default: /usr/bin/podman
  runtime:
    description: Container runtime. Empty for the default of the host.
    type: str
    default: ""
  args:
    description: More arguments of C(podman run) for every service.
    type: list
    elements: str
    default: []
  health_seconds:
    description: Seconds between two checks of the health of a service. C(0) for no checks.
    type: int
    default: 120
  directory:
    description: Directory of the units.
    type: path
    default: /etc/systemd/system
  records:
    description: Directory that keeps what services last came up with, copies of their configuration included. Only root can read it.
    type: path
    default: /var/lib/edpm/services
  refused_seconds:
    description: Seconds for which a service is not restarted again with what was rolled back. C(0) to try it in every run.
    type: int
    default: 3600
  busy:
    description:
      - Command that prints what a restart of the services would interrupt, and nothing if that is nothing. No service that is active is restarted
        before, for I(busy_seconds) at most. Then the module fails, and has changed nothing.
    type: list
    elements: str
    default: []
  busy_seconds:
    description: Seconds to wait for that. C(0) to restart services whatever they do.
    type: int
    default: 300
  rerun:
    description: Token of the rerun that a person asked for. With another one what was rolled back is tried at once.
    type: str
    default: ""
  proc:
    description: Directory with the processes of the host.
    type: path
    default: /proc
attributes:
  check_mode:
    description: Reports the units and services that would be changed for the configuration as it is, and does not wait.
    support: full
  diff_mode:
    description: Shows the units.
    support: full
"""

EXAMPLES = """
- name: Run an agent
  edpm.operators.podman_services:
    services:
      - name: agent
        image: registry.example.com/agent:1
        mounts: ["/etc/agent:/etc/agent:ro"]
        config_dirs: [/etc/agent]
"""

RETURN = """
changes:
  description: What was done, such as C(restart edpm_agent.service).
  type: list
  elements: str
  returned: always
waiting:
  description: Units that keep running as they were started, until a run without I(keep_running) and without guests in their containers.
  type: list
  elements: str
  returned: always
edpm_note:
  description: The same in words, for the result of the host.
  type: str
  returned: when a unit waits
"""

import fcntl
import fnmatch
import glob
import hashlib
import json
import os
import re
import tempfile
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.edpm.operators.plugins.module_utils import health
from ansible_collections.edpm.operators.plugins.module_utils.last_good import LastGood, remove
from ansible_collections.edpm.operators.plugins.module_utils.mask import mask

# oslo.log ends what it writes at once with it, for example a traceback.
COLOUR = re.compile("\x1b\\[[0-9;]*m")
# podman prints the ID of a container that it starts.
CONTAINER_ID = re.compile(r"^[0-9a-f]{64}$")
# What the journal puts before a line: seconds since the host was booted, host and service.
STAMP = re.compile(r"^(?:\[ *(\d+\.\d+)\] \S+ edpm_[^:]*: ?)?(.*)")
ERROR = re.compile(r"(?i)\b(error|critical|fatal|failed|denied|no such|not found)\b")
# What oslo.log puts before the message: time, process, level, module and request.
OF_OSLO_LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \d+ [A-Z]+ [\w.]+(?: |$)(?:\[[^]]*\] ?)?")
OF_SYSTEMD = re.compile(r"^edpm_|systemd")
# Seconds between the line of its log that is waited for and the moment a service counts as up; and after an error, as a process
# in Python takes seconds to end, and podman some more. An error after which a service says when it tries again is not its end:
# oslo.messaging writes one while the message bus does not answer.
GRACE = 3
GRACE_AFTER_ERROR = 15
LOGGED_ERROR = re.compile(" (CRITICAL|ERROR(?!.*([Rr]etrying|[Tt]rying again) in )) ")
# Between the reason for which a service does not stay up and its log.
LOG = " -- last lines of its log: "


class Broken(Exception):
    """A service that does not start, or does not stay up. It was not tried to its end if what started it was killed, as with the run."""

    def __init__(self, service, why, tried=True):
        Exception.__init__(self, why)
        self.service = service
        self.tried = tried


def quoted(value):
    """Returns an argument as systemd reads it back."""
    text = str(value)
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("%", "%%"), ("$", "$$")):
        text = text.replace(character, written)
    return '"%s"' % text


UNIT = """\
# Written by the role edpm.operators.edpm_service, which overwrites changes.
[Unit]
Description={description}
Documentation=man:podman-run(1)
Wants={after}
After={after}
RequiresMountsFor=/run/containers /var/lib/containers
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=all
# What the container prints is in the journal under this name.
SyslogIdentifier=edpm_{name}
Environment=PODMAN_SYSTEMD_UNIT=%n
Restart=always
RestartSec={restart_seconds}
TimeoutStartSec=300
# Ended by SIGTERM, as asked.
SuccessExitStatus=143
TimeoutStopSec={stop_limit}
ExecStartPre=/bin/rm -f %t/%n.cid
ExecStart={podman} \\
{globals}  run --detach --rm --replace --name edpm_{name} \\
  --cidfile %t/%n.cid --sdnotify conmon --cgroups no-conmon --log-driver passthrough --pull never \\
{arguments}  {command}
ExecStop={podman} stop --ignore --time {stop_seconds} --cidfile %t/%n.cid
ExecStopPost={podman} rm --ignore --force --cidfile %t/%n.cid

[Install]
WantedBy=multi-user.target
"""


class Service(object):
    """One service: what it is to be, and what runs now."""

    def __init__(self, module, options, image, label):
        self.module, self.options = module, options
        self.name, self.image = options["name"], image
        self.unit = "edpm_%s.service" % self.name
        self.directory = module.params["directory"]
        self.path = os.path.join(self.directory, self.unit)
        self.good = LastGood(os.path.join(module.params["records"], self.name))
        self.definition = self.fingerprint(image)
        self.attempt = [self.definition, module.params["rerun"]]
        # Without a container there is no label, not even an empty one.
        self.exists = label is not None
        self.stale = label != self.definition
        # Until when (seconds since 1970), and why, it is not restarted with its definition; None if it may be.
        self.refusal = self.good.refusal(self.attempt, module.params["refused_seconds"]) if self.stale else None
        self.waits = self.stale and self.exists and (options["keep_running"] or self.keeps_guests())

    def after(self):
        """Returns the units that start before this one."""
        files = sorted(os.listdir(self.directory))
        units = ["network-online.target"]
        for pattern in self.options["after"]:
            units += fnmatch.filter(files, pattern) if set(pattern) & set("*?[") else [pattern]
        return " ".join(units)

    def mounts(self):
        """Returns all volumes, in the order given, so that nothing restarts by accident."""
        return self.options["mounts"] + [mount for mount in self.options["optional_mounts"] if os.path.exists(mount.split(":")[0])]

    def arguments(self, definition):
        """Returns the options of podman run, one a line."""
        options = self.options
        lines = ["--label " + quoted("edpm.definition=" + definition)]
        lines += ["--user " + quoted(options["user"])] if options["user"] else []
        lines += ["--env " + quoted("%s=%s" % pair) for pair in sorted(options["environment"].items(), key=lambda pair: pair[0].lower())]
        lines += ["--volume " + quoted(mount) for mount in self.mounts()]
        lines += [quoted(value) for value in self.module.params["args"] + options["args"]]
        return "".join("  %s \\\n" % line for line in lines)

    def text(self, definition, image=""):
        """Returns the unit of a container with a definition as its label, of another image if one is given."""
        options, podman = self.options, self.module.params["podman"]
        of_podman = [("runtime", self.module.params["runtime"]), ("conmon", options["conmon"])]
        return UNIT.format(
            name=self.name, description=options["description"], after=self.after(), podman=podman, restart_seconds=options["restart_seconds"],
            stop_seconds=options["stop_seconds"], stop_limit=options["stop_seconds"] + 30, arguments=self.arguments(definition),
            globals="".join("  --%s %s \\\n" % (name, quoted(value)) for name, value in of_podman if value),
            command=" ".join(quoted(value) for value in [image or options["image"]] + options["command"]))

    def checksums(self):
        """Returns the checksums of the files of the configuration."""
        found = {}
        for top in self.options["config_dirs"]:
            for directory, _, names in os.walk(top):
                for path in [os.path.normpath(os.path.join(directory, name)) for name in names]:
                    if os.path.isfile(path) and not os.path.islink(path):
                        found[path] = self.module.sha1(path)
        return dict((path, found[path]) for path in sorted(found, key=lambda path: (path.lower(), path)))

    def fingerprint(self, image):
        """Returns a hash of everything that decides what runs. Another way to make it would restart every service on every host."""
        return hashlib.sha256(json.dumps([self.text(""), image, self.checksums()]).encode("utf-8")).hexdigest()

    def show(self, *names):
        """Returns properties of the unit."""
        out = self.module.run_command(["systemctl", "show", "--property=" + ",".join(names), self.unit])[1]
        return dict(line.partition("=")[::2] for line in out.splitlines())

    def keeps_guests(self):
        """Reports whether a guest would end with the container: whether it is in one of its cgroups. So is the process of the container."""
        pids = set(pid for pattern in self.options["guest_pid_files"] for pid in map(read_pid, glob.glob(pattern)))
        if not pids:
            return False
        inspect = [self.module.params["podman"], "container", "inspect", "--format", "{{.Id}} {{.State.Pid}}", "edpm_" + self.name]
        container, main = self.module.run_command(inspect, check_rc=True)[1].split()
        cgroups = os.path.join(self.module.params["proc"], "%s", "cgroup")
        return any(container in read(cgroups % pid) for pid in pids - set([main]))

    def steps(self):
        """Returns what systemctl has to do."""
        status = self.show("ActiveState", "UnitFileState")
        runs = status.get("ActiveState") in ("active", "activating")
        steps = [] if status.get("UnitFileState") == "enabled" else ["enable"]
        if self.stale and not (self.waits and runs):
            return steps + ["restart"]
        return steps if runs else steps + ["start"]

    def log(self, *arguments):
        """Returns what the container printed, each line with the seconds since the host was booted, or 0 where the journal says none."""
        # Without --all there is none of a line with a colour in it.
        command = ["journalctl", "--quiet", "--identifier=edpm_" + self.name, "--output=short-monotonic", "--all", "--no-pager"]
        lines = [STAMP.match(line).groups() for line in COLOUR.sub("", self.module.run_command(command + list(arguments))[1]).splitlines()]
        return [(float(seconds or 0), text) for seconds, text in lines if not CONTAINER_ID.match(text)]

    def first(self, pattern, text):
        """Returns the number of the first line that an extended regular expression is found in, from 1, or 0. grep reads a file, because neither side
        reads when it has both more input and more output than a pipe holds."""
        with tempfile.NamedTemporaryFile("w", dir=self.module.tmpdir, encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            return int(self.module.run_command(["grep", "-Enm1", pattern, file.name])[1].partition(":")[0] or 0)

    def stable_after(self, started, age):
        """Returns after how many seconds it counts as up, or None while it has not printed what is waited for. It was started so many seconds after the boot."""
        # Lines before that are the last words of the one before.
        lines = self.log("--since=@%d" % (time.time() - age + 1), "--lines=5000")
        text = "\n".join(text for _, text in lines)
        found = lines and self.first(self.options["speak_pattern"], text)
        speak = self.options["speak_seconds"]
        if not found and age < speak:
            return None
        spoken = max(lines[found - 1][0] - started, 0) if found else speak
        return max(spoken + (GRACE_AFTER_ERROR if LOGGED_ERROR.search(text) else GRACE), self.options["settle_seconds"])

    def wait(self):
        """Waits until it printed something and is up for settle_seconds. Fails as soon as it goes down."""
        restarts = None
        while True:
            status = self.show("ActiveState", "NRestarts", "ActiveEnterTimestampMonotonic")
            restarts = status.get("NRestarts") if restarts is None else restarts
            if status.get("ActiveState") != "active" or status.get("NRestarts") != restarts:
                raise Broken(self, self.complaint())
            started = int(status.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
            age = uptime() - started
            # What it printed no longer matters to one that is up for so long, as most are when nothing changed.
            if age >= max(self.options["speak_seconds"] + GRACE_AFTER_ERROR, self.options["settle_seconds"]):
                return
            stable = self.stable_after(started, age)
            if stable is not None and age >= stable:
                return
            time.sleep(1 if stable is None else min(1, stable - age))

    def complaint(self, otherwise="its log is empty"):
        """Returns why it does not stay up. The first words matter most, as a summary may have no more."""
        # The last lines may not be in the journal yet, and they are those that matter.
        self.module.run_command(["journalctl", "--sync"])
        start = self.show("ExecMainStartTimestampMonotonic").get("ExecMainStartTimestampMonotonic") or "0"
        since = time.time() - uptime() + int(start) / 1e6
        # What was said by one that is just being started again is nothing yet.
        # In their order, journalctl shows the first lines since then and not the last.
        lines = self.log("--since=@%.6f" % since, "--lines=30", "--reverse") or self.log("--lines=30", "--reverse")
        lines = [mask(text) for _, text in reversed(lines)]
        errors = [line for line in lines if ERROR.search(line) and not OF_SYSTEMD.search(line)]
        # Of a traceback the exception says what it is: other lines are indented or empty.
        says = [text for text in (OF_OSLO_LOG.sub("", line) for line in errors) if text[:1].strip()]
        culprit = (says or [OF_OSLO_LOG.sub("", line) for line in lines] or [otherwise])[-1]
        return "%s does not stay up: %s%s%s" % (self.unit, culprit, LOG, " | ".join(lines))

    def active(self):
        return self.show("ActiveState").get("ActiveState") == "active"

    def healthy(self):
        """Reports whether the check of its health that earlier runs left on the host, if any, does not fail. It reads the configuration as it is."""
        check = health.PREFIX + self.name + ".service"
        return not os.path.exists(os.path.join(self.directory, check)) or self.module.run_command(["systemctl", "start", check])[0] == 0

    def keep(self):
        """Keeps what the service came up with. Its image is kept by its ID, as the name may move on."""
        if not self.waits:
            self.good.keep(self.definition, self.text(self.definition, self.image), self.image, self.options["config_dirs"])


def image_ids(module):
    """Returns the IDs of all images by their names."""
    names = sorted(set(options["image"] for options in module.params["services"]))
    code, out, err = module.run_command([module.params["podman"], "image", "inspect", "--format", "{{.Id}}"] + names)
    if code != 0:
        module.fail_json(msg="The host does not have all images %s: %s. Pull them first." % (", ".join(names), err.strip()), rc=code)
    return dict(zip(names, out.split()))


def labels(module):
    """Returns the label of each container that exists, by the names of the services."""
    names = ["edpm_" + options["name"] for options in module.params["services"]]
    out = module.run_command([module.params["podman"], "container", "inspect", "--format",
                              "{{.Name}} {{index .Config.Labels \"edpm.definition\"}}"] + names)[1]
    return dict(line[len("edpm_"):].partition(" ")[::2] for line in out.splitlines() if line.startswith("edpm_"))


def uptime():
    """Returns the seconds since the host was booted."""
    return float(read("/proc/uptime").split()[0])


def read(path):
    """Returns the text of a file, and nothing of one that does not exist."""
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as stream:
        return stream.read().decode("utf-8", "replace")


def read_pid(path):
    """Returns the process ID in a file, and nothing if there is none. The file may be one of a user that is not root: links are not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            text = os.read(descriptor, 20).strip()
        finally:
            os.close(descriptor)
    except OSError:
        return ""
    return text.decode("ascii") if text.isdigit() else ""


def write(module, path, text):
    """Replaces a file in one step."""
    descriptor, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(text.encode("utf-8"))
    module.atomic_move(temporary, path)


def write_units(module, services):
    """Writes the units that differ, and returns what was done and the difference."""
    changes, diff = [], []
    for service in services:
        before, text = read(service.path), service.text(service.definition)
        attributes = {"path": service.path, "owner": "root", "group": "root", "mode": "0644"}
        if before != text:
            changes.append("write " + service.unit)
            diff.append({"before_header": service.path, "after_header": service.path, "before": before, "after": text})
            if not module.check_mode:
                write(module, service.path, text)
        if os.path.exists(service.path) and module.set_fs_attributes_if_different(attributes_of(module, attributes), False) and before == text:
            changes.append("set the owner and mode of " + service.unit)
    return changes, diff


def attributes_of(module, attributes):
    """Returns owner and mode as AnsibleModule takes them."""
    return module.load_file_common_arguments(attributes, path=attributes["path"])


def systemctl(module, service, step):
    code, out, err = module.run_command(["systemctl", step, service.unit])
    if code != 0:
        raise Broken(service, service.complaint(" ".join((err or out).split()) or "its log is empty"), tried=code > 0)


def reload_units(module):
    module.run_command(["systemctl", "daemon-reload"], check_rc=True)


def check_health(module, services):
    """Has timers check the health of services, and returns what was done."""
    runtime = quoted(module.params["runtime"]) if module.params["runtime"] else ""
    wanted = {}
    for service in services:
        options = dict(service.options, health=" ".join(quoted(word) for word in service.options["health"]))
        wanted.update(health.files(options, module.params["podman"], runtime, module.params["health_seconds"]))
    return health.Checks(module, wanted, [service.name for service in services], write).bring()


def wait_until_idle(module, services):
    """Waits as long as a restart would interrupt something. Fails if that takes too long."""
    if not module.params["busy"] or not module.params["busy_seconds"] or not any("restart" in service.steps() and service.active() for service in services):
        return
    end = time.monotonic() + module.params["busy_seconds"]
    while True:
        work = module.run_command(module.params["busy"])[1].strip()
        if not work:
            return
        if time.monotonic() >= end:
            module.fail_json(msg="A restart would interrupt work on the host: %s. Nothing was restarted, and it is tried again" % "; ".join(work.splitlines()[:3]))
        time.sleep(min(5, module.params["busy_seconds"]))


def exclude_others(module):
    """Locks the records until the module ends, whatever ends it. When a task times out, only its worker ends, and not the module on the host."""
    records = module.params["records"]
    if not os.path.isdir(records):
        os.makedirs(records, 0o700)
    try:
        fcntl.flock(os.open(records, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        module.fail_json(msg="An earlier run is still at work on the services of this host; nothing was changed, and it is tried again")


def run(module, services):
    """Brings all services up, and returns what was done and the difference of the units."""
    changes, diff = write_units(module, services)
    if not module.check_mode and (changes or any(service.stale for service in services)):
        reload_units(module)
    for service in services:
        for step in service.steps():
            changes.append("%s %s" % (step, service.unit))
            if not module.check_mode:
                systemctl(module, service, step)
    if not module.check_mode:
        for service in services:
            service.wait()
    return changes + check_health(module, services), diff


def roll_back(module, services):
    """Puts back what the services that changed came up with before, and returns these services."""
    before = dict((service, service.good.before(service.definition)) for service in services)
    changed = [service for service in services if before[service]]
    for service in changed:
        write(module, service.path, service.good.put_back(before[service]))
    if changed:
        reload_units(module)
    running = labels(module)
    for service in changed:
        # Those after the one that failed may not have been restarted yet.
        if running.get(service.name) != before[service]:
            systemctl(module, service, "restart")
    for service in changed:
        service.wait()
    return changed


def roll_back_because(module, services, why):
    """Returns the services that were rolled back. Fails, also because of why, if they do not come up."""
    try:
        return roll_back(module, services)
    except Broken as second:
        module.fail_json(msg="%s -- what ran before does not come up either: %s" % (why, second))


def fail(module, services, error):
    """Fails because of a service that does not stay up, once what ran before runs again. Then the next run is not to try the same, if it was tried."""
    rolled_back = roll_back_because(module, services, error)
    if rolled_back and error.tried:
        error.service.good.refuse(error.service.attempt, str(error))
    module.fail_json(msg="%s%s" % ("Rolled back, " if rolled_back else "", error))


def refuse(module, services):
    """Fails if a service is refused, once what ran before is put back: files of its configuration are in place already, and the next crash would take them.

    A service that is not active loses nothing by a restart, so what is refused is tried. So it is in the next run if one is not healthy: it may be the remedy.
    """
    refused = [service for service in services if service.refusal]
    changed = [service for service in services if service.good.before(service.definition)]
    if not refused or not changed or not all(service.active() for service in changed):
        return
    until, why = refused[0].refusal
    roll_back_because(module, services, "Rolled back earlier: " + why)
    when = time.strftime("after %Y-%m-%dT%H:%M:%SZ", time.gmtime(until))
    if not all(service.healthy() for service in changed):
        when = "in the next run, as what runs instead is not healthy"
        for service in refused:
            service.good.forget()
    reason, log = why.partition(LOG)[::2]
    module.fail_json(msg="Rolled back earlier: %s. It is tried again %s, or at once with another configuration or a rerun%s%s" % (reason.rstrip("."), when, LOG, log))


def record(module, services):
    """Keeps what services came up with, and removes what is kept of services that have no unit any more."""
    for service in services:
        service.keep()
    for name in os.listdir(module.params["records"]):
        if not os.path.exists(os.path.join(module.params["directory"], "edpm_%s.service" % name)):
            remove(os.path.join(module.params["records"], name))


def note(waiting):
    """Returns what a person has to know of units that wait."""
    names = ", ".join(unit[:-len(".service")] for unit in waiting)
    return {"edpm_note": "A restart is pending for %s, which guests need: rerun the step when no guests run" % names} if names else {}


def main():
    strings = dict(type="list", elements="str", default=[])
    options = dict(
        name=dict(type="str", required=True), description=dict(type="str", default=""), image=dict(type="str", required=True),
        command=strings, user=dict(type="str", default=""), mounts=strings, optional_mounts=strings, environment=dict(type="dict", default={}),
        args=strings, config_dirs=dict(type="list", elements="path", default=[]), keep_running=dict(type="bool", default=False),
        guest_pid_files=dict(type="list", elements="path", default=[]), conmon=dict(type="str", default=""), after=strings,
        restart_seconds=dict(type="int", default=5), stop_seconds=dict(type="int", default=30), settle_seconds=dict(type="int", default=5),
        speak_seconds=dict(type="int", default=0), speak_pattern=dict(type="str", default="."), health=strings,
    )
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        services=dict(type="list", elements="dict", required=True, options=options),
        podman=dict(type="path", default="/usr/bin/podman"), runtime=dict(type="str", default=""), args=strings,
        health_seconds=dict(type="int", default=120), directory=dict(type="path", default="/etc/systemd/system"), records=dict(type="path", default="/var/lib/edpm/services"),
        refused_seconds=dict(type="int", default=3600), rerun=dict(type="str", default=""),
        busy=strings, busy_seconds=dict(type="int", default=300), proc=dict(type="path", default="/proc")))
    if not module.check_mode:
        exclude_others(module)
    images, running = image_ids(module), labels(module)
    services = [Service(module, each, images[each["image"]], running.get(each["name"])) for each in module.params["services"]]
    try:
        if not module.check_mode:
            refuse(module, services)
            wait_until_idle(module, services)
        changes, diff = run(module, services)
    except Broken as error:
        fail(module, services, error)
    if not module.check_mode:
        record(module, services)
    waiting = [service.unit for service in services if service.waits]
    module.exit_json(changed=bool(changes), changes=changes, waiting=waiting, diff=diff if module._diff else [], **note(waiting))


if __name__ == "__main__":
    main()
