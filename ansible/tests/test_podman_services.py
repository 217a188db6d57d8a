"""The module that runs containers as services, with a podman and a systemctl that answer what the test says."""

import hashlib
import json
import unittest

import modules
import runs

UNIT = """# Written by the role edpm.operators.edpm_service, which overwrites changes.
[Unit]
Description=An agent
Documentation=man:podman-run(1)
Wants=network-online.target edpm_b.service
After=network-online.target edpm_b.service
RequiresMountsFor=/run/containers /var/lib/containers
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=all
# What the container prints is in the journal under this name.
SyslogIdentifier=edpm_agent
Environment=PODMAN_SYSTEMD_UNIT=%%n
Restart=always
RestartSec=5
TimeoutStartSec=300
# Ended by SIGTERM, as asked.
SuccessExitStatus=143
TimeoutStopSec=60
ExecStartPre=/bin/rm -f %%t/%%n.cid
ExecStart=%(podman)s \\
  --runtime "crun" \\
  run --detach --rm --replace --name edpm_agent \\
  --cidfile %%t/%%n.cid --sdnotify conmon --cgroups no-conmon --log-driver passthrough --pull never \\
  --label "edpm.definition=%(definition)s" \\
  --user "nova" \\
  --env "A=first\\nsecond \\"$$1\\" 5%%%% \\\\" \\
  --env "b=1" \\
  --volume "/dev:/dev" \\
  --volume "%(directory)s:/there" \\
  "--privileged" \\
  "--init" \\
  "image:1" "run" "a b"
ExecStop=%(podman)s stop --ignore --time 30 --cidfile %%t/%%n.cid
ExecStopPost=%(podman)s rm --ignore --force --cidfile %%t/%%n.cid

[Install]
WantedBy=multi-user.target
"""
STATUS = "ActiveState=active\nUnitFileState=enabled\nNRestarts=0\nActiveEnterTimestampMonotonic=1\nExecMainStartTimestampMonotonic=1\n"


