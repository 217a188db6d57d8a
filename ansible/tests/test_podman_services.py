"""The module that runs containers as services, with a podman and a systemctl that answer what the test says."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
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


class ServicesTest(modules.ModuleTest):
    MODULE = "podman_services"

    def setUp(self):
        super().setUp()
        self.write("units/edpm_b.service", "")
        self.write("units/other.service", "")
        self.write("config/agent.conf", "a")
        self.status = self.write("status", STATUS)
        self.write("labels", "")
        self.says("")
        self.command("podman", 'case "$*" in *State.Pid*) echo c0ffee 10; exit;; esac; case "$1 $2" in "image inspect") shift 4; for i; do echo "id-of-$i"; done;; "container inspect") cat %s;; esac'
                     % self.path("labels"))
        self.command("systemctl", 'case "$1" in show) cat %s;; start|restart) [ ! -e %s ] || { echo broken >&2; exit 1; };; esac'
                     % (self.status, self.path("broken")))
        # As that of systemd 252: in their order it shows the first lines since a time.
        self.command("journalctl", 'case "$*" in *--reverse*) tac {0} | head -n 30;; *) head -n 30 {0};; esac'.format(self.path("log")))

    def says(self, text, ago=0):
        """Makes what the journal has of the service, as it prints it: each line with the seconds since the boot."""
        with open("/proc/uptime") as stream:
            stamp = float(stream.read().split()[0]) - ago
        self.write("log", "".join("[%12.6f] host edpm_agent[7]: %s\n" % (stamp, line) for line in text.splitlines()))

    def service(self, **options):
        return dict({"name": "agent", "description": "An agent", "image": "image:1", "command": ["run", "a b"], "user": "nova", "args": ["--init"],
                     "mounts": ["/dev:/dev"], "optional_mounts": [self.directory + ":/there", "/nonexistent:/x"], "after": ["edpm_b*.service"],
                     "environment": {"b": 1, "A": 'first\nsecond "$1" 5% \\'}, "config_dirs": [self.path("config")]}, **options)

    def arguments(self, check=False, services=None, refused_seconds=3600, rerun="", **options):
        return dict(services=services or [self.service(**options)], podman=self.path("bin", "podman"), runtime="crun", args=["--privileged"],
                    directory=self.path("units"), records=self.path("records"), proc=self.path("proc"), refused_seconds=refused_seconds,
                    rerun=rerun, check=check)

    def run_it(self, **options):
        return self.done(**self.arguments(**options))

    def runs_now(self, name="agent"):
        """Makes the container that the unit of a service describes."""
        text = self.read("units/edpm_%s.service" % name)
        self.write("labels", "edpm_%s %s\n" % (name, text.split("edpm.definition=")[1].split('"')[0]))

    def systemctl(self):
        return [call for call in self.calls("systemctl") if not call.startswith("systemctl show")]


@runs.needs_ansible
class PodmanServicesTest(ServicesTest):
    def test_the_unit(self):
        answer = self.run_it()
        text = self.read("units/edpm_agent.service")
        definition = text.split("edpm.definition=")[1].split('"')[0]
        self.assertRegex(definition, "^[0-9a-f]{64}$")
        self.assertEqual(text, UNIT % {"podman": self.path("bin", "podman"), "directory": self.directory, "definition": definition})
        self.assertEqual(answer["changes"], ["write edpm_agent.service", "restart edpm_agent.service"])
        self.assertEqual(self.systemctl(), ["systemctl daemon-reload", "systemctl restart edpm_agent.service"])
        self.assertEqual([part["after"] for part in answer["diff"]], [text])

    def test_a_restart_waits_for_what_it_would_interrupt(self):
        self.command("busy", "echo >> {0}; [ $(wc -l < {0}) -gt 2 ] || echo guest a has a job".format(self.path("asked")))
        busy = {"busy": [self.path("bin", "busy")], "busy_seconds": 1}
        self.assertIn("guest a has a job. Nothing was restarted", self.failure(**self.arguments(), **busy))
        self.assertFalse(os.path.exists(self.path("units/edpm_agent.service")))
        self.assertEqual(self.systemctl(), [])
        self.assertIn("restart edpm_agent.service", self.done(**self.arguments(), **busy)["changes"])
        self.runs_now()
        self.write("asked", "")
        self.done(**self.arguments(), **busy)
        self.assertEqual(self.read("asked"), "", "nothing is restarted")
        self.assertIn("restart edpm_agent.service", self.done(**self.arguments(image="image:2"), busy=busy["busy"], busy_seconds=0)["changes"])
        self.assertEqual(self.read("asked"), "", "it is not to wait")

    def test_a_run_while_an_earlier_one_is_still_at_work(self):
        """A task that has timed out continues on the host."""
        os.makedirs(self.path("records"))
        earlier = os.open(self.path("records"), os.O_RDONLY)
        fcntl.flock(earlier, fcntl.LOCK_EX)
        self.assertIn("An earlier run is still at work on the services of this host", self.failure(**self.arguments()))
        self.assertEqual((self.systemctl(), os.path.exists(self.path("units/edpm_agent.service"))), ([], False))
        self.assertTrue(self.run_it(check=True)["changed"], "check mode changes nothing")
        os.close(earlier)
        self.assertTrue(self.run_it()["changed"])

    def test_the_unit_of_one_with_another_conmon(self):
        self.run_it(conmon="/there/conmon")
        self.assertIn('  --runtime "crun" \\\n  --conmon "/there/conmon" \\\n  run --detach ', self.read("units/edpm_agent.service"))

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

    def test_a_unit_that_waits_is_in_the_note_of_the_host(self):
        self.run_it()
        self.runs_now()
        self.assertNotIn("edpm_note", self.run_it(keep_running=True))
        self.assertEqual(self.run_it(keep_running=True, user="other")["edpm_note"],
                         "A restart is pending for edpm_agent, which guests need: rerun the step when no guests run")

    def guest(self, pid, cgroup):
        """Makes a guest in a cgroup, beside the process of the container."""
        self.write("guests/driver.pid", "10\n")
        self.write("proc/10/cgroup", "4:pids:/\n1:name=systemd:/machine.slice/libpod-c0ffee.scope\n")
        self.write("guests/a.pid", pid)
        self.write("proc/11/cgroup", cgroup)

    def with_guests(self, **options):
        return self.run_it(guest_pid_files=[self.path("guests/*.pid")], **options)

    def test_a_guest_in_a_cgroup_of_the_container_keeps_it_running(self):
        self.with_guests()
        for what, pid, cgroup, waits in (
                ("in all of its cgroups", "11", "4:pids:/\n1:name=systemd:/machine.slice/libpod-c0ffee.scope\n", True),
                ("below one of its cgroups", "11", "0::/machine.slice/libpod-c0ffee.scope/machine/qemu-1\n", True),
                ("in one of its cgroups", "11", "4:pids:/machine.slice/libpod-c0ffee.scope\n1:name=systemd:/machine/qemu-1\n", True),
                ("in a scope of its own", "11", "4:pids:/\n1:name=systemd:/machine.slice/machine-qemu-1.scope\n", False),
                ("that no longer runs", "12", "", False),
                ("that is only about to start", "", "", False),
        ):
            with self.subTest("a guest " + what):
                self.guest(pid, cgroup)
                self.write("labels", "edpm_agent of-the-one-before\n")
                self.calls()
                answer = self.with_guests()
                self.assertEqual((answer["waiting"], self.calls("systemctl restart")),
                                 (["edpm_agent.service"], []) if waits else ([], ["systemctl restart edpm_agent.service"]))

    def test_files_with_process_ids_that_others_have_written(self):
        self.with_guests()
        self.guest("../11", "1:name=systemd:/machine.slice/libpod-c0ffee.scope\n")
        os.symlink("/dev/zero", self.path("guests/endless.pid"))
        os.mkfifo(self.path("guests/waits.pid"))
        self.write("labels", "edpm_agent of-the-one-before\n")
        self.assertEqual(self.with_guests()["waiting"], [])

    def test_guests_of_a_container_that_is_as_it_should_be(self):
        self.with_guests()
        self.runs_now()
        self.guest("11", "1:name=systemd:/machine.slice/libpod-c0ffee.scope\n")
        self.calls()
        answer = self.with_guests()
        self.assertEqual((answer["waiting"], len(self.calls("podman"))), ([], 2), "nobody asks for its cgroups")

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
        self.says("\n".join(["early"] * 40 + ["b" * 64, "starting", "ERROR cannot reach rabbit://u:S3cret@host/", "edpm_agent failed", "bye"]) + "\n")
        message = self.failure(**self.arguments())
        words, said = message.split(" -- last lines of its log: ")
        self.assertEqual(words, "edpm_agent.service does not stay up: ERROR cannot reach rabbit://***@host/")
        self.assertEqual(said.split(" | ")[-4:], ["starting", "ERROR cannot reach rabbit://***@host/", "edpm_agent failed", "bye"])

    def test_the_message_in_a_line_of_oslo_log(self):
        self.write("status", STATUS.replace("=active", "=activating", 1))
        self.says("2026-11-23 02:16:37.433 6 ERROR nova.virt [None req-8787be52 - - - - - -] Cannot load [it]\n")
        self.assertTrue(self.failure(**self.arguments()).startswith("edpm_agent.service does not stay up: Cannot load [it] -- "))

    def test_one_that_prints_much_after_the_line_that_is_waited_for(self):
        self.says("Started\n" + ("x" * 10000 + "\n") * 29)
        self.run_it(settle_seconds=0, speak_seconds=10 ** 9, speak_pattern="Started")

    def test_one_whose_every_line_is_waited_for(self):
        self.says(("Started " + "x" * 10000 + "\n") * 29)
        self.run_it(settle_seconds=0, speak_seconds=10 ** 9, speak_pattern=".")

    def ends_after(self, seconds):
        self.command("systemctl", 'case "$1" in show) if [ $(($(date +%%s) - %d)) -ge %d ]; then sed s/=active/=activating/ %s; else cat %s; fi;; esac'
                     % (time.time(), seconds, self.status, self.status))

    def test_one_that_takes_seconds_to_end_after_an_error(self):
        self.says("2026-11-25 10:50:37.115 6 CRITICAL nova [-] Unhandled error: refused\n")
        self.ends_after(6)
        failure = self.failure(**self.arguments(settle_seconds=0, speak_seconds=10 ** 9, speak_pattern="Started|CRITICAL"))
        self.assertTrue(failure.startswith("edpm_agent.service does not stay up: Unhandled error: refused -- "), failure)

    def test_an_error_is_not_the_line_that_is_waited_for(self):
        self.says("2026-11-25 10:50:37.115 6 ERROR agent [-] Not yet\n")
        self.ends_after(18)
        self.failure(**self.arguments(settle_seconds=0, speak_seconds=10 ** 9, speak_pattern="Started"))

    def test_one_that_printed_it_long_ago_is_not_waited_for(self):
        self.says("2026-11-25 10:50:37.115 6 INFO agent [-] Started\n", ago=60)
        self.ends_after(3)
        self.run_it(settle_seconds=0, speak_seconds=10 ** 9, speak_pattern="Started")
        self.says("2026-11-25 10:50:37.115 6 INFO agent [-] Started\n")
        self.failure(**self.arguments(settle_seconds=0, speak_seconds=10 ** 9, speak_pattern="Started"))

    def test_one_that_says_when_it_tries_again_does_not_end(self):
        for error in ("Connection failed: [Errno 111] Connection refused (retrying in 1.0 seconds): ConnectionRefusedError: [Errno 111] Connection refused",
                      "[6e0b] AMQP server on 192.0.2.1:5672 is unreachable: timed out. Trying again in 1 seconds.: socket.timeout: timed out"):
            self.says("2026-11-25 19:35:45.454 1 ERROR oslo.messaging._drivers.impl_rabbit [None req-b89ba67e - - - - - -] " + error + "\n")
            self.ends_after(9)
            self.run_it(settle_seconds=0, speak_seconds=10 ** 9, speak_pattern=" ERROR ")

    def test_nobody_reads_the_log_of_one_that_is_up_for_long(self):
        self.run_it()
        self.assertEqual(self.calls("journalctl"), [])

    def test_the_exception_of_a_traceback(self):
        self.write("status", STATUS.replace("=active", "=activating", 1))
        at = "2026-11-24 20:08:46.634 6 "
        for end in ("ERROR nova ", "ERROR nova", "ERROR nova \x1b[00m"):
            self.says("\n".join([
                at + "CRITICAL nova [-] Unhandled error: amqp.exceptions.AccessRefused: (403) ACCESS_REFUSED", at + "ERROR nova Traceback (most recent call last):",
                at + 'ERROR nova   File "kombu/functional.py", line 312, in retry_over_time', at + "ERROR nova     raise error",
                at + "ERROR nova amqp.exceptions.AccessRefused: (403) ACCESS_REFUSED", at + end]) + "\n")
            self.assertTrue(self.failure(**self.arguments()).startswith("edpm_agent.service does not stay up: amqp.exceptions.AccessRefused: (403) ACCESS_REFUSED -- "))

    def test_one_that_does_not_start(self):
        self.write("broken", "")
        self.assertIn("edpm_agent.service does not stay up: broken", self.failure(**self.arguments()))

    def test_an_image_that_the_host_does_not_have(self):
        self.command("podman", "echo no such image >&2; exit 125")
        self.assertIn("The host does not have all images image:1: no such image", self.failure(**self.arguments()))


# A service that does not start with bad in its configuration or image. Its container has the label in its unit, and none if it does not start.
SYSTEMCTL = r"""
unit=units/$2; name=${2%%.service}
case "$*" in *edpm-health-*) [ ! -e unhealthy ] && ! grep -q bad config/agent.conf; exit;; esac
case "$1" in
show) if [ -e failed ]; then sed s/=active/=activating/ status; else cat status; fi;;
start|restart)
  sed -i "/^$name /d" labels
  if grep -q bad config/agent.conf || grep -q '"bad"' "$unit" || [ -e never ]; then touch failed; echo broken >&2; exit 1; fi
  rm -f failed
  [ ! -e killed ] || { kill -9 $PPID; exit; }
  sed -n "s/.*edpm.definition=\\([0-9a-f]*\\).*/$name \\1/p" "$unit" >> labels;;
