#!/usr/bin/env python3
"""Prints when what a deployment consists of happened: python3 test/demo/timeline.py NAMESPACE

Records until it gets SIGTERM or SIGINT, and then prints a line for each change of a run, its Job and Pod, a node or a compute, with the seconds since the
first, as kubectl saw it; below that, for each run, when Ansible began each of its plays, and the tasks that took longest. "recording" on stderr says that it has begun.
"""

import json
import re
import signal
import subprocess
import sys
import threading
import time

KINDS = ("openstackansibleee", "jobs", "pods", "openstackdataplanenode", "novaexternalcompute")
SLOWEST = 12


class Recorder:
    """Notes of objects what state they came to, and when."""

    def __init__(self, namespace):
        self.namespace, self.events, self.states, self.lock, self.watches = namespace, [], {}, threading.Lock(), []

    def follow(self, kind):
        watch = subprocess.Popen(["kubectl", "-n", self.namespace, "get", kind, "--watch", "--output", "json"], stdout=subprocess.PIPE, text=True)
        self.watches.append(watch)
        threading.Thread(target=self.read, args=(watch.stdout,), daemon=True).start()

    def read(self, stream):
        decoder, text = json.JSONDecoder(), ""
        for line in stream:
            text += line
            if line == "}\n":
                self.note(decoder.decode(text))
                text = ""

    def note(self, obj):
        name, state = "%s %s" % (obj["kind"], obj["metadata"]["name"]), state_of(obj)
        with self.lock:
            if self.states.get(name) != state:
                self.events.append((time.time(), name, state))
                self.states[name] = state


def state_of(obj):
    """Returns the state of an object in a few words."""
    status = obj.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions", [])}
    if obj["kind"] == "Pod":
        for container in status.get("containerStatuses", []):
            for state in ("terminated", "running"):
                if state in container["state"]:
                    return state
        return "scheduled" if conditions.get("PodScheduled", {}).get("status") == "True" else "created"
    if obj["kind"] == "Job":
        return next((c for c in ("Complete", "Failed") if conditions.get(c, {}).get("status") == "True"), "created")
    ready = conditions.get("Ready") or conditions.get("Complete") or {}
    return " ".join(str(ready[field]) for field in ("status", "reason") if field in ready) or "created"


def plays_of(namespace, pod):
    """Returns of a Pod's log when each play began, and the tasks that took longest, as pairs of a time or seconds and a name."""
    log = subprocess.run(["kubectl", "-n", namespace, "logs", "--timestamps", pod], capture_output=True, text=True, check=False).stdout
    plays, tasks, before = [], [], None
    for line in log.splitlines():
        stamp, _, text = line.partition(" ")
        found = re.match(r"(PLAY|TASK|RUNNING HANDLER) \[?(.*?)\]? \*", text)
        if not found:
            continue
        moment = seconds_of(stamp)
        if found.group(1) == "PLAY":
            plays.append((moment, found.group(2)))
        elif before is not None:
            # Without hosts that are skipped, Ansible prints the name of a task with its first result.
            tasks.append((moment - before, found.group(2)))
        before = moment
    return plays, sorted(tasks, reverse=True)[:SLOWEST]


def seconds_of(stamp):
    """Returns the seconds since 1970 of a time as Kubernetes writes it in logs."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole + " UTC", "%Y-%m-%dT%H:%M:%S %Z")) - time.timezone + float("0." + (fraction or "0"))


def main():
    recorder = Recorder(sys.argv[1])
    for kind in KINDS:
        recorder.follow(kind)
    time.sleep(2)  # what is there is not part of it
    with recorder.lock:
        recorder.events.clear()
    print("recording", file=sys.stderr, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    for watch in recorder.watches:
        watch.terminate()
    if not recorder.events:
        sys.exit("nothing happened in namespace %s" % recorder.namespace)
    start = recorder.events[0][0]
    for moment, name, state in recorder.events:
        print("%7.2f  %s: %s" % (moment - start, name, state))
    for name in dict.fromkeys(name for _, name, _ in recorder.events if name.startswith("Pod ")):
        plays, tasks = plays_of(recorder.namespace, name.removeprefix("Pod "))
        if not plays:
            continue
        print("\n%s" % name)
        for moment, play in plays:
            print("%7.2f  %s" % (moment - start, play))
        for seconds, task in tasks:
            print("         %5.2f s  %s" % (seconds, task))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
