#!/usr/bin/env python3
"""Measures what a rerun with nothing to change takes on two hosts: python3 ansible/tests/measure.py [directory of a collection...]

Prints a line for each playbook (tasks that ran on a host, tasks in all, seconds), the slowest tasks, and the time of one
ansible-playbook with all playbooks. Several collections are measured one after the other on the same hosts. The first run of each says
what an upgrade to it changes. Needs what test_roles.py needs.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

import realhost
from realhost import sh

PREFIX, SUBNET = "edpm-measure", "192.168.125"
PLAYBOOKS = ("configure_network", "validate_network", "install_os", "configure_os", "run_os", "libvirt", "nova")
NOVA = ("[DEFAULT]\ntransport_url = rabbit://u:p@127.0.0.1:5672/\ncompute_driver = libvirt.LibvirtDriver\nstate_path = /var/lib/nova\n"
        "[oslo_concurrency]\nlock_path = /var/lib/nova/tmp\n[libvirt]\nvirt_type = qemu\n")
VARIABLES = {
    "ansible_user": "cloud-admin", "edpm_run": "r1", "edpm_step": "measure", "edpm_hash": "h1", "edpm_chronyd_options": "-x",
    "edpm_nova_compute_image": "localhost/edpm-nova-compute:latest", "edpm_libvirt_image": "localhost/edpm-nova-libvirt:latest",
    "edpm_hosts_entries": [{"ip": "192.0.2.1", "names": ["api"]}],
}


def processor():
    """Returns the seconds that processes which have ended took of processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Hosts:
    """Two hosts, and playbooks of a collection that run on both."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix=PREFIX)
        os.makedirs(self.path("collections", "ansible_collections", "edpm"))
        self.names = ["%s-%d" % (PREFIX, number) for number in (1, 2)]

    def use(self, collection):
        link = self.path("collections", "ansible_collections", "edpm", "operators")
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(collection, link)
        self.config = os.path.join(collection, "execution-environment", "ansible.cfg")

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def start(self):
        self.clear()
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path("key"))
        realhost.script("load.sh", "edpm-host")
        sh("podman", "network", "create", "--subnet", SUBNET + ".0/24", PREFIX)
        for number, name in enumerate(self.names, 11):
            sh("podman", "--runtime", "runc", "run", "--detach", "--name", name, "--hostname", name, *realhost.OPTIONS, "--network", PREFIX,
               "--ip", "%s.%d" % (SUBNET, number), "--volume", "/var/lib/containers", "--volume", realhost.script("store.sh") + ":/var/lib/edpm-images:ro",
               "--volume", self.path("key.pub") + ":/etc/edpm-lab/authorized_keys:ro", realhost.IMAGE, "/sbin/init")
        with open(self.path("nova.conf"), "w", encoding="utf-8") as file:
            file.write(NOVA)
        hosts = {name: {"ansible_host": "%s.%d" % (SUBNET, number), "edpm_hostname": name} for number, name in enumerate(self.names, 11)}
        with open(self.path("hosts.json"), "w", encoding="utf-8") as file:
            json.dump({"all": {"hosts": hosts, "vars": dict(VARIABLES, edpm_config_files={"01-nova.conf": self.path("nova.conf")})}}, file)
        time.sleep(10)

    def clear(self):
        for name in self.names:
            sh("podman", "rm", "--force", "--volumes", "--time", "0", name, check=False)
        sh("podman", "network", "rm", "--force", PREFIX, check=False)

    def play(self, *playbooks):
        """Returns the seconds of a run, of which others on the machine are part, those of processors on the runner, and the lines with their times."""
        environ = dict(os.environ, ANSIBLE_CONFIG=self.config, ANSIBLE_COLLECTIONS_PATH=self.path("collections"), ANSIBLE_HOME=self.path("home"),
                       ANSIBLE_LOCAL_TEMP=self.path("local"), ANSIBLE_CALLBACKS_ENABLED="", ANSIBLE_PRIVATE_KEY_FILE=self.path("key"),
                       ANSIBLE_SSH_CONTROL_PATH_DIR=self.path("cp"), ANSIBLE_HOST_KEY_CHECKING="False", ANSIBLE_DISPLAY_SKIPPED_HOSTS="True",
                       PYTHONUNBUFFERED="1")
        started, busy, lines = time.monotonic(), processor(), []
        with subprocess.Popen(["ansible-playbook", "-i", self.path("hosts.json"), *("edpm.operators." + name for name in playbooks)], env=environ,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True) as process:
            for line in process.stdout:
                lines.append((time.monotonic() - started, line.rstrip()))
        seconds = time.monotonic() - started
        if process.returncode:
            raise SystemExit("\n".join(line for _, line in lines))
        return seconds, processor() - busy, lines


def tasks_of(lines, end):
    """Returns the tasks of a run: seconds, whether it ran on a host, its name."""
    tasks = []
    for at, line in lines + [(end, "TASK [end] *")]:
        found = re.match(r"TASK \[(.*)\] \*|PLAY (RECAP)", line)
        if found:
            if tasks:
                tasks[-1][0] = at - tasks[-1][0]
            tasks.append([at, False, found.group(1) or ""])
        elif tasks and re.match(r"(ok|changed): ", line):
            tasks[-1][1] = True
    return [task for task in tasks[:-1] if task[2]]


def report(what, seconds, busy, lines):
    """Prints what a run took, and what it changed. Returns its tasks."""
    tasks = tasks_of(lines, seconds)
    print("%-20s %6.1f s, processor %5.1f s, %3d tasks ran, %3d in all" % (what, seconds, busy, sum(ran for _, ran, _ in tasks), len(tasks)), flush=True)
    name = ""
    for _, line in lines:
        name = line if line.startswith("TASK [") else name
        if line.startswith("changed: "):
            print("    %s %s" % (line, name.rstrip(" *")))
    return tasks


def measure(hosts, runs, slowest):
    """Prints the figures of the collection that is used."""
    slow = defaultdict(float)
    for playbook in PLAYBOOKS:
        for spent, _, name in report(playbook, *min((hosts.play(playbook) for _ in range(runs)), key=lambda run: run[0])):
            slow["%s: %s" % (playbook, name)] += spent
    for name, spent in sorted(slow.items(), key=lambda pair: -pair[1])[:slowest]:
        print("  %5.2f s  %s" % (spent, name))
    for _ in range(runs):
        report("all in one run", *hosts.play(*PLAYBOOKS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="*", type=os.path.abspath, default=[realhost.COLLECTION])
    parser.add_argument("--deploy", type=os.path.abspath, help="collection of the first deployment, which is not measured")
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the fastest counts")
    parser.add_argument("--bare", action="store_true", help="print only the seconds of one ansible-playbook with all playbooks and nothing to change")
    parser.add_argument("--slowest", type=int, default=10, help="number of tasks to print")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    hosts = Hosts()
    try:
        hosts.start()
        hosts.use(options.deploy or options.collections[0])
        first = hosts.play(*PLAYBOOKS)[0]
        time.sleep(60)  # nova-compute is looked at more often in its first minute
        if options.bare:
            print("%.1f" % min(hosts.play(*PLAYBOOKS)[0] for _ in range(options.runs)))
            return
        print("%-20s %6.1f s" % ("first deployment", first), flush=True)
        for collection in options.collections:
            hosts.use(collection)
            report(collection, *hosts.play(*PLAYBOOKS))
            measure(hosts, options.runs, options.slowest)
    finally:
        hosts.clear()
        shutil.rmtree(hosts.directory, True)


if __name__ == "__main__":
    main()
