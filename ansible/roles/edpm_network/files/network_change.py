#!/usr/bin/env python3
"""Applies a network configuration to this host, which is rolled back unless the change is confirmed through the network.

  apply SECONDS SOURCE FILE COMMAND...   copies SOURCE to FILE and runs the command; SECONDS later the change is rolled back
  confirm SOURCE                         keeps the change, if SOURCE was applied; fails with 78 (EX_CONFIG) if it was rolled back
  roll-back                              restores the files of before, and has them read again

A timer of systemd rolls back, also after a restart of the host: a new configuration may cut off whoever applied it. Until
then the files of before are in BEFORE. DONE identifies what was applied, and ROLLED_BACK what was rolled back. Whoever changes something holds LOCK.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tarfile

STATE = "/var/lib/edpm/network"
BEFORE = STATE + "/before.tar"
CHANGE = STATE + "/change.json"
ROLLED_BACK = STATE + "/rolled-back"
DONE = STATE + "/done"
ATTEMPT = STATE + "/attempt"
LOCK = STATE + "/lock"
UNITS = "/etc/systemd/system"
UNIT = "edpm-network-roll-back"
HEADER = "# Written by the role edpm.operators.edpm_network while a change of the network is not confirmed.\n"
# What tools write, and what they read.
NETWORK_FILES = [
    "/etc/NetworkManager/system-connections", "/etc/netplan", "/etc/network", "/etc/nmstate", "/etc/os-net-config",
    "/etc/sysconfig/network-scripts", "/etc/systemd/network",
]
SERVICES = ["NetworkManager", "systemd-networkd", "networking", "network"]
# Directories with all files of a change, this program and its units among them.
STORED = ["/etc", STATE]
# Of a tool or a service when a change is rolled back.
LIMIT_SECONDS = 120
EX_TEMPFAIL, EX_CONFIG = 75, 78


def run(command, limit=None):
    """Returns the exit code of a command, and the last line that it printed."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def write(path, content, mode=0o600):
    """Replaces a file in one step, which a loss of power does not halve."""
    with open(path + ".part", "wb") as stream:
        os.fchmod(stream.fileno(), mode)
        stream.write(content)
        os.fsync(stream.fileno())
    os.rename(path + ".part", path)


def sync():
    """Has the disk store all that was written. Only file systems with files of a change: one of a server that does not answer would block it."""
    run(["sync", "--file-system"] + STORED)


