#!/usr/bin/env python3
"""Measures what a run takes on 1, 10 and 50 hosts, next to bare ansible-playbook: make bench-hosts, as root.

The image of hosts runs one sshd, which answers on as many addresses of 127.0.0.0/8 as there are hosts: each has
connections, processes and a Python of its own, and shares a kernel and files. The image of the runner runs in the same
network namespace, which has no other interface. Hosts do what ours wait for, not what they compute: tasks that end at
once, and one that waits. Bare is ansible-playbook of the same image with the same play, forks and ssh options, without
the entry point, ansible-runner and the callbacks, and with the strategy linear. Ratios are of one machine at one time; the
times are not those of another one.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile

import realhost

PREFIX = "edpm-bench-hosts"
RUNNER = "localhost/edpm-ansibleee:latest"
MEASURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_run.py")
SSHD = """Port 22
{listen}
HostKey /bench/host_key
AuthorizedKeysFile /bench/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
MaxStartups 200
{forced}
"""
# What happens to each command on a host that is slow, and on one that hangs.
SLOW, HANGING = 'sleep 1; exec sh -c "$SSH_ORIGINAL_COMMAND"', "exec sleep 3600"
# Seconds after which a task ends on a host that hangs.
TASK_TIMEOUT = 20


def podman(*arguments):
    """Runs podman and returns what it prints; what it complains of is seen."""
    return subprocess.run(["podman", *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, universal_newlines=True).stdout


class Hosts:
    """Addresses on which an sshd answers for as long as the block runs. The last host does with commands what forced is."""

    def __init__(self, count, forced=""):
        self.names = ["h%d" % number for number in range(1, count + 1)]
        self.addresses = ["127.0.77.%d" % number for number in range(1, count + 1)]
        self.forced = forced

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix=PREFIX)
        os.chmod(self.directory, 0o755)
        for key in ("key", "host_key"):
            realhost.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.directory, key))
        os.chmod(os.path.join(self.directory, "key"), 0o644)
        forced = "Match LocalAddress %s\nForceCommand %s" % (self.addresses[-1], self.forced) if self.forced else ""
        self.write("sshd_config", SSHD.format(forced=forced, listen="\n".join("ListenAddress " + address for address in self.addresses)))
        self.write("hosts.json", json.dumps({"all": {
            "hosts": {name: {"ansible_host": address} for name, address in zip(self.names, self.addresses)},
            "vars": {"ansible_user": "root", "ansible_python_interpreter": "/usr/bin/python3"}}}))
        podman("rm", "--force", "--ignore", "--time", "0", PREFIX)
        podman("run", "--detach", "--name", PREFIX, *realhost.LIMITS, "--network", "none", "--tmpfs", "/run/sshd", "--volume", self.directory + ":/bench:ro",
           "--entrypoint", "/usr/sbin/sshd", realhost.IMAGE, "-D", "-e", "-f", "/bench/sshd_config")
        return self

    def __exit__(self, *_):
        podman("rm", "--force", "--time", "0", PREFIX)
        shutil.rmtree(self.directory, True)

    def run(self, ours, strategy, tasks, wait):
        """Runs a play of as many tasks, and one that waits. Returns what bench_run.py does."""
        self.write("play.yaml", json.dumps([{"hosts": "all", "gather_facts": False, "strategy": strategy, "tasks": [
            *({"name": "Task %d" % number, "ansible.builtin.command": "true"} for number in range(tasks)),
            {"name": "Wait", "ansible.builtin.command": "sleep %d" % wait}]}]))
        environ = {"ANSIBLE_FORKS": str(max(5, len(self.names))), "ANSIBLE_TASK_TIMEOUT": str(TASK_TIMEOUT + wait), "ANSIBLE_PRIVATE_KEY_FILE": "/bench/key"}
        return json.loads(podman(
            "run", "--rm", *realhost.LIMITS, "--network", "container:" + PREFIX, *("--env=%s=%s" % pair for pair in environ.items()),
            "--volume", MEASURE + ":/bench_run.py:ro", "--volume", self.directory + ":/bench:ro", "--tmpfs", "/tmp:mode=1777",
            "--entrypoint", "python3", RUNNER, "/bench_run.py", "ours" if ours else "bare"))


def compare(what, hosts, arguments, well):
    """Prints what a play takes on hosts, bare and ours with both strategies, and when those that are well had ended."""
    bare = None
    for name, ours, strategy in (("bare", False, "linear"), ("ours, linear", True, "linear"), ("ours, free", True, "free")):
        m = hosts.run(ours, strategy, arguments.tasks, arguments.wait)
        if set(well) - set(m["ended"]) or m["code"] != 0 and len(well) == len(hosts.names):
            raise SystemExit("%s, %s: exit code %d\n%s" % (what, name, m["code"], m["output"]))
        bare = bare or m
        print("| %s, %s | %.1f s | %.2f | %.1f s | %.2f | %.0f MiB | %.1f s |" % (
            what, name, m["seconds"], m["seconds"] / bare["seconds"], m["cpu"], m["cpu"] / bare["cpu"], m["memory"], max(m["ended"][host] for host in well)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="*", default=[1, 10, 50])
    parser.add_argument("--tasks", type=int, default=10, help="tasks that end at once")
    parser.add_argument("--wait", type=int, default=60, help="seconds that the last task waits")
    arguments = parser.parse_args()
    for image in ("ansibleee", "edpm-host"):
        realhost.script("load.sh", image)
    print("| run | time | of bare | CPU time | of bare | memory | hosts that are well ended |\n|---|---:|---:|---:|---:|---:|---:|")
    for count in arguments.hosts:
        with Hosts(count) as hosts:
            compare("%d hosts" % count, hosts, arguments, hosts.names)
    for what, forced in (("one is slow", SLOW), ("one hangs", HANGING)):
        with Hosts(max(arguments.hosts), forced) as hosts:
            compare("%d hosts, %s" % (len(hosts.names), what), hosts, arguments, hosts.names[:-1])


if __name__ == "__main__":
    main()
