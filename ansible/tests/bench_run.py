"""Measures a run in the container of the runner, for bench_hosts.py: bench_run.py ours|bare prints JSON."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time

ENDED = re.compile(r"(?:ok|changed|fatal): \[([^\]]+)\]")
TRUST = "-C -o ControlMaster=auto -o ControlPersist=60s -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/tmp/known_hosts"


def measure(ours):
    """Returns seconds of the run and of CPUs, MiB at most, seconds until each host ended."""
    environ, command = dict(os.environ, PYTHONUNBUFFERED="1"), ["ansible-playbook", "-i", "/bench/hosts.json", "/bench/play.yaml"]
    if ours:
        for name, file in (("RUNNER_PLAYBOOK", "play.yaml"), ("RUNNER_INVENTORY", "hosts.json")):
            with open("/bench/" + file, encoding="utf-8") as text:
                environ[name] = text.read()
        environ["EDPM_RECAP_PATH"] = "/tmp/recap"
        command = ["/usr/local/bin/edpm-entrypoint", "ansible-runner", "run", "/runner", "-p", "playbook.yaml", "-i", "bench"]
    else:
        shutil.copy("/bench/key", "/tmp/key")
        os.chmod("/tmp/key", 0o600)
        open("/tmp/ansible.cfg", "w", encoding="utf-8").close()
        environ.update(ANSIBLE_CONFIG="/tmp/ansible.cfg", ANSIBLE_PIPELINING="True", ANSIBLE_SSH_ARGS=TRUST, ANSIBLE_PRIVATE_KEY_FILE="/tmp/key",
                       ANSIBLE_LOCAL_TEMP="/tmp/local", ANSIBLE_HOME="/tmp/home")
    began, most, ended, lines = time.monotonic(), [0], {}, []
    with subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True) as process:
        threading.Thread(target=watch_memory, args=(process, most), daemon=True).start()
        for line in process.stdout:
            lines.append(line)
            found = ENDED.match(line)
            if found:
                ended[found.group(1)] = time.monotonic() - began
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": time.monotonic() - began, "cpu": usage.ru_utime + usage.ru_stime, "memory": most[0], "ended": ended, "code": process.returncode,
            "output": "".join(lines)[-4000:]}


def watch_memory(process, most):
    while process.poll() is None:
        most[0] = max(most[0], memory())
        time.sleep(0.5)


def memory():
    """Returns the MiB of all processes of the container, shared memory counted once."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/smaps_rollup" % pid, encoding="utf-8") as file:
                total += int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M).group(1))
        except (OSError, AttributeError):  # it has ended
            continue
    return total / 1024


if __name__ == "__main__":
    json.dump(measure(sys.argv[1] == "ours"), sys.stdout)
