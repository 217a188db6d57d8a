"""Which hosts count as having reached the end of the last play: small runs of the real Ansible."""

import unittest
from concurrent.futures import ThreadPoolExecutor

import runs

WORK = {"name": "Work", "ansible.builtin.debug": {"msg": "work"}}
REAL = {"name": "The real task", "ansible.builtin.debug": {"msg": "real"}}


def fail(*hosts, **more):
    return dict({"name": "Fail", "ansible.builtin.fail": {"msg": "no"}, "when": "inventory_hostname in %s" % list(hosts)}, **more)


def unreachable(*hosts, **more):
    return dict({"name": "Lose", "ansible.builtin.command": "true", "vars": {
        "ansible_connection": "{{ 'ssh' if inventory_hostname in %s else 'local' }}" % list(hosts),
        "ansible_host": "127.0.0.1", "ansible_port": 1}}, **more)


def meta(action, *hosts):
    task = {"name": "End", "ansible.builtin.meta": action}
    return dict(task, when="inventory_hostname in %s" % list(hosts)) if hosts else task


def play(*tasks, **keywords):
    return dict({"hosts": "all", "gather_facts": False, "tasks": list(tasks)}, **keywords)


ALL = {"h1", "h2", "h3"}

# name: (plays, who has done the step)
CASES = {
    "all is well": ([play(WORK)], ALL),
    "one fails": ([play(WORK, fail("h1"), REAL)], {"h2", "h3"}),
    "all fail": ([play(WORK, fail(*ALL))], set()),
    "one is unreachable": ([play(unreachable("h1"), REAL)], {"h2", "h3"}),
    "any_errors_fatal": ([play(WORK, fail("h1"), REAL, any_errors_fatal=True)], set()),
    "any_errors_fatal and one is unreachable": ([play(WORK, unreachable("h1"), REAL, any_errors_fatal=True)], set()),
    "any_errors_fatal in the first of two plays": ([play(WORK, fail("h1"), any_errors_fatal=True), play(REAL)], set()),
    "any_errors_fatal in the last task": ([play(WORK, fail("h1"), any_errors_fatal=True)], set()),
    "run_once fails": ([play(WORK, dict(fail("h1", "h2", "h3"), run_once=True), REAL)], set()),
    "run_once fails after another host did": ([play(fail("h1")), play(WORK, dict(fail(*ALL), run_once=True), REAL)], set()),
    "run_once fails in the first of two plays": ([play(WORK, dict(fail(*ALL), run_once=True)), play(REAL)], set()),
    "run_once is rescued": ([play({"block": [dict(fail(*ALL), run_once=True)], "rescue": [WORK]}, REAL)], ALL),
    "serial, a later batch fails": ([play(WORK, fail("h2"), REAL, serial=1)], {"h1"}),
    "serial, the second play fails": ([play(WORK), play(WORK, fail("h2"), REAL, serial=1)], {"h1"}),
    "serial, a batch of a play before the last one fails": ([play(WORK, fail("h2"), serial=1), play(REAL)], set()),
    "serial, all is well": ([play(WORK, serial=1)], ALL),
    "serial with any_errors_fatal in a batch with a host that failed before":
        ([play(fail("h1")), play(WORK, fail("h2"), REAL, serial=[3], any_errors_fatal=True)], set()),
    "max_fail_percentage": ([play(WORK, fail("h1"), REAL, max_fail_percentage=10)], set()),
    "max_fail_percentage that is not exceeded": ([play(WORK, fail("h1"), REAL, max_fail_percentage=50)], {"h2", "h3"}),
    "end_host": ([play(WORK, meta("end_host", "h1"), REAL)], ALL),
    "end_host, and another host fails": ([play(WORK, meta("end_host", "h1"), fail("h2"), REAL)], {"h1", "h3"}),
    "end_host, then any_errors_fatal": ([play(WORK, meta("end_host", "h1"), fail("h2"), REAL, any_errors_fatal=True)], set()),
    "end_play": ([play(WORK, meta("end_play"), REAL)], ALL),
    "end_play in the first of two plays": ([play(WORK, meta("end_play")), play(REAL)], ALL),
    "end_play, and the second play fails": ([play(WORK, meta("end_play")), play(WORK, fail("h1"))], {"h2", "h3"}),
    "end_play keeps later batches from beginning": ([play(WORK, meta("end_play"), REAL, serial=1)], {"h1"}),
    "end_play keeps later batches of a play before the last from beginning":
        ([play(WORK, meta("end_play"), REAL, serial=1), play(WORK)], {"h1"}),
    "end_batch": ([play(WORK, meta("end_batch"), REAL, serial=1)], ALL),
    "clear_host_errors forgives no failure": ([play(fail("h1")), play(meta("clear_host_errors"), WORK)], {"h2", "h3"}),
    "rescue": ([play({"block": [fail("h1")], "rescue": [WORK]}, REAL)], ALL),
    "rescue that fails": ([play({"block": [fail("h1")], "rescue": [fail("h1")]}, REAL)], {"h2", "h3"}),
    "ignore_errors": ([play(fail("h1", ignore_errors=True), REAL)], ALL),
    "ignore_unreachable": ([play(unreachable("h1", ignore_unreachable=True), REAL)], ALL),
    "a handler fails": ([play({"ansible.builtin.debug": {}, "changed_when": True, "notify": "fail"},
                              handlers=[dict(fail("h1"), name="fail")])], {"h2", "h3"}),
    "a handler fails with any_errors_fatal": ([play({"ansible.builtin.debug": {}, "changed_when": True, "notify": "fail"}, any_errors_fatal=True,
                                                    handlers=[dict(fail("h1"), name="fail")])], set()),
    "hosts of different plays": ([play(WORK, hosts="h1"), play(WORK, fail("h2"), hosts="h2,h3")], {"h1", "h3"}),
    "free strategy": ([play(WORK, fail("h1"), REAL, strategy="free")], {"h2", "h3"}),
}


