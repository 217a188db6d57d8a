"""Small modules, with commands that answer what the test says."""

import os
import unittest

import modules
import runs


@runs.needs_ansible
class PodmanImageTest(modules.ModuleTest):
    MODULE = "podman_image"

    def setUp(self):
        super().setUp()
        self.image("id1")

    def image(self, name, answer="42436\n42437"):
        self.command("podman", 'case "$*" in "image inspect"*) echo %s;; *" run "*|"run "*) printf "%s\\n";; esac' % (name, answer))

    def look(self, **options):
        return self.done(**dict(dict(name="image:1", questions={"user": "id -u nova"}, podman=self.path("bin", "podman"), directory=self.path("records")), **options))

    def test_a_question_is_asked_once(self):
        for asked in (1, 0, 0):
            answer = self.look(runtime="crun", args=["--privileged"])
            self.assertEqual((answer["changed"], answer["id"], answer["answers"]), (False, "id1", {"user": ["42436", "42437"]}))
            self.assertEqual(self.calls("podman --runtime"), [
                "podman --runtime crun run --rm --network none --pull never --user root --entrypoint /bin/sh --privileged image:1 -c id -u nova"] * asked)

    def test_and_again_if_anything_differs(self):
        for what, before, options in (
                ("the image", lambda: self.image("id2", "1"), {}), ("the question", None, {"questions": {"user": "id -g nova"}}),
                ("arguments", None, {"args": ["--privileged"]}), ("the record is damaged", lambda: self.damage("{"), {}),
                ("the record is none", lambda: self.damage("[1]"), {}), ("the answers are none", lambda: self.damage('{"id": "id2", "answers": 7}'), {})):
            with self.subTest(what):
                self.look()
                self.calls()
                before and before()
                self.look(**options)
                self.assertEqual(len(self.calls("podman run")), 1)

    def damage(self, text):
        self.write("records/" + os.listdir(self.path("records"))[0], text)

    def test_check_mode_asks_and_records_nothing(self):
        self.assertEqual(self.look(check=True)["answers"], {"user": ["42436", "42437"]})
        self.assertFalse(os.path.exists(self.path("records")))

    def test_one_that_the_host_does_not_have(self):
        self.command("podman", "echo no such image >&2; exit 125")
        self.assertEqual([self.look()[key] for key in ("id", "answers")], ["", {}])

    def test_failures(self):
        self.command("podman", "echo storage is damaged >&2; exit 1")
        self.assertIn("storage is damaged", self.failure(name="image:1", podman=self.path("bin", "podman")))
        self.command("podman", 'case "$*" in "image inspect"*) echo id3;; *) echo no such user; exit 1;; esac')
        self.assertIn("Question user to image image:1 failed with exit code 1: no such user", self.failure(
            name="image:1", questions={"user": "id"}, podman=self.path("bin", "podman"), directory=self.path("records")))


@runs.needs_ansible
class MissingPackagesTest(modules.ModuleTest):
    MODULE = "missing_packages"

    def test_databases(self):
        for database, command, output in (("dpkg", "dpkg-query", "installed podman\nconfig-files chrony\n"),
                                          ("rpm", "rpm", "installed podman\npackage chrony is not installed\n")):
            with self.subTest(database):
                self.command(command, "printf '%s'; exit 1" % output)
                answer = self.done(database=database, names=["chrony", "podman", "nft"])
                self.assertEqual((answer["changed"], answer["missing"]), (False, ["chrony", "nft"]))

    def test_no_names(self):
        self.command("rpm", "exit 1")
        self.assertEqual((self.done(database="rpm", names=[])["missing"], self.calls()), ([], []))