def read(path):
    """Returns what a file contains, nothing if it does not exist."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as stream:
        return stream.read()
    return b""


def remove(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@contextlib.contextmanager
def locked(wait=True):
    """Holds the lock; yields False if someone else does and it is not waited for."""
    with open(LOCK, "w", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def keep(path, command):
    """Keeps the files of before, and what restores them, unless those of a change that was not confirmed are kept still."""
    if os.path.exists(BEFORE):
        return
    if os.path.basename(command[0]) == "nmstatectl":  # knows more than its file, which may not exist yet
        shown = subprocess.run([command[0], "show"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=LIMIT_SECONDS, check=True).stdout
        write(STATE + "/state.yaml", shown)
        command = [command[0], "apply", STATE + "/state.yaml"]
    write(CHANGE, json.dumps({"files": NETWORK_FILES + [path], "command": command}).encode())
    with tarfile.open(BEFORE + ".part", "w") as archive:
        for name in sorted(files_of(NETWORK_FILES + [path])):
            archive.add(name)
    with open(BEFORE + ".part", "rb") as stream:
        os.fsync(stream.fileno())
    os.rename(BEFORE + ".part", BEFORE)


def files_of(names):
    """Returns the files that are in directories, or that are given themselves."""
    below = {os.path.join(directory, name) for top in names for directory, _, found in os.walk(top) for name in found}
    return below | {name for name in names if os.path.isfile(name)}


def start_timer(seconds):
    write("%s/%s.service" % (UNITS, UNIT), (HEADER + "[Unit]\nDescription=Roll back a change of the network\n\n"
                                            "[Service]\nType=oneshot\nExecStart=/usr/bin/env python3 %s roll-back\n" % os.path.abspath(__file__)).encode(), 0o644)
    write("%s/%s.timer" % (UNITS, UNIT), (HEADER + "[Unit]\nDescription=Wait for a change of the network to be confirmed\n\n"
                                          "[Timer]\nOnActiveSec=%d\nAccuracySec=1\n\n[Install]\nWantedBy=timers.target\n" % seconds).encode(), 0o644)
    for command in (["daemon-reload"], ["enable", "--quiet", UNIT + ".timer"], ["restart", UNIT + ".timer"]):
        code, said = run(["systemctl"] + command)
        if code != 0:
            sys.exit("systemctl %s: %s; the network is as before, since a change could not be rolled back" % (" ".join(command), said))


def stop_timer():
    run(["systemctl", "disable", "--quiet", "--now", UNIT + ".timer"])
    for kind in ("service", "timer"):
        remove("%s/%s.%s" % (UNITS, UNIT, kind))
    run(["systemctl", "daemon-reload"])


def apply(seconds, source, path, *command):
    content = read(source)
    with locked():
        remove(DONE)
        remove(ROLLED_BACK)
        keep(path, list(command))
        start_timer(int(seconds))
        write(ATTEMPT, os.urandom(16).hex().encode())
        sync()  # what rolls back must survive a loss of power that the change survives
        write(path, content)
        code, said = run(command)
        # os-net-config ends with 2 when it changed something.
        if code == 0 or code == 2 and "--detailed-exit-codes" in command:
            write(DONE, digest(content))
            return 0
        why = "%s: %s (exit code %d); rolled back" % (os.path.basename(command[0]), said, code)
        refuse(digest(content), why)  # whoever asked may have lost the connection
        restore()
    print(why)
    return 1


def digest(content):
    return hashlib.sha256(content).hexdigest().encode()


def refuse(source, why):
    """Notes that what has this digest is rolled back, and why; it has no reason if no one confirmed it in time."""
    write(ROLLED_BACK, json.dumps({"source": source.decode(), "why": why}).encode())


def refusal(source):
    """Returns why what has this digest was rolled back, and None if it was not."""
    try:
        found = json.loads(read(ROLLED_BACK).decode())
        return found["why"] if found["source"] == source.decode() else None
    except (ValueError, KeyError, TypeError):
        return None  # as an earlier version wrote it


def confirm(source):
    with locked(wait=False) as ours:
        if not ours:
            print("the network is being changed")
            return EX_TEMPFAIL
        wanted = digest(read(source))
        why = refusal(wanted)
        if why is not None:
            print(why or "the host could not be reached with it in time, and has rolled it back; correct networkConfig.template")
            return 1 if why else EX_CONFIG
        if read(DONE) != wanted:
            # The connection was lost before the program was started, or the host was restarted while the tool ran.
            if os.path.exists(BEFORE):
                restore()
            print("it was not applied, or not to the end, and the host has the network of before; the next run applies it")
            return 1
        remove(BEFORE)
        stop_timer()
        sync()  # or the timer is there again after a loss of power, and what it restores
    return 0


def restore():
    """Puts the files of before in place, and has them read. It can be repeated: what it needs is removed last."""
    with open(CHANGE, encoding="utf-8") as stream:
        change = json.load(stream)
    with tarfile.open(BEFORE) as archive:
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # owners and modes are those of before
        for name in files_of(change["files"]) - {"/" + name for name in archive.getnames()}:
            remove(name)
        archive.extractall("/")
    run(change["command"], LIMIT_SECONDS)
    for service in SERVICES:
        if run(["systemctl", "is-active", "--quiet", service])[0] == 0:
            run(["systemctl", "restart", service], LIMIT_SECONDS)
    sync()
    remove(DONE)
    remove(BEFORE)
    stop_timer()


def roll_back():
    due = read(ATTEMPT)
    with locked():
        if read(ATTEMPT) != due:
            return 0  # another change was made while this waited for the lock, and has a timer of its own
        if os.path.exists(BEFORE):
            done = read(DONE)
            if done:  # otherwise the template is not to blame
                refuse(done, "")
            restore()
        stop_timer()
    return 0


COMMANDS = {"apply": apply, "confirm": confirm, "roll-back": roll_back}

if __name__ == "__main__":
    sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]))
