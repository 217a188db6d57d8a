#!/usr/bin/env python3
"""Applies a network configuration to this host, which is rolled back unless the change is confirmed through the network.

  apply SECONDS LIMIT SOURCE FILE COMMAND...   copies SOURCE to FILE and runs the command, for LIMIT seconds at most; SECONDS after
                                               its end the change is rolled back
  confirm SOURCE                               keeps the change, if SOURCE was applied; fails with 78 (EX_CONFIG) if it was rolled back
  roll-back ATTEMPT                            restores the files of before, and has them read again, unless the unit is of another attempt

A timer of systemd rolls back, also after a restart of the host: a new configuration may cut off whoever applied it. Until
then the files of before are in BEFORE. DONE identifies what was applied, and ROLLED_BACK what was rolled back. Whoever changes something holds LOCK.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile

STATE = "/var/lib/edpm/network"
BEFORE = STATE + "/before.tar"
CHANGE = STATE + "/change.json"
ROLLED_BACK = STATE + "/rolled-back"
DONE = STATE + "/done"
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
KILL_SECONDS = 10
TIMED_OUT = 124  # as timeout(1) has it
EX_TEMPFAIL, EX_CONFIG = 75, 78


def run(command, limit=LIMIT_SECONDS):
    """Returns the exit code of a command, and the last line that it printed. It is killed with its process group after the limit."""
    # No pipe: daemons that the command starts keep its output open. No file: the disk may be full.
    with os.fdopen(os.memfd_create("output"), "r+b") as output:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return 1, str(error)
        code = end(process, limit)
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
    if code == TIMED_OUT:
        lines.append("killed after %d seconds" % limit)
    return code, lines[-1] if lines else ""


def end(process, limit):
    """Waits for a process, and returns its exit code. One that the kernel holds is left behind after it was killed."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_SECONDS)
        return TIMED_OUT


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


def unit(kind):
    return "%s/%s.%s" % (UNITS, UNIT, kind)


def start_timer(seconds):
    """Starts the time of an attempt, in place of one before; returns why it cannot. The unit, which is replaced in one step, says which attempt it is."""
    command = "/usr/bin/env python3 %s roll-back %s" % (os.path.abspath(__file__), os.urandom(16).hex())
    write(unit("service"), (HEADER + "[Unit]\nDescription=Roll back a change of the network\n\n"
                            "[Service]\nType=oneshot\nExecStart=%s\n" % command).encode(), 0o644)
    write(unit("timer"), (HEADER + "[Unit]\nDescription=Wait for a change of the network to be confirmed\n\n"
                          "[Timer]\nOnActiveSec=%d\nAccuracySec=1\n\n[Install]\nWantedBy=timers.target\n" % seconds).encode(), 0o644)
    for command in (["daemon-reload"], ["enable", "--quiet", UNIT + ".timer"], ["restart", UNIT + ".timer"]):
        code, said = run(["systemctl"] + command)
        if code != 0:
            return "systemctl %s: %s" % (" ".join(command), said)
    return ""


def restart_timer():
    """Starts the time again. The service that does so may be of a unit that was replaced meanwhile."""
    for command in (["daemon-reload"], ["restart", UNIT + ".timer"]):
        run(["systemctl"] + command)


def stop_timer():
    run(["systemctl", "disable", "--quiet", "--now", UNIT + ".timer"])
    for kind in ("service", "timer"):
        remove(unit(kind))
    run(["systemctl", "daemon-reload"])


def apply(seconds, limit, source, path, *command):
    content = read(source)
    with locked():
        remove(DONE)
        remove(ROLLED_BACK)
        keep(path, list(command))
        problem = start_timer(int(seconds))
        if problem:
            sys.exit("%s; the network is as before, since a change could not be rolled back" % problem)
        sync()  # what rolls back must survive a loss of power that the change survives
        write(path, content)
        # From now on the host has all of the time to be reached, however long the tool took.
        problem = failure_of(command, int(limit)) or start_timer(int(seconds))
        if not problem:
            write(DONE, digest(content))
            return 0
        why = problem + "; rolled back"
        refuse(digest(content), why)  # whoever asked may have lost the connection
        restore()
    print(why)
    return 1


def failure_of(command, limit):
    """Runs the tool, and returns how it failed."""
    code, said = run(command, limit)
    # os-net-config ends with 2 when it changed something.
    if code == 0 or code == 2 and "--detailed-exit-codes" in command:
        return ""
    return "%s: %s (exit code %d)" % (os.path.basename(command[0]), said, code)


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


def roll_back(attempt=""):
    """Rolls a change back, unless one is being made or confirmed, or another one was made: then the time starts again.

    It does not wait: while it did, its timer would not start it again.
    """
    with locked(wait=False) as ours:
        if not ours or attempt.encode() not in read(unit("service")):
            restart_timer()
            return 0
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