@runs.needs_ansible
class UnitsTest(modules.ModuleTest):
    MODULE = "units"

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("units"))
        # systemctl show prints a block for each unit, of which the test says what differs.
        self.command("systemctl", """
case "$1" in show) shift 3; for unit; do cat %s/status-$unit 2>/dev/null || printf 'LoadState=loaded\\nActiveState=inactive\\nUnitFileState=disabled\\nNeedDaemonReload=no\\n'; echo; done;;
daemon-reload) rm -f %s/status-*;; fail) exit 1;; esac""" % (self.directory, self.directory))

    def status(self, unit, active="active", enabled="enabled", reload="no", load="loaded"):
        self.write("status-" + unit, "LoadState=%s\nActiveState=%s\nUnitFileState=%s\nNeedDaemonReload=%s\n" % (load, active, enabled, reload))

    def bring(self, state, **options):
        answer = self.done(state=state, directories=[self.path("units")], **options)
        self.assertEqual(answer["changed"], bool(answer["changes"]))
        return answer["changes"]

    def acted(self):
        return [call.split(" ", 1)[1] for call in self.calls("systemctl") if " show " not in call]

    def test_started(self):
        self.status("runs")
        self.status("static", enabled="static", active="activating")
        names = ["runs", "static", "stopped"]
        self.assertEqual(self.bring("started", names=names, check=True), ["enable stopped", "start stopped"])
        self.assertEqual(self.acted(), [])
        self.bring("started", names=names)
        self.assertEqual(self.acted(), ["enable stopped", "start stopped"])
        self.assertEqual(self.bring("enabled", names=names), ["enable stopped"])
        self.assertEqual(self.bring("started", names=[]), [])

    def test_one_that_does_not_exist(self):
        self.command("systemctl", "printf 'LoadState=not-found\\nActiveState=inactive\\nUnitFileState=\\n'")
        self.assertIn("The host has no unit none. Install its package", self.failure(state="started", names=["none"]))
        self.assertEqual(self.bring("stopped", names=["none"]), [])

    def test_a_unit_that_differs_from_what_systemd_knows(self):
        self.status("a.service", reload="yes")
        self.assertEqual(self.bring("enabled", names=["a.service"], check=True), [])
        self.bring("enabled", names=["a.service"])
        self.assertEqual(self.acted(), ["daemon-reload", "enable a.service"])

    def test_stopped(self):
        for name in ("virtlogd.socket", "virtlogd.service", "virtlogd-admin.socket", "other.service"):
            self.write("units/" + name, "")
        self.status("virtlogd.service")
        self.status("virtlogd.socket", enabled="disabled")
        patterns = ["virt*d*.socket", "virt*d.service", "none*"]
        self.assertEqual(self.bring("stopped", patterns=patterns), ["stop virtlogd.socket", "stop virtlogd.service", "disable virtlogd.service"])
        self.assertEqual(len(os.listdir(self.path("units"))), 4)
        self.assertEqual(self.bring("stopped", patterns=patterns, **{"except": ["virtlogd.service", "virtlogd.socket"]}), [])

    def test_absent(self):
        for name in ("edpm_nova_a.service", "edpm_libvirt_b.service", "edpm_libvirt_c.service"):
            self.write("units/" + name, "")
            self.status(name)
        options = dict(patterns=["edpm_nova_*.service", "edpm_libvirt_*.service"], **{"except": ["edpm_libvirt_c.service"]})
        changes = ["stop edpm_nova_a.service", "disable edpm_nova_a.service", "stop edpm_libvirt_b.service", "disable edpm_libvirt_b.service",
                   "remove " + self.path("units", "edpm_nova_a.service"), "remove " + self.path("units", "edpm_libvirt_b.service")]
        self.assertEqual(self.bring("absent", check=True, **options), changes)
        self.assertEqual((len(os.listdir(self.path("units"))), self.acted()), (3, []))
        self.assertEqual(self.bring("absent", **options), changes)
        self.assertEqual((os.listdir(self.path("units")), self.acted()), (["edpm_libvirt_c.service"], changes[:4]))
        self.assertEqual(self.bring("absent", **options), [])

    def test_one_that_failed_does_not_stay_in_the_list(self):
        self.write("units/edpm_nova_a.service", "")
        self.status("edpm_nova_a.service", active="failed", enabled="static")
        self.assertEqual(self.bring("absent", patterns=["edpm_nova_*.service"])[0], "reset-failed edpm_nova_a.service")

    def test_a_run_that_ended_after_it_removed_files(self):
        self.command("systemctl", '[ "$1" != show ] || echo NeedDaemonReload=yes')
        self.assertEqual(self.bring("absent", patterns=["edpm_*"]), [])
        self.assertEqual(self.acted(), ["daemon-reload"])


if __name__ == "__main__":
    unittest.main()
