# -*- coding: utf-8 -*-
"""Timers of systemd that check the health of containers. A check that fails is a failed unit, and restarts nothing."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re

from ansible_collections.edpm.operators.plugins.module_utils.files import read

PREFIX = "edpm-health-"
NAME = re.compile(re.escape(PREFIX) + r"(.+)\.(timer|service)\Z")
SERVICE = """\
# Written by the role edpm.operators.edpm_service, which overwrites changes.
[Unit]
Description=Health of {description}
After=edpm_{name}.service

[Service]
Type=oneshot
SyslogIdentifier=edpm-health-{name}
TimeoutStartSec=60
ExecStart={podman} {runtime}exec --user root edpm_{name} {command}
"""
TIMER = """\
# Written by the role edpm.operators.edpm_service, which overwrites changes.
[Unit]
Description=Checks the health of {description}

[Timer]
OnActiveSec={seconds}
OnUnitInactiveSec={seconds}
RandomizedDelaySec=10

[Install]
WantedBy=timers.target
"""


def files(options, podman, runtime, seconds):
    """Returns the text of the units of a service by their names, none if it has no check. The command is quoted already."""
    if not options["health"] or seconds == 0:
        return {}
    values = dict(name=options["name"], description=options["description"] or options["name"], podman=podman,
                  runtime="--runtime %s " % runtime if runtime else "", command=options["health"], seconds=seconds)
    return dict((PREFIX + "%s.%s" % (options["name"], kind), text.format(**values)) for kind, text in (("service", SERVICE), ("timer", TIMER)))


def stale(directory, names, wanted):
    """Returns the units of checks that have to go: those of services that have none any more, and of services that no longer exist."""
    found = dict((file, NAME.match(file).group(1)) for file in sorted(os.listdir(directory), reverse=True) if NAME.match(file))
    return [file for file, name in found.items() if file not in wanted
            and (name in names or not os.path.exists(os.path.join(directory, "edpm_%s.service" % name)))]


def states(output):
    """Returns what systemctl show says of timers, by their names."""
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in output.strip().split("\n\n") if block]
    return dict((block.get("Id"), block) for block in blocks)


class Checks(object):
    """The checks of some services."""

    def __init__(self, module, wanted, names, write):
        self.module, self.wanted, self.names, self.write = module, wanted, names, write
        self.directory, self.changes = module.params["directory"], []

    def systemctl(self, *arguments):
        return self.module.run_command(["systemctl"] + list(arguments), check_rc=True)[1]

    def act(self, *arguments):
        """Has systemctl do something, unless in check mode."""
        self.changes.append(" ".join(arguments))
        if not self.module.check_mode:
            self.systemctl(*arguments)

    def bring(self):
        """Writes, starts and removes timers, and returns what was done."""
        gone = stale(self.directory, self.names, self.wanted)
        for file in gone:
            self.remove(file)
        for file, text in sorted(self.wanted.items()):
            path = os.path.join(self.directory, file)
            if read(path) != text:
                self.changes.append("write " + file)
                if not self.module.check_mode:
                    self.write(self.module, path, text)
        timers = sorted(file for file in self.wanted if file.endswith(".timer"))
        # A run may have ended before systemd read what it wrote.
        status = states(self.systemctl("show", "--property=Id,ActiveState,UnitFileState,NeedDaemonReload", "--", *timers)) if timers else {}
        if not self.module.check_mode and (self.changes or any(each.get("NeedDaemonReload") == "yes" for each in status.values())):
            self.systemctl("daemon-reload")
        for timer in timers:
            self.start(timer, status.get(timer, {}))
        return self.changes

    def start(self, timer, status):
        if status.get("UnitFileState") != "enabled":
            self.act("enable", timer)
        if status.get("ActiveState") != "active":
            self.act("start", timer)

    def remove(self, file):
        """Removes a unit. A timer comes before the service that it starts."""
        if file.endswith(".timer"):
            self.act("disable", "--now", file)
        elif not self.module.check_mode:
            # Otherwise it would stay among the units that failed.
            self.module.run_command(["systemctl", "reset-failed", file])
        self.changes.append("remove " + file)
        if not self.module.check_mode:
            os.unlink(os.path.join(self.directory, file))