esac"""


@runs.needs_ansible
class RollbackTest(ServicesTest):
    """What services came up with is put back if they do not come up with something else."""

    def setUp(self):
        super().setUp()
        self.command("systemctl", "cd %s; %s" % (self.directory, SYSTEMCTL))
        self.run_it(settle_seconds=0)
        self.good = self.read("units/edpm_agent.service")
        self.calls()

    def arguments(self, **options):
        return super().arguments(**dict({"settle_seconds": 0}, **options))

    def steps(self):
        return [call.replace("systemctl ", "").replace(".service", "") for call in self.systemctl()]

    def test_configuration_and_unit_are_put_back(self):
        self.write("config/agent.conf", "bad", 0o600)
        self.write("config/deep/more.conf", "")
        message = self.failure(**self.arguments(user="other"))
        self.assertEqual(message, "Rolled back, edpm_agent.service does not stay up: broken -- last lines of its log: ")
        self.assertEqual((self.read("config/agent.conf"), os.listdir(self.path("config"))), ("a", ["agent.conf"]))
        self.assertEqual(os.stat(self.path("config", "agent.conf")).st_mode & 0o777, 0o644)
        self.assertEqual(self.read("units/edpm_agent.service"), self.good.replace('"image:1"', '"id-of-image:1"'))
        self.assertEqual(self.steps(), ["daemon-reload", "restart edpm_agent"] * 2)
        # Once more, and then what ran before, which runs already.
        self.write("config/agent.conf", "bad")
        self.assertIn("Rolled back", self.failure(**self.arguments()))
        self.calls()
        self.assertEqual((self.run_it()["changes"], self.steps()), (["write edpm_agent.service"], ["daemon-reload"]))
        self.assertEqual(self.read("units/edpm_agent.service"), self.good)
        self.assertEqual(self.run_it()["changes"], [])

    def test_another_image(self):
        self.assertIn("Rolled back", self.failure(**self.arguments(image="bad")))
        self.assertIn('"id-of-image:1"', self.read("units/edpm_agent.service"))

    def killed(self):
        """Has a run killed while the service starts."""
        self.write("killed", "")
        with self.assertRaises(AssertionError):
            self.module(**self.arguments())
        os.unlink(self.path("killed"))

    def test_a_run_that_is_killed(self):
        self.write("config/agent.conf", "b")
        self.killed()
        self.assertIn("restart edpm_agent.service", self.run_it()["changes"])
        self.assertEqual(self.read("config/agent.conf"), "b")

    def test_a_run_after_one_that_was_killed(self):
        self.write("config/agent.conf", "b")
        self.killed()
        self.write("config/agent.conf", "bad")
        self.assertIn("Rolled back", self.failure(**self.arguments()))
        self.assertEqual(self.read("config/agent.conf"), "a", "nobody saw the service come up with b")

    def test_nothing_came_up_before(self):
        shutil.rmtree(self.path("records"))
        self.write("config/agent.conf", "bad")
        self.assertTrue(self.failure(**self.arguments()).startswith("edpm_agent.service does not stay up: broken"))
        self.assertEqual((self.read("config/agent.conf"), self.steps()), ("bad", ["daemon-reload", "restart edpm_agent"]))
        self.assertEqual(self.tree("records"), [], "it is tried in every run")

    def test_what_came_up_before_does_not_come_up_again(self):
        self.write("config/agent.conf", "b")
        self.write("never", "")
        complaint = "edpm_agent.service does not stay up: broken -- last lines of its log: "
        self.assertEqual(self.failure(**self.arguments()), complaint + " -- what ran before does not come up either: " + complaint)
        self.assertFalse(os.path.exists(self.path(self.REFUSED)), "nothing runs that could be kept")

    def test_several_services(self):
        """One that was not restarted yet keeps running as it was."""
        services = [self.service(name=name, after=[], settle_seconds=0) for name in ("one", "two")]
        self.run_it(services=services)
        self.calls()
        self.write("config/agent.conf", "bad")
        self.failure(**self.arguments(services=services))
        self.assertEqual(self.steps(), ["daemon-reload", "restart edpm_one", "daemon-reload", "restart edpm_one"])

    def test_one_that_fails_with_what_it_came_up_with(self):
        self.write("labels", "")
        self.write("never", "")
        self.assertTrue(self.failure(**self.arguments()).startswith("edpm_agent.service does not stay up: broken"))
        self.assertEqual(self.steps(), ["daemon-reload", "restart edpm_agent"])

    def test_what_is_kept(self):
        kept = os.listdir(self.path("records", "agent"))
        self.assertEqual(len(kept), 1)
        self.assertEqual(os.stat(self.path("records", "agent")).st_mode & 0o777, 0o700)
        self.write("config/agent.conf", "b")
        self.write("records/agent/.begun/0", "")
        self.write("records/gone/1/service.json", "")
        before = self.tree("records")
        self.run_it(check=True)
        self.assertEqual(self.tree("records"), before, "check mode keeps nothing")
        self.run_it()
        self.assertEqual(os.listdir(self.path("records")), ["agent"], "records of services without a unit are removed")
        self.assertNotEqual(os.listdir(self.path("records", "agent")), kept)
        self.assertEqual(len(self.tree("records/agent")), 2, "a unit and a file")

    def test_what_is_kept_survives_a_loss_of_power(self):
        self.note_writes()
        self.write("config/agent.conf", "b")
        self.run_it()
        definition = os.listdir(self.path("records", "agent"))[0]
        self.assertEqual(self.writes("agent.conf", "service.json", definition)[-4:],
                         ["fsync temporary", "rename agent.conf", "fsync service.json", "rename " + definition])

    def test_what_a_loss_of_power_has_emptied_is_kept_again(self):
        """Earlier versions did not have the disk store what they kept."""
        name = "records/agent/%s/service.json" % os.listdir(self.path("records", "agent"))[0]
        description = self.read(name)
        for text in ("", "{}", "[]"):
            with self.subTest(text):
                self.write(name, text)
                self.assertEqual(self.run_it()["changes"], [])
                self.assertEqual(self.read(name), description)
        self.write(name, "")
        message, _ = self.bad()
        self.assertTrue(message.startswith("edpm_agent.service does not stay up"), "there is nothing that could be put back: " + message)

    def tree(self, name):
        return sorted(os.path.join(place, file) for place, _, files in os.walk(self.path(name)) for file in files)

    REFUSED = "records/agent/.refused.json"
    RESTARTS = ["daemon-reload", "restart edpm_agent"]

    def bad(self, **options):
        """Returns why a run with bad configuration fails, without the time, and what systemctl did."""
        self.write("config/agent.conf", "bad")
        self.says("ERROR rabbit://u:S3cret@host/\nbye\n")
        message = self.failure(**self.arguments(**options))
        return re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", message), self.steps()

    def tried(self, **options):
        """Makes sure that a run tries a bad configuration, and rolls it back."""
        message, steps = self.bad(**options)
        self.assertTrue(message.startswith("Rolled back, edpm_agent.service does not stay up: ERROR rabbit://***@host/ -- "), message)
        self.assertEqual(steps, self.RESTARTS * 2)

    def refused(self, **options):
        """Makes sure that a run does not try it."""
        message, steps = self.bad(**options)
        self.assertEqual(message, "Rolled back earlier: edpm_agent.service does not stay up: ERROR rabbit://***@host/. It is tried again after TIME, "
                                  "or at once with another configuration or a rerun -- last lines of its log: ERROR rabbit://***@host/ | bye")
        self.assertEqual(steps, ["daemon-reload"], "a service that works was restarted")

    def test_what_was_rolled_back_is_not_tried_in_the_next_runs(self):
        labels = self.read("labels")
        self.tried()
        self.assertEqual(os.stat(self.path(self.REFUSED)).st_mode & 0o777, 0o600)
        self.assertNotIn("S3cret", self.read(self.REFUSED))
        for _ in range(2):
            self.refused()
            self.assertEqual((self.read("config/agent.conf"), self.read("labels")), ("a", labels))
            self.assertEqual(self.read("units/edpm_agent.service"), self.good.replace('"image:1"', '"id-of-image:1"'))

    def test_another_configuration_is_tried_at_once(self):
        self.tried()
        self.write("config/agent.conf", "b")
        self.assertIn("restart edpm_agent.service", self.run_it()["changes"])
        self.assertEqual(self.read("config/agent.conf"), "b")

    def test_what_was_rolled_back_is_tried_once_for_each_rerun(self):
        self.tried()
        for token in ("first", "second"):
            self.tried(rerun=token)
            self.refused(rerun=token)

    def test_what_was_not_tried_to_its_end_is_tried_in_the_next_run(self):
        trap = self.path("trap")
        self.write("trap", "")
        self.command("systemctl", "case $1 in restart) [ ! -e {0} ] || {{ rm {0}; kill -KILL $$; }};; esac; cd {1}; {2}".format(trap, self.directory, SYSTEMCTL))
        self.assertTrue(self.bad()[0].startswith("Rolled back, "))
        self.assertFalse(os.path.exists(trap))
        self.assertFalse(os.path.exists(self.path(self.REFUSED)), "systemctl was killed, and the service is refused for it")
        self.tried()

    def test_a_success_forgets_what_was_rolled_back(self):
        self.tried()
        self.assertEqual((self.run_it()["changes"], self.steps()), (["write edpm_agent.service"], ["daemon-reload"]), "it ran with this already")
        self.assertFalse(os.path.exists(self.path(self.REFUSED)))
        self.tried()

    def test_what_was_rolled_back_is_tried_when_its_time_is_over(self):
        self.tried()
        self.tried(refused_seconds=0)
        self.refused(refused_seconds=60)
        found = json.loads(self.read(self.REFUSED))
        for what, seconds in (("long ago", -61), ("in the future, as the clock was set back", 1000)):
            with self.subTest(what):
                self.write(self.REFUSED, json.dumps(dict(found, time=found["time"] + seconds)))
                self.tried(refused_seconds=60)
        self.refused(refused_seconds=60)

    def test_a_damaged_file_refuses_nothing(self):
        self.tried()
        found = json.loads(self.read(self.REFUSED))
        for text in ("", "{", "[]", "1", "{}", json.dumps(dict(found, time="today"))):
            with self.subTest(text):
                self.write(self.REFUSED, text)
                self.tried()

    def test_what_was_rolled_back_is_tried_at_once_if_what_runs_is_not_active(self):
        self.tried()
        self.write("failed", "")
        self.tried()

    def test_what_was_rolled_back_is_tried_in_the_next_run_if_what_runs_is_not_healthy(self):
        """As its message bus has the new password by now, for example."""
        check = self.write("units/edpm-health-agent.service", "")
        self.tried()
        self.write("unhealthy", "")
        for _ in range(2):
            message, steps = self.bad()
            self.assertIn("ERROR rabbit://***@host/. It is tried again in the next run, as what runs instead is not healthy, or at once with", message)
            self.assertEqual(steps, ["daemon-reload", "start edpm-health-agent"])
            self.assertEqual(self.read("config/agent.conf"), "a")
            self.tried()
        os.unlink(self.path("unhealthy"))
        for _ in range(2):
            self.assertEqual(self.bad()[1], ["daemon-reload", "start edpm-health-agent"])
        os.unlink(check)
        self.refused()

    def test_what_runs_is_replaced_if_it_is_not_what_came_up_before(self):
        self.tried()
        self.write("labels", "edpm_agent of-a-run-that-was-killed\n")
        self.assertEqual(self.bad()[1], self.RESTARTS)

    def test_check_mode_refuses_nothing_and_writes_nothing(self):
        self.tried()
        self.write("config/agent.conf", "bad")
        before = self.read("units/edpm_agent.service"), self.read(self.REFUSED)
        self.assertIn("restart edpm_agent.service", self.run_it(check=True)["changes"])
        self.assertEqual((self.read("units/edpm_agent.service"), self.read(self.REFUSED)), before)
        self.assertEqual((self.read("config/agent.conf"), self.steps()), ("bad", []))

    def test_only_the_service_that_broke_is_remembered(self):
        def services(user, image):
            return [self.service(name="one", user=user, after=[], settle_seconds=0), self.service(name="two", image=image, after=[], settle_seconds=0)]
        self.run_it(services=services("nova", "image:1"))
        self.calls()
        both = self.arguments(services=services("other", "bad"))
        self.assertIn("Rolled back, edpm_two.service", self.failure(**both))
        self.assertEqual(self.steps(), ["daemon-reload", "restart edpm_one", "restart edpm_two"] * 2)
        self.assertEqual([name for name in self.tree("records") if name.endswith("refused.json")], [self.path("records", "two", ".refused.json")])
        self.assertIn("Rolled back earlier: edpm_two.service", self.failure(**both))
        self.assertEqual(self.steps(), ["daemon-reload"])
        self.assertIn("restart edpm_one.service", self.run_it(services=services("other", "image:1"))["changes"])

    def test_a_new_service_that_breaks_does_not_restart_the_others_in_each_run(self):
        services = [self.service(user="other"), self.service(name="new", image="bad", after=[])]
        self.assertIn("Rolled back, edpm_new.service", self.failure(**self.arguments(services=services)))
        self.assertEqual(self.steps(), ["daemon-reload", "restart edpm_agent", "restart edpm_new", "daemon-reload", "restart edpm_agent"])
        self.assertIn("Rolled back earlier: edpm_new.service", self.failure(**self.arguments(services=services)))
        self.assertEqual(self.steps(), ["daemon-reload"])


@runs.needs_ansible
class HealthTest(ServicesTest):
    """Timers check whether services are well."""

    UNITS = ["edpm-health-agent.service", "edpm-health-agent.timer"]

    def setUp(self):
        super().setUp()
        # What systemd knows of a timer is in a file of its name.
        self.command("systemctl", """