@runs.needs_ansible
class PodmanServicesTest(modules.ModuleTest):
    MODULE = "podman_services"

    def setUp(self):
        super().setUp()
        self.write("units/edpm_b.service", "")
        self.write("units/other.service", "")
        self.write("config/agent.conf", "a")
        self.status = self.write("status", STATUS)
        self.write("labels", "")
        self.write("log", "")
        self.command("podman", 'case "$1 $2" in "image inspect") shift 4; for i; do echo "id-of-$i"; done;; "container inspect") cat %s;; esac'
                     % self.path("labels"))
        self.command("systemctl", 'case "$1" in show) cat %s;; start|restart) [ ! -e %s ] || { echo broken >&2; exit 1; };; esac'
                     % (self.status, self.path("broken")))
        self.command("journalctl", "cat %s" % self.path("log"))

    def service(self, **options):
        return dict({"name": "agent", "description": "An agent", "image": "image:1", "command": ["run", "a b"], "user": "nova", "args": ["--init"],
                     "mounts": ["/dev:/dev"], "optional_mounts": [self.directory + ":/there", "/nonexistent:/x"], "after": ["edpm_b*.service"],
                     "environment": {"b": 1, "A": 'first\nsecond "$1" 5% \\'}, "config_dirs": [self.path("config")]}, **options)

    def arguments(self, check=False, services=None, **options):
        return dict(services=services or [self.service(**options)], podman=self.path("bin", "podman"), runtime="crun", args=["--privileged"],
                    directory=self.path("units"), check=check)

    def run_it(self, **options):
        return self.done(**self.arguments(**options))

    def runs_now(self, name="agent"):
        """Makes the container that the unit of a service describes."""
        text = self.read("units/edpm_%s.service" % name)
        self.write("labels", "edpm_%s %s\n" % (name, text.split("edpm.definition=")[1].split('"')[0]))

    def systemctl(self):
        return [call for call in self.calls("systemctl") if not call.startswith("systemctl show")]

    def test_the_unit(self):
        answer = self.run_it()
        text = self.read("units/edpm_agent.service")
        definition = text.split("edpm.definition=")[1].split('"')[0]
        self.assertRegex(definition, "^[0-9a-f]{64}$")
        self.assertEqual(text, UNIT % {"podman": self.path("bin", "podman"), "directory": self.directory, "definition": definition})
        self.assertEqual(answer["changes"], ["write edpm_agent.service", "restart edpm_agent.service"])
        self.assertEqual(self.systemctl(), ["systemctl daemon-reload", "systemctl restart edpm_agent.service"])
        self.assertEqual([part["after"] for part in answer["diff"]], [text])

    def test_the_definition_is_that_of_earlier_versions(self):
        """Another one would restart the services of every host when the operator is upgraded."""
        self.run_it()
        text = self.read("units/edpm_agent.service")
        definition = text.split("edpm.definition=")[1].split('"')[0]
        without = text.replace(definition, "")
        self.assertIn(' "run" "a b"\nExecStop=', without, "there was no empty line")
        described = [without, "id-of-image:1", {self.path("config", "agent.conf"): "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"}]
        self.assertEqual(definition, hashlib.sha256(json.dumps(described).encode()).hexdigest())

    def test_nothing_differs(self):
        self.run_it()
        self.runs_now()
        self.calls()
        for check in (False, True):
            answer = self.run_it(check=check)
            self.assertEqual((answer["changed"], answer["changes"], answer["waiting"], answer["diff"]), (False, [], [], []))
            self.assertEqual(self.systemctl(), [])

    def test_what_is_read_decides_about_a_restart(self):
        for what, differs in (("configuration", lambda: self.write("config/agent.conf", "b")), ("a new file", lambda: self.write("config/deep/.x", "")),
                              ("another image", lambda: None)):
            with self.subTest(what):
                self.run_it()
                self.runs_now()
                self.calls()
                differs()
                image = {"image": "image:2"} if what == "another image" else {}
                self.assertIn("restart edpm_agent.service", self.run_it(check=True, **image)["changes"])
                self.assertEqual(self.systemctl(), [], "check mode changes nothing")
                self.run_it(**image)
                self.assertEqual(self.systemctl(), ["systemctl daemon-reload", "systemctl restart edpm_agent.service"])

    def test_a_run_that_ended_after_it_wrote_the_unit(self):
        self.run_it()
        self.write("labels", "edpm_agent of-the-one-before\n")
        self.calls()
        self.assertEqual(self.run_it()["changes"], ["restart edpm_agent.service"])
        self.assertEqual(self.systemctl(), ["systemctl daemon-reload", "systemctl restart edpm_agent.service"])

    def test_keep_running(self):
        self.run_it()
        self.write("labels", "edpm_agent of-the-one-before\n")
        self.calls()
        answer = self.run_it(keep_running=True)
        self.assertEqual((answer["changed"], answer["waiting"], self.calls("systemctl restart", "systemctl start")), (False, ["edpm_agent.service"], []))
        self.write("status", STATUS.replace("=active", "=inactive", 1))
        self.assertIn("edpm_agent.service does not stay up", self.failure(**self.arguments(keep_running=True)))
        self.assertEqual(self.calls("systemctl restart", "systemctl start"), ["systemctl restart edpm_agent.service"])

    def test_one_that_is_stopped_or_disabled(self):
        self.run_it()
        self.runs_now()
        self.calls()
        self.write("status", STATUS.replace("=enabled", "=disabled").replace("=active", "=failed", 1))
        self.assertEqual(self.run_it(check=True)["changes"], ["enable edpm_agent.service", "start edpm_agent.service"])

    def test_several(self):
        first, second = self.service(name="first", after=[]), self.service(name="second", image="image:2", after=["edpm_first.service"])
        self.assertEqual(self.run_it(services=[first, second])["changes"], [
            "write edpm_first.service", "write edpm_second.service", "restart edpm_first.service", "restart edpm_second.service"])
        self.assertEqual(len(self.calls("podman")), 2, "podman is asked for all of them at once")

    def test_one_that_does_not_stay_up(self):
        self.write("status", STATUS.replace("=active", "=activating", 1))
        self.write("log", "\n".join(["b" * 64, "starting", "ERROR cannot reach rabbit://u:S3cret@host/", "edpm_agent failed", "bye"]) + "\n")
        message = self.failure(**self.arguments())
        self.assertEqual(message, "edpm_agent.service does not stay up: ERROR cannot reach rabbit://***@host/ -- last lines of its log: starting | "
                                  "ERROR cannot reach rabbit://***@host/ | edpm_agent failed | bye")

    def test_one_that_does_not_start(self):
        self.write("broken", "")
        self.assertIn("edpm_agent.service does not stay up: broken", self.failure(**self.arguments()))

    def test_an_image_that_the_host_does_not_have(self):
        self.command("podman", "echo no such image >&2; exit 125")
        self.assertIn("The host does not have all images image:1: no such image", self.failure(**self.arguments()))


if __name__ == "__main__":
    unittest.main()