# name: (steps, for each host how many it has done and, unless that says it, how many it has begun)
STEPS = {
    "all is well": ([[play(WORK)], [play(WORK), play(REAL)], [play(WORK)]], {"h1": 3, "h2": 3, "h3": 3}),
    "one fails in the second step": ([[play(WORK)], [play(WORK), play(fail("h1"), REAL)], [play(WORK)]], {"h1": 1, "h2": 3, "h3": 3}),
    "one fails in the first step": ([[play(fail("h1"), WORK)], [play(WORK)]], {"h1": 0, "h2": 2, "h3": 2}),
    "each fails in another step":
        ([[play(WORK, fail("h1"))], [play(WORK, fail("h2"))], [play(WORK, fail("h3"))]], {"h1": 0, "h2": 1, "h3": 2}),
    "one is lost in the second step": ([[play(WORK)], [play(unreachable("h1"))], [play(WORK)]], {"h1": 1, "h2": 3, "h3": 3}),
    "any_errors_fatal in the second step":
        ([[play(WORK)], [play(WORK, fail("h1"), REAL, any_errors_fatal=True)], [play(WORK)]], {"h1": 1, "h2": 1, "h3": 1}),
    "a later batch of the second step fails": ([[play(WORK)], [play(WORK, fail("h2"), serial=1)], [play(WORK)]], {"h1": 2, "h2": 1, "h3": 1}),
    "a batch of the first step never begins":
        ([[play(WORK, meta("end_play"), serial=1)], [play(WORK)]], {"h1": 2, "h2": (0, 2), "h3": (0, 2)}),
    "end_host in the first step": ([[play(WORK, meta("end_host", "h1"), REAL)], [play(WORK)]], {"h1": 2, "h2": 2, "h3": 2}),
    "clear_host_errors in the second step":
        ([[play(WORK, fail("h1"))], [play(meta("clear_host_errors"), WORK)]], {"h1": 0, "h2": 2, "h3": 2}),
    "clear_host_errors in the first step":
        ([[play(WORK, fail("h1"), meta("clear_host_errors")), play(WORK)], [play(WORK)]], {"h1": (0, 2), "h2": 2, "h3": 2}),
    "rescue in the first step": ([[play({"block": [WORK, fail("h1")], "rescue": [WORK]})], [play(WORK)]], {"h1": 2, "h2": 2, "h3": 2}),
    "rescue, and a failure after it":
        ([[play({"block": [WORK, fail("h1")], "rescue": [WORK]})], [play(WORK, fail("h1"))]], {"h1": (0, 2), "h2": 2, "h3": 2}),
    "a step that is not for all": ([[play(WORK)], [play(WORK, hosts="h2,h3")], [play(WORK)]], {"h1": (1, 3), "h2": 3, "h3": 3}),
    "plays that give themselves numbers": ([[play(WORK, vars={"edpm_step_number": 7})], [play(WORK, fail("h1"), vars={"edpm_step_number": 7})]],
                                           {"h1": 1, "h2": 2, "h3": 2}),
}


# The plays of the collection have no host wait for another one.
FREE = {"free strategy: " + name: ([[dict(each, strategy="free") for each in plays] for plays in STEPS[name][0]], STEPS[name][1]) for name in (
    "one fails in the second step", "each fails in another step", "one is lost in the second step", "end_host in the first step",
    "rescue in the first step", "a step that is not for all")}


