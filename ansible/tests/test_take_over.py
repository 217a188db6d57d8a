"""What kubectl edpm take-over --dry-run reports, see test_other_tools.py for hosts."""

import base64
import json
import re
import unittest

import runs
from test_preflight import closed, load


@runs.needs_ansible
class TakeOverTest(unittest.TestCase):
    def reports(self, hosts, *arguments):
        """Returns the checks of each host, and the output of the run."""
        run = runs.Run([{"import_playbook": "edpm.operators.take_over"}], arguments=list(arguments), inventory={"all": {"hosts": hosts, "vars": {
            "edpm_other_tools_token": "t0ken", "edpm_take_over": "kolla-ansible"}}})
        found = [json.loads(base64.b64decode(text)) for text in re.findall(r"EDPM_PREFLIGHT t0ken ([A-Za-z0-9+/=]+)", run.output)]
        return {each["host"]: [(c["check"], c["ok"], c["message"]) for c in each["checks"]] for each in found}, run

    def test_each_host_has_a_report(self):
        hosts = {"here": {"ansible_connection": "local", "ansible_become": False},
                 "gone": {"ansible_host": "127.0.0.1", "ansible_port": closed(self), "ansible_connection": "ssh"}}
        found, run = self.reports(hosts, "--check")
        self.assertEqual((set(found), run.code), (set(hosts), 0), run.output)
        self.assertEqual([line[:2] for line in found["gone"]], [("ssh", False)])
        self.assertIn("Connection refused", found["gone"][0][2])
        # It depends on what this machine runs.
        self.assertIn(found["here"][-1][0], ("take-over", "would run"))

    def test_what_was_found_comes_before_why_a_host_cannot_be_taken_over(self):
        report = load("filter", "preflight").take_over_report
        self.assertEqual([(c["check"], c["ok"], c["message"]) for c in report({"failed": True, "found": ["unit a"], "msg": "It is\nanother"})],
                         [("found", True, "unit a"), ("take-over", False, "It is another")])
        self.assertEqual([(c["check"], c["ok"], c["message"]) for c in report({"found": []})],
                         [("take-over", True, "there is no nova-compute, and no libvirt with guests, of another tool")])
        self.assertIn("as there is none", report({"found": ["unit a"], "kept": {"host": "a", "compute_id": "", "instances": 0, "guests": []}})[2]["message"])

    def test_nothing_is_run_without_check_mode(self):
        found, run = self.reports({"here": {"ansible_connection": "local", "ansible_become": False}})
        self.assertEqual((found, run.code), ({}, 0), run.output)


if __name__ == "__main__":
    unittest.main()
