"""Reaches a host through a jump host: two real servers of ssh, and runs through the entry point that is shipped.

Needs root, podman and the image of hosts. EDPM_HOSTS_TEST=1 asks for it. Both servers listen on loopback; the host is
reached by a name that only the jump host resolves.
"""

import base64
import json
import os
import re
import shutil
import socket
import tempfile
import time
import unittest

import realhost
import runs

HIDDEN = "edpm-0.behind.test"
SSHD = """Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/{name}_host
AuthorizedKeysFile {directory}/{name}.pub
PidFile none
StrictModes no
UsePAM no
LogLevel VERBOSE
{more}
"""
# Of the jump host: it has no room for a second connection that has not logged in yet.
CROWDED = "MaxStartups 1:100:1"
# No connection of one test is there in the next.
ALONE = {"ANSIBLE_SSH_ARGS": "-o ControlMaster=no -o ConnectTimeout=15 -o PreferredAuthentications=publickey", "ANSIBLE_FORKS": "12"}
PLAY = [{"hosts": "all", "gather_facts": False, "tasks": [{"name": "Say where from", "ansible.builtin.raw": "echo $SSH_CONNECTION"}]}]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """An sshd in a container, with a host key and the key of a user that may log in."""

    def __init__(self, directory, name, more=""):
        self.directory, self.name, self.port = directory, name, free_port()
        self.container = "%s-%s-%d" % (realhost.NAME, name, self.port)
        for key in (name, name + "_host"):
            realhost.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", os.path.join(directory, key))
        config = os.path.join(directory, name + ".conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(SSHD.format(port=self.port, directory=directory, name=name, more=more))
        realhost.sh("podman", "run", "--detach", "--name", self.container, *realhost.LIMITS, "--network", "host", "--add-host", HIDDEN + ":127.0.0.1",
                    "--tmpfs", "/run/sshd:mode=755", "--volume", directory + ":" + directory + ":ro", "--entrypoint", "/usr/sbin/sshd", realhost.IMAGE,
                    "-D", "-e", "-f", config)

    def wait(self):
        for _ in range(100):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError("%s does not listen: %s" % (self.name, self.log()))

    def read(self, file):
        with open(os.path.join(self.directory, file), encoding="utf-8") as text:
            return text.read()

    def key(self):
        """Returns the private key of the user."""
        return self.read(self.name)

    def host_key(self):
        return " ".join(self.read(self.name + "_host.pub").split()[:2])

    def log(self):
        return realhost.sh("podman", "logs", self.container, check=False)

    def logins(self):
        return self.log().count("Accepted publickey for ")

    def remove(self):
        realhost.sh("podman", "rm", "--force", "--time", "0", self.container, check=False)


@unittest.skipUnless(os.environ.get("EDPM_HOSTS_TEST") == "1", "EDPM_HOSTS_TEST=1 is not set")
class JumpHostTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        realhost.script("load.sh", "edpm-host")
        cls.directory = tempfile.mkdtemp(prefix="edpm-jump-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, True)
        os.chmod(cls.directory, 0o755)
        cls.bastion, cls.host = (Server(cls.directory, name, more) for name, more in (("bastion", CROWDED), ("host", "MaxStartups 200")))
        for server in (cls.bastion, cls.host):
            cls.addClassCleanup(server.remove)
            server.wait()

    def setUp(self):
        self.before = self.bastion.logins(), self.host.logins()

    def logins(self):
        """Returns how often the user has logged in to the jump host, and to the host, in this test."""
        return self.bastion.logins() - self.before[0], self.host.logins() - self.before[1]

    def run_play(self, hosts=("edpm-0",), known="", port=None, play=PLAY, **jump):
        """Returns a run on the host by as many names, with the changes of the jump host; None takes it away."""
        jump = dict({"address": "127.0.0.1", "port": self.bastion.port, "user": "root", "sshPrivateKeySecret": "x", "hostKey": self.bastion.host_key()}, **jump)
        key = os.path.join(self.directory, "host")
        variables = {"ansible_host": HIDDEN, "ansible_port": port or self.host.port, "ansible_user": "root", "ansible_ssh_private_key_file": key,
                     "edpm_preflight_token": "t0ken"}
        return runs.Run(play, inventory={"all": {"hosts": {name: {} for name in hosts}, "vars": variables}},
                        files={"jump/ssh-privatekey": self.bastion.key(), "config/known_hosts": known},
                        environment=dict(ALONE, **({} if jump["address"] is None else {"EDPM_JUMP_HOST": json.dumps(jump)})))

    def message(self, run, name="edpm-0"):
        self.assertIn(name, run.recap.get("hosts", {}), run.output)
        return runs.host_of(run.recap, name)[3]

    def named(self, key):
        return "[%s]:%d %s\n" % (HIDDEN, self.host.port, key)

    def test_without_the_jump_host_the_host_is_out_of_reach(self):
        run = self.run_play(address=None)
        self.assertIn("Could not resolve hostname " + HIDDEN, self.message(run))
        self.assertEqual(self.logins(), (0, 0))

    def test_hosts_are_reached_through_one_connection_to_the_jump_host(self):
        names = ["edpm-%d" % number for number in range(12)]
        run = self.run_play(hosts=names)
        self.assertEqual(run.done(), set(names), run.output)
        self.assertEqual(self.logins(), (1, len(names)))
        self.assertEqual(run.recap["hosts"]["edpm-0"][6], self.host.host_key(), "the key of the host is not recorded")

    def test_a_known_host_is_reached(self):
        run = self.run_play(known=self.named(self.host.host_key()))
        self.assertEqual(run.done(), {"edpm-0"}, run.output)

    def test_another_key_of_the_jump_host_is_refused(self):
        run = self.run_play(hostKey=self.host.host_key())
        self.assertRegex(self.message(run), r"^jump host 127\.0\.0\.1 shows another key than its hostKey says, SHA256:\S+: correct jumpHost\.hostKey")
        self.assertEqual(self.logins(), (0, 0))

    def test_another_key_of_the_host_is_refused(self):
        run = self.run_play(known=self.named(self.bastion.host_key()))
        self.assertRegex(self.message(run), r"^the host shows another key than it had, SHA256:\S+: .* edpm\.openstack\.org/host-key")
        self.assertEqual(self.logins(), (1, 0))

    def test_a_user_that_the_jump_host_does_not_know_is_said(self):
        run = self.run_play(user="stranger")
        self.assertIn("jump host 127.0.0.1: Permission denied", self.message(run))
        self.assertEqual(self.logins(), (0, 0))

    def test_a_jump_host_that_is_down_is_told_from_a_host_that_is(self):
        down = free_port()
        self.assertEqual(self.message(self.run_play(port=down)).split(":")[0],
                         "jump host 127.0.0.1 was reached, but does not connect to the host (Session open refused by peer)")
        self.assertEqual(self.message(self.run_play(address="127.0.0.9")),
                         "jump host 127.0.0.9: connect to host 127.0.0.9 port %d: Connection refused" % self.bastion.port)

    def test_the_checks_before_a_deployment_are_made_through_it(self):
        run = self.run_play(play=[{"import_playbook": "edpm.operators.preflight"}])
        result = json.loads(base64.b64decode(re.search(r"EDPM_PREFLIGHT t0ken (\S+?)\"", run.output).group(1)))
        checks = {check["check"]: check["ok"] for check in result["checks"]}
        self.assertEqual([checks[name] for name in ("ssh", "sudo", "python", "time", "dns", "keystone")], [True] * 5 + [None], result)

    def test_the_key_of_the_jump_host_stays_where_it_is(self):
        run = self.run_play()
        self.assertNotIn("PRIVATE KEY", run.output + run.raw)


if __name__ == "__main__":
    unittest.main()
