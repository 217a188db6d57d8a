"""A change of the network that is not confirmed leaves the files as they were, whenever it is interrupted."""

import contextlib
import importlib.util
import io
import os
import signal
import tempfile
import time
import unittest
from unittest import mock

ROLE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "roles", "edpm_network")
SPEC = importlib.util.spec_from_file_location("network_change", os.path.join(ROLE, "files", "network_change.py"))
change = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(change)

TOOL = ["os-net-config", "--detailed-exit-codes"]


class Killed(BaseException):
    pass


class NetworkChangeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        self.calls, self.codes, self.dies_at = [], {}, None
        paths = {name: self.root + getattr(change, name) for name in ("STATE", "BEFORE", "CHANGE", "ROLLED_BACK", "DONE", "LOCK", "UNITS")}
        paths["STORED"] = ["/etc", paths["STATE"]]
        paths["NETWORK_FILES"] = [self.root + name for name in change.NETWORK_FILES]
        for name, value in dict(paths, run=self.run_command).items():
            patch = mock.patch.object(change, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        for name in (change.STATE, change.UNITS, self.root + "/etc/netplan", self.root + "/etc/os-net-config"):
            os.makedirs(name)
        self.path, self.source = self.root + "/etc/os-net-config/config.yaml", change.STATE + "/source"
        self.put(self.root + "/etc/netplan/10-system.yaml", "of the system")
        self.put(self.source, "new")

    def run_command(self, command, limit=None):
        command = " ".join(command)
        self.calls.append(command)
        if command == self.dies_at:
            raise Killed()
        return self.codes.get(command, 0), "what it said"

    def put(self, path, text):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def files(self):
        """Returns the text of every file that tools of networks have, and of units."""
        found = {}
        for name in change.files_of(change.NETWORK_FILES + [change.UNITS]):
            with open(name, encoding="utf-8") as stream:
                found[name[len(self.root):]] = stream.read()
        return found

    def apply(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            return change.apply("60", "300", self.source, self.path, *TOOL), said.getvalue()

    def attempt(self):
        """Returns what the unit gives to the program: the attempt that it is to roll back."""
        return self.files()["/etc/systemd/system/edpm-network-roll-back.service"].split()[-1]

    def confirm(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            return change.confirm(self.source), said.getvalue()

    def test_a_change_that_is_confirmed_is_kept(self):
        self.assertEqual(self.apply()[0], 0)
        self.assertIn("OnActiveSec=60", self.files()["/etc/systemd/system/edpm-network-roll-back.timer"])
        self.assertEqual(self.confirm()[0], 0)
        self.assertEqual(self.files(), {"/etc/netplan/10-system.yaml": "of the system", "/etc/os-net-config/config.yaml": "new"})
        self.assertEqual(change.roll_back(), 0)
        self.assertEqual(self.files()["/etc/os-net-config/config.yaml"], "new", "nothing waits to be rolled back")

    def test_one_that_is_not_is_rolled_back_with_the_files_that_the_tool_wrote(self):
        before = self.files()
        self.apply()
        self.put(self.root + "/etc/netplan/10-system.yaml", "of the tool")
        self.put(self.root + "/etc/netplan/20-more.yaml", "of the tool")
        self.calls.clear()
        self.assertEqual(change.roll_back(), 0)
        self.assertEqual(self.files(), before)
        self.assertEqual(self.calls[0], " ".join(TOOL), "the tool reads the file of before")
        self.assertIn("systemctl restart systemd-networkd", self.calls)
        code, said = self.confirm()
        self.assertEqual((code, "correct networkConfig.template" in said), (change.EX_CONFIG, True), said)

    def test_a_tool_that_fails_is_rolled_back_at_once(self):
        before, self.codes[" ".join(TOOL)] = self.files(), 1
        code, said = self.apply()
        self.assertEqual((code, self.files()), (1, before))
        self.assertIn("os-net-config: what it said (exit code 1); rolled back", said)
        code, confirmed = self.confirm()
        self.assertEqual((code, confirmed), (1, said), "whoever lost the connection meanwhile is told the same")

    def test_a_change_that_was_not_applied_to_the_end_is_not_confirmed(self):
        self.apply()
        self.assertEqual(self.confirm()[0], 0)
        before, calls = self.files(), list(dict.fromkeys(self.calls))
        self.put(self.source, "newer")
        with self.subTest("the connection was lost before the program was started"):
            code, said = self.confirm()
            self.assertEqual((code, "was not applied" in said, self.files()), (1, True, before), said)
        for call in calls[:calls.index(" ".join(TOOL)) + 1]:
            with self.subTest("the host lost its power at " + call):
                self.dies_at = call
                with contextlib.suppress(Killed):
                    self.apply()
                self.dies_at = None
                self.assertEqual((self.confirm()[0], self.files()), (1, before))
        with self.subTest("and was rolled back when it was up again"):
            self.dies_at = " ".join(TOOL)
            with contextlib.suppress(Killed):
                self.apply()
            self.dies_at = None
            change.roll_back()
            self.assertEqual((self.confirm()[0], self.files()), (1, before))
        self.assertEqual((self.apply()[0], self.confirm()[0]), (0, 0))
        self.assertEqual(self.files()["/etc/os-net-config/config.yaml"], "newer")

    def synced(self):
        """Returns what there is each time that the disk has stored it: the file of the tool, what is restored, and the timer."""
        found, run = [], change.run

        def noted(command, limit=None):
            if command[0] == "sync":
                timer = "systemctl enable --quiet edpm-network-roll-back.timer" in self.calls and os.path.exists(change.UNITS + "/edpm-network-roll-back.timer")
                found.append((self.files().get("/etc/os-net-config/config.yaml"), os.path.exists(change.BEFORE), timer))
            return run(command, limit)

        patch = mock.patch.object(change, "run", noted)
        patch.start()
        self.addCleanup(patch.stop)
        return found

    def test_a_loss_of_power_does_not_undo_what_it_relies_on(self):
        found = self.synced()
        self.apply()
        self.assertEqual(found, [(None, True, True)], "the timer is on the disk before the file of the tool is written")
        self.assertEqual(self.calls[self.calls.index(" ".join(TOOL)) - 1], "sync --file-system /etc " + change.STATE)
        self.confirm()
        self.assertEqual(found[1:], [("new", False, False)], "a change that is confirmed is not rolled back")

    def test_a_template_is_not_refused_for_another_one(self):
        self.apply()
        change.roll_back()
        self.put(self.source, "never tried")
        self.assertEqual(self.confirm()[0], 1)
        self.put(self.source, "new")
        self.assertEqual(self.confirm()[0], change.EX_CONFIG)

    def test_os_net_config_ends_with_2_when_it_changed_something(self):
        self.codes[" ".join(TOOL)] = 2
        self.assertEqual(self.apply()[0], 0)

    def test_nothing_is_changed_if_it_could_not_be_rolled_back(self):
        before, self.codes["systemctl restart edpm-network-roll-back.timer"] = self.files(), 1
        with self.assertRaisesRegex(SystemExit, "restart edpm-network-roll-back.timer: what it said; the network is as before"):
            self.apply()
        self.assertNotIn(" ".join(TOOL), self.calls)
        self.assertEqual({name: text for name, text in self.files().items() if "roll-back" not in name}, before)

    def test_a_second_change_before_the_first_is_confirmed_rolls_both_back(self):
        before = self.files()
        self.apply()
        self.put(self.source, "newer")
        self.assertEqual(self.apply()[0], 0)
        change.roll_back()
        self.assertEqual(self.files(), before)

    def test_the_change_after_one_that_was_rolled_back_can_be_confirmed(self):
        self.apply()
        change.roll_back()
        self.assertEqual(self.apply()[0], 0)
        self.assertEqual(self.confirm()[0], 0)
        self.assertEqual(self.files()["/etc/os-net-config/config.yaml"], "new")

    def test_whatever_it_is_killed_at_the_host_is_as_before_when_the_timer_has_fired(self):
        before = self.files()
        self.apply()
        change.roll_back()
        calls, self.calls = list(dict.fromkeys(self.calls)), []
        for call in calls:
            with self.subTest(call):
                for action in (lambda: self.apply(), change.roll_back):
                    self.dies_at = call
                    with contextlib.suppress(Killed):
                        action()
                self.dies_at = None
                change.roll_back()
                self.assertEqual(self.files(), before)

    def test_a_timer_of_before_does_not_roll_back_a_change_that_is_newer(self):
        self.apply()
        due = self.attempt()
        self.put(self.source, "newer")
        self.assertEqual(self.apply()[0], 0)
        self.calls.clear()
        self.assertEqual(change.roll_back(due), 0)
        self.assertEqual(self.calls, ["systemctl daemon-reload", "systemctl restart edpm-network-roll-back.timer"], "the newer one can be rolled back")
        self.assertEqual(self.confirm()[0], 0)
        self.assertEqual(self.files()["/etc/os-net-config/config.yaml"], "newer")

    def test_nothing_is_rolled_back_while_the_tool_runs(self):
        due = []

        def fires(command, limit=None):
            if list(command) == TOOL:
                due.append(self.attempt())
                self.calls.clear()
                self.assertEqual(change.roll_back(due[0]), 0)
                self.assertEqual(self.calls[-1], "systemctl restart edpm-network-roll-back.timer")
                self.calls.clear()
            return self.run_command(command, limit)

        with mock.patch.object(change, "run", fires):
            self.assertEqual(self.apply()[0], 0)
        self.assertEqual(self.calls[-1], "systemctl restart edpm-network-roll-back.timer", "the host has all of the time after the tool has ended")
        change.roll_back(due[0])
        self.assertEqual(self.files()["/etc/os-net-config/config.yaml"], "new", "the timer elapsed while the tool ran")
        change.roll_back(self.attempt())
        self.assertNotIn("/etc/os-net-config/config.yaml", self.files())

    def test_a_change_whose_time_cannot_begin_is_rolled_back(self):
        before, restart = self.files(), "systemctl restart edpm-network-roll-back.timer"

        def fails(command, limit=None):
            self.codes[restart] = int(TOOL[0] in " ".join(self.calls))
            return self.run_command(command, limit)

        with mock.patch.object(change, "run", fails):
            code, said = self.apply()
        self.assertEqual((code, self.files()), (1, before))
        self.assertIn("restart edpm-network-roll-back.timer: what it said; rolled back", said)

    def test_no_one_confirms_while_the_tool_runs(self):
        self.apply()
        with change.locked():
            self.assertEqual(self.confirm()[0], change.EX_TEMPFAIL)
        self.assertEqual(self.confirm()[0], 0)

    def test_the_state_of_nmstate_is_kept_and_applied(self):
        shown = mock.Mock(stdout=b"interfaces: []\n")
        with mock.patch.object(change.subprocess, "run", return_value=shown):
            change.apply("60", "300", self.source, self.root + "/etc/nmstate.yaml", "nmstatectl", "apply", "x")
        self.calls.clear()
        change.roll_back()
        self.assertEqual(self.calls[0], "nmstatectl apply %s/state.yaml" % change.STATE)
        self.assertFalse(os.path.exists(self.root + "/etc/nmstate.yaml"), "a file outside of the directories that did not exist")


class RunTest(unittest.TestCase):
    def test_returns_the_exit_code_and_the_last_line(self):
        self.assertEqual(change.run(["sh", "-c", "echo first; echo last >&2; exit 3"]), (3, "last"))
        self.assertEqual(change.run(["/does/not/exist"])[0], 1)

    def test_kills_a_command_that_hangs_with_its_children(self):
        with tempfile.TemporaryDirectory() as directory:
            code, said = change.run(["sh", "-c", "sleep 60 & echo $! > %s/child; echo begun; wait" % directory], 1)
            with open(directory + "/child", encoding="ascii") as stream:
                child = "/proc/%s/stat" % stream.read().strip()
        self.assertEqual((code, said), (change.TIMED_OUT, "killed after 1 seconds"))
        for _ in range(100):
            if not is_running(child):
                return
            time.sleep(0.1)
        self.fail("the child of the command runs")

    def test_does_not_wait_for_a_daemon_that_keeps_its_output(self):
        begun = time.monotonic()
        code, child = change.run(["sh", "-c", "sleep 60 & echo $!"])
        self.addCleanup(os.kill, int(child), signal.SIGKILL)
        self.assertEqual(code, 0)
        self.assertLess(time.monotonic() - begun, 30)


def is_running(stat):
    """Reports whether a process runs; one that ended may wait for its parent."""
    try:
        with open(stat, encoding="ascii") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
