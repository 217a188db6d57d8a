"""A real host for tests of roles: a container with systemd, sshd and podman, and playbooks that run on it over ssh.

Needs root, podman and the images of test/lab/images. EDPM_HOSTS_TEST=1 asks for it. EDPM_HOST_SUITE is the Debian
release of the host, as for test/lab/images/build.sh. EDPM_TEST_PREFIX and EDPM_TEST_SUBNET (first three bytes) keep several runs apart. With EDPM_TEST_KEEP=1 the host stays, and is used again.
E2E_LONG=1 runs the long tests, too.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import runs

COLLECTION = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES = os.path.join(os.path.dirname(COLLECTION), "test", "lab", "images")
NAME = os.environ.get("EDPM_TEST_PREFIX", "edpm-roles")
KEEP = os.environ.get("EDPM_TEST_KEEP") == "1"
SUBNET = os.environ.get("EDPM_TEST_SUBNET", "192.168.124")
IMAGE = "localhost/edpm-host:" + os.environ.get("EDPM_HOST_SUITE", "bookworm")
LIMITS = ["--ulimit", "nofile=16384:16384", "--ulimit", "nproc=16384:16384"]
# A container as the lab starts it; see test/lab/internal/cluster/hosts.go for the reasons.
OPTIONS = ["--privileged", "--cgroupns=private", "--systemd=false", "--env", "container=podman", "--stop-signal", "SIGRTMIN+3",
           "--tmpfs", "/run:rw,mode=755", "--tmpfs", "/run/lock", "--tmpfs", "/tmp", *LIMITS]
long = runs.long


def sh(*command, check=True, timeout=300, **options):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=timeout, check=False, **options)
    if check and ran.returncode != 0:
        raise AssertionError("%s failed with %d: %s" % (" ".join(command), ran.returncode, ran.stdout))
    return ran.stdout.strip()


def script(name, *arguments):
    """Runs a script of the images and returns the path that it prints, if any."""
    return subprocess.run([os.path.join(IMAGES, name), *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout.strip()


class Result:
    """What a playbook did on the host."""

    def __init__(self, code, output):
        self.code, self.output = code, output
        self.changed = self._tasks("changed")

    def _tasks(self, outcome):
        names, name = [], ""
        for line in self.output.splitlines():
            found = re.match(r"(?:TASK|RUNNING HANDLER) \[(?:[\w.]+ : )?(.*)\] \*", line)
            name = found.group(1) if found else name
            if line.startswith(outcome + ": [") and (not names or names[-1] != name):
                names.append(name)
        return names


@unittest.skipUnless(os.environ.get("EDPM_HOSTS_TEST") == "1", "EDPM_HOSTS_TEST=1 is not set")
class HostTest(unittest.TestCase):
    maxDiff = None
    GUEST = ("mkdir -p /run/libvirt/qemu; cd /run/libvirt/qemu; echo 1 > driver.pid; echo 999999 > dead.pid;"
             "systemd-run --unit=guest sleep 600 2>&1; systemctl show --property MainPID --value guest > instance-1.pid")
    # Of commands on the host. The machine of the tests may have cgroups v1 only, of which podman 5 warns in each answer.
    ENVIRONMENT = {"PODMAN_IGNORE_CGROUPSV1_WARNING": "1"}
    # What the host has images of, as store.sh knows them: "nova" has libvirt and nova-compute.
    IMAGES = ()
    # Of another host in the same network, name and address differ.
    name, address = NAME, SUBNET + ".10"

    @classmethod
    def setUpClass(cls):
        cls.directory = os.path.join(tempfile.gettempdir(), NAME) if KEEP else tempfile.mkdtemp(prefix=NAME + "-")
        os.makedirs(cls.directory, exist_ok=True)
        cls.collection()
        if not KEEP:
            cls.addClassCleanup(shutil.rmtree, cls.directory, True)
            cls.addClassCleanup(cls.clear)
        if not KEEP or not os.path.exists(cls.path("key")):
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", cls.path("key"))
            script("load.sh", "edpm-host")
            cls.renew()
        else:
            cls.wait()

    @classmethod
    def renew(cls):
        """Makes the host as it is before anything is deployed."""
        cls.clear()
        sh("podman", "network", "create", "--subnet", SUBNET + ".0/24", NAME)
        cls.start()
        cls.wait()
        cls.host("cat > /etc/environment; umask 337; echo 'Defaults env_file=/etc/environment' > /etc/sudoers.d/environment",
                 text="".join("%s=%s\n" % pair for pair in cls.ENVIRONMENT.items()))

    @classmethod
    def collection(cls):
        tree = cls.path("collections", "ansible_collections", "edpm")
        shutil.rmtree(tree, True)
        os.makedirs(tree)
        os.symlink(COLLECTION, os.path.join(tree, "operators"))

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.directory, *parts)

    @classmethod
    def clear(cls):
        sh("podman", "rm", "--force", "--volumes", "--time", "0", cls.name, check=False)
        sh("podman", "network", "rm", "--force", NAME, check=False)

    @classmethod
    def start(cls):
        images = ["--volume", script("store.sh", *cls.IMAGES) + ":/var/lib/edpm-images:ro"] if cls.IMAGES else []
        sh("podman", "--runtime", "runc", "run", "--detach", "--name", cls.name, "--hostname", cls.name, *OPTIONS,
           "--network", NAME, "--ip", cls.address, "--volume", "/var/lib/containers", *images,
           "--volume", cls.path("key.pub") + ":/etc/edpm-lab/authorized_keys:ro", IMAGE, "/sbin/init")

    @classmethod
    def wait(cls):
        cls.pid = sh("podman", "inspect", "--format", "{{.State.Pid}}", cls.name)
        for _ in range(120):
            if cls.host("systemctl is-system-running", check=False) in ("running", "degraded") and cls.ssh():
                return
            time.sleep(0.5)
        raise AssertionError("the host did not come up: " + cls.host("systemctl list-jobs", check=False))

    @classmethod
    def host(cls, command, check=True, text=None):
        """Runs a shell script as root on the host, with text on its standard input. podman exec takes ten times as long."""
        return sh("nsenter", "--all", "--target", cls.pid, "sh", "-c", command, check=check, input=text or "", env=dict(os.environ, **cls.ENVIRONMENT))

    @classmethod
    def ssh(cls):
        return "up" in sh("ssh", "-i", cls.path("key"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                          "-o", "ConnectTimeout=5", "cloud-admin@" + cls.address, "echo up", check=False, stdin=subprocess.DEVNULL).splitlines()

    def put(self, path, text, mode="644"):
        self.host("mkdir -p $(dirname {0}) && cat > {0} && chmod {1} {0}".format(path, mode), text=text)

    def shim(self, command, pattern, action):
        """Has the roles find something else for calls of command that match pattern. All calls are noted in /run/calls."""
        self.put("/usr/local/sbin/" + command, (
            '#!/bin/sh\necho "%s $*" >> /run/calls\ncase "$*" in %s) %s ;; esac\nPATH=/usr/sbin:/usr/bin:/sbin:/bin exec %s "$@"\n'
            % (command, pattern, action, command)), "755")

    def unshim(self, command):
        self.host("rm -f /usr/local/sbin/" + command)

    def calls(self):
        """Returns the calls of commands with a shim since the last question."""
        return self.host("cat /run/calls 2>/dev/null; rm -f /run/calls", check=False).splitlines()

    def guest(self):
        """Starts what looks like a guest, besides what does not."""
        self.host(self.GUEST)
        self.addCleanup(self.host, "systemctl stop guest", check=False)

    def launch(self, playbook, variables, arguments=()):
        variables = dict(variables, ansible_host=self.address, ansible_user="cloud-admin", edpm_run="r1", edpm_step="test", edpm_hash="h1")
        with open(self.path("hosts.json"), "w", encoding="utf-8") as file:
            json.dump({"all": {"hosts": {"host": variables}}}, file)
        environ = dict(os.environ, ANSIBLE_CONFIG=os.path.join(COLLECTION, "execution-environment", "ansible.cfg"),
                       ANSIBLE_COLLECTIONS_PATH=self.path("collections"), ANSIBLE_HOME=self.path("home"), ANSIBLE_LOCAL_TEMP=self.path("local"),
                       ANSIBLE_CALLBACKS_ENABLED="edpm.operators.recap", EDPM_RECAP_PATH=self.path("recap"), ANSIBLE_PRIVATE_KEY_FILE=self.path("key"), ANSIBLE_SSH_CONTROL_PATH_DIR=self.path("cp"),
                       ANSIBLE_HOST_KEY_CHECKING="False")
        # One of the collection, or a file.
        playbook = playbook if os.path.isabs(playbook) else "edpm.operators." + playbook
        command = ["ansible-playbook", "-i", self.path("hosts.json"), *arguments, playbook]
        return subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                universal_newlines=True, start_new_session=True)

    def run_playbook(self, playbook, *arguments, **variables):
        process = self.launch(playbook, variables, arguments)
        output = process.communicate(timeout=300)[0]
        return Result(process.returncode, output)

    def refused(self, playbook, *arguments, **variables):
        """Returns a run that fails, and the message that the operator gets of it."""
        result = self.run_playbook(playbook, *arguments, **variables)
        self.assertNotEqual(result.code, 0, result.output)
        with open(self.path("recap"), encoding="utf-8") as file:
            return result, json.load(file)["hosts"]["host"][5]

    def succeeds(self, playbook, *arguments, **variables):
        result = self.run_playbook(playbook, *arguments, **variables)
        self.assertEqual(result.code, 0, result.output)
        return result

    def killed(self, playbook, when, **variables):
        """Kills a run as soon as the file when exists on the host, and all that it runs there."""
        process = self.launch(playbook, variables)
        try:
            while process.poll() is None and not os.path.exists("/proc/%s/root%s" % (self.pid, when)):
                time.sleep(0.1)
            finished = process.poll() is not None
            if not finished:
                os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate(timeout=60)[0]
        finally:
            self.host("rm -f {0}; pid=$(cat {0}.pid 2>/dev/null) && kill -KILL $pid $(cat /proc/$pid/task/*/children); rm -f {0}.pid".format(when), check=False)
        self.assertFalse(finished, "the run ended before it could be killed:\n" + output)