def run_steps(steps, count=None):
    entries = [{"import_playbook": "step%d.yaml" % number, "vars": {"edpm_step_number": number, "edpm_step": "s%d" % number}}
               for number, _ in enumerate(steps, 1)]
    files = {"project/step%d.yaml" % number: plays for number, plays in enumerate(steps, 1)}
    return runs.Run(entries, files=files, environment={"EDPM_RUN_STEPS": str(count or len(steps))})


@runs.needs_ansible
class StepsTest(unittest.TestCase):
    maxDiff = None

    def test_how_far_each_host_has_come(self):
        cases = dict(STEPS, **FREE)
        with ThreadPoolExecutor(4) as pool:
            results = dict(zip(cases, pool.map(lambda case: run_steps(case[0]), cases.values())))
        for name, (_, expected) in cases.items():
            with self.subTest(name):
                run = results[name]
                self.assertEqual({host: runs.progress_of(run.recap, host) for host in run.recap["hosts"]}, expected, run.raw + run.output)

    def test_steps_that_cannot_be_told_apart_are_all_done_or_none(self):
        run = run_steps([[play(WORK)], [play(WORK, fail("h1"))]], count=3)
        self.assertEqual({host: runs.progress_of(run.recap, host) for host in run.recap["hosts"]}, {"h1": (0, 3), "h2": 3, "h3": 3}, run.raw)

    def test_a_host_without_a_task_in_a_step_is_told_so(self):
        run = run_steps([[play(WORK)], [play(WORK, hosts="h2,h3")]])
        self.assertEqual(runs.host_of(run.recap, "h1"), (1, 0, 0, "no task of the step ran on this host"), run.raw)

    def test_a_task_that_needs_a_host_without_guests(self):
        """Also in a rescue, as that of the reboot."""
        needs = {"edpm_needs": "drained"}
        run = run_steps([[play(WORK)], [play(WORK, {"block": [fail("h1", "h2", vars=needs)], "rescue": [fail("h1", vars=needs), fail("h2")]})]])
        self.assertEqual({host: entry[7:] for host, entry in run.recap["hosts"].items()}, {"h1": [1, 1, None, 0, [], 1], "h2": [1], "h3": []}, run.raw + run.output)

    def test_the_step_is_known_to_the_tasks(self):
        tell = {"name": "Tell", "ansible.builtin.debug": {"msg": "this is {{ edpm_step }}"}}
        run = run_steps([[play(tell)], [play(tell)]])
        for step in ("s1", "s2"):
            self.assertIn("this is " + step, run.output)


@runs.needs_ansible
class EndTest(unittest.TestCase):
    maxDiff = None

    @runs.long
    def test_who_has_done_the_step(self):
        with ThreadPoolExecutor(4) as pool:
            results = dict(zip(CASES, pool.map(lambda case: runs.Run(case[0]), CASES.values())))
        for name, (_, done) in CASES.items():
            with self.subTest(name):
                run = results[name]
                self.assertEqual(run.done(), done, run.raw + run.output)
                if done == ALL:
                    self.assertEqual(run.code, 0, run.output)
                for host in set(run.recap["hosts"]) - done:
                    self.assertTrue(runs.host_of(run.recap, host)[3], "%s has no message: %s" % (host, run.raw))

    def test_a_limit(self):
        run = runs.Run([play(WORK)], arguments=["--limit", "h2"])
        self.assertEqual(set(run.recap["hosts"]), {"h2"})
        self.assertEqual(run.done(), {"h2"})

    def test_several_playbooks(self):
        run = runs.Run(None, playbooks=[[play(WORK)], [play(WORK, fail("h1"))]])
        self.assertEqual(run.done(), {"h2", "h3"}, run.raw)
        run = runs.Run(None, playbooks=[[play(WORK, fail("h1"))], [play(REAL)]])
        self.assertEqual(run.done(), set(), "the second playbook never began: " + run.raw)

    def test_ansible_itself_as_a_host_without_an_inventory(self):
        run = runs.Run([play(WORK, hosts="localhost")])
        self.assertEqual(run.done(), {"localhost"}, run.raw + run.output)

    def test_nothing_of_it_is_counted(self):
        run = runs.Run([play(WORK, REAL)])
        self.assertEqual(run.recap, {"v": 1, "steps": 1, "hosts": {name: [2, 0, 0, 0, 0] for name in sorted(ALL)}})

    def test_tags(self):
        run = runs.Run([play(dict(WORK, tags=["a"]), REAL)], arguments=["--tags", "a", "--skip-tags", "always"])
        self.assertEqual(run.done(), ALL, run.raw)


if __name__ == "__main__":
    unittest.main()