case "$*" in *NeedDaemonReload*) while [ "$1" != -- ]; do shift; done; shift; for unit; do echo "Id=$unit"; cat {0}/$unit 2>/dev/null; echo; done;;
show*) cat {1};; esac""".format(self.directory, self.status))
        self.run_it()
        self.runs_now()
        self.calls()

    def timer(self, reload="no"):
        self.write(self.UNITS[1], "ActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=%s\n" % reload)

    def units(self):
        return sorted(name for name in os.listdir(self.path("units")) if "health" in name)

    def check_health(self, **options):
        return self.run_it(health=["virsh", "a b$"], **options)["changes"]

    def test_a_timer_checks_it(self):
        changes = ["write " + name for name in self.UNITS] + ["enable edpm-health-agent.timer", "start edpm-health-agent.timer"]
        self.assertEqual((self.check_health(check=True), self.units(), self.systemctl()), (changes, [], []))
        self.assertEqual(self.check_health(), changes)
        self.assertEqual(self.systemctl(), ["systemctl daemon-reload", "systemctl enable edpm-health-agent.timer", "systemctl start edpm-health-agent.timer"])
        text = self.read("units/edpm-health-agent.service")
        self.assertIn('\nExecStart=%s --runtime "crun" exec --user root edpm_agent "virsh" "a b$$"\n' % self.path("bin", "podman"), text)
        self.assertNotIn("Restart", text)
        self.assertIn("\nOnUnitInactiveSec=120\n", self.read("units/edpm-health-agent.timer"))
        self.timer()
        for check in (False, True):
            self.assertEqual((self.check_health(check=check), self.systemctl()), ([], []))

    def test_another_check_restarts_nothing(self):
        self.check_health()
        self.timer()
        self.calls()
        self.assertEqual(self.run_it(health=["other"])["changes"], ["write edpm-health-agent.service"])
        self.assertEqual(self.systemctl(), ["systemctl daemon-reload"])

    def test_a_run_that_ended_after_it_wrote_them(self):
        self.check_health()
        self.timer(reload="yes")
        self.calls()
        self.assertEqual((self.check_health(), self.systemctl()), ([], ["systemctl daemon-reload"]))

    def test_one_that_is_no_longer_asked_for(self):
        for options in ({"health": []}, {"health": ["virsh"], "health_seconds": 0}):
            with self.subTest(options):
                self.check_health()
                self.timer()
                self.calls()
                changes = ["disable --now edpm-health-agent.timer", "remove edpm-health-agent.timer", "remove edpm-health-agent.service"]
                seconds = options.get("health_seconds", 120)
                arguments = dict(self.arguments(health=options["health"]), health_seconds=seconds)
                self.assertEqual(self.done(**dict(arguments, check=True))["changes"], changes)
                self.assertEqual((self.done(**arguments)["changes"], self.units()), (changes, []))
                self.assertIn("systemctl reset-failed edpm-health-agent.service", self.systemctl())

    def test_those_of_services_that_no_longer_exist_go_and_others_stay(self):
        for name in ("gone", "b"):
            for kind in ("timer", "service"):
                self.write("units/edpm-health-%s.%s" % (name, kind), "")
        self.run_it()
        self.assertEqual(self.units(), ["edpm-health-b.service", "edpm-health-b.timer"])


if __name__ == "__main__":
    unittest.main()
