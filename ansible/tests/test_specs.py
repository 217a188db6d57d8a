"""The argument specifications of the roles say what the roles do."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import jinja2
import yaml

import runs

ROLES = os.path.join(runs.COLLECTION, "roles")
NAMES = sorted(os.listdir(ROLES))
# What an option without a default says.
BY_OPERATOR = "Set by the"
TEMPLATE = re.compile(r"{{|{%")
# Keywords of tasks whose text is an expression without braces.
EXPRESSIONS = ("when", "until", "failed_when", "changed_when", "that")


def load(role, *parts):
    """Returns what is in a file of a role, an empty mapping if it has none."""
    path = os.path.join(ROLES, role, *parts)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def entry_points(role):
    return load(role, "meta", "argument_specs.yml").get("argument_specs", {})


def files(role, *directories):
    return [os.path.join(role, directory, name) for directory in directories if os.path.isdir(os.path.join(ROLES, role, directory))
            for name in sorted(os.listdir(os.path.join(ROLES, role, directory)))]


def names_in(template, environment=jinja2.Environment(extensions=["jinja2.ext.do"])):
    """Returns the variables of the collection that a template reads."""
    return {name.name for name in environment.parse(template).find_all(jinja2.nodes.Name) if name.ctx == "load" and name.name.startswith("edpm_")}


class Used:
    """The variables that tasks, templates and variables of a role read, and those that they set."""

    def __init__(self, role):
        self.read, self.set = set(), set()
        for path in files(role, "tasks", "vars", "defaults"):
            content = load(path)
            if isinstance(content, dict):
                self.set.update(content if os.sep + "vars" + os.sep in path else ())
            self.walk(content)
        for path in files(role, "templates"):
            with open(os.path.join(ROLES, path), encoding="utf-8") as file:
                self.read |= names_in(file.read())

    def walk(self, value, key=None):
        if isinstance(value, dict):
            for name, child in value.items():
                if name in ("vars", "ansible.builtin.set_fact"):
                    self.set.update(child)
                elif name in ("register", "loop_var"):
                    self.set.add(child)
                self.walk(child, name)
        elif isinstance(value, list):
            for child in value:
                self.walk(child, key)
        elif isinstance(value, str):
            self.set.update(re.findall(r"'vars': {'(\w+)'", value))  # of a template, in an expression
            self.read |= names_in("{{ %s }}" % value if key in EXPRESSIONS and not TEMPLATE.search(value) else value)


class SpecsTest(unittest.TestCase):
    maxDiff = None

    def test_every_default_is_in_the_specification(self):
        for role in NAMES:
            defaults, options = load(role, "defaults", "main.yml"), {}
            for entry in entry_points(role).values():
                options.update(entry["options"])
            with self.subTest(role):
                missing = {name for name in set(options) - set(defaults) if BY_OPERATOR not in options[name]["description"]}
                self.assertEqual((set(defaults) - set(options), missing), (set(), set()))
                # The default of a variable that is made of others is described in words.
                want = {name: value for name, value in defaults.items() if not TEMPLATE.search(json.dumps(value))}
                self.assertEqual({name: option["default"] for name, option in options.items() if "default" in option}, want)

    def test_every_variable_that_is_read_is_specified_or_set_by_a_role(self):
        used = {role: Used(role) for role in NAMES}
        known = {name for role in NAMES for entry in entry_points(role).values() for name in entry["options"]}
        internal = set().union(*(u.set for u in used.values()))
        for role in NAMES:
            with self.subTest(role):
                self.assertEqual(used[role].read - known - internal, set())
                self.assertEqual({n for n in used[role].set if not n.startswith("edpm_")}, set(), "variables without the prefix of the collection")
        everywhere = set().union(*(u.read for u in used.values()))
        self.assertEqual(known - everywhere, set(), "nothing reads these")

    def test_tasks_of_a_role_that_others_include_are_specified(self):
        for role in NAMES:
            for path in files(role, "tasks"):
                for task in load(path):
                    included = task.get("ansible.builtin.include_role", task.get("ansible.builtin.import_role", {}))
                    if included:
                        entry = os.path.splitext(included.get("tasks_from", "main"))[0]
                        self.assertIn(entry, entry_points(included["name"].split(".")[-1]), path)

    def test_a_variable_means_the_same_in_every_role(self):
        types = {}
        for role in NAMES:
            for entry in entry_points(role).values():
                for name, option in entry["options"].items():
                    self.assertEqual(types.setdefault(name, option["type"]), option["type"], name)


class PlaysTest(unittest.TestCase):
    def test_no_host_of_a_run_waits_for_another_one(self):
        for path in sorted(glob.glob(os.path.join(runs.COLLECTION, "playbooks", "*.yml"))):
            with open(path, encoding="utf-8") as file:
                for play in yaml.safe_load(file):
                    with self.subTest(os.path.basename(path)):
                        self.assertEqual((play["strategy"], play["any_errors_fatal"]), ("ansible.builtin.free", False))
        for path in glob.glob(os.path.join(ROLES, "*", "*", "*.yml")):
            with open(path, encoding="utf-8") as file, self.subTest(path):
                self.assertNotIn("run_once:", file.read(), "the strategy free ignores it")


@runs.needs_ansible
class AnsibleTest(unittest.TestCase):
    def ansible(self, command, *arguments, text=""):
        with tempfile.TemporaryDirectory() as directory:
            tree = os.path.join(directory, "ansible_collections", "edpm")
            os.makedirs(tree)
            os.symlink(runs.COLLECTION, os.path.join(tree, "operators"))
            playbook = os.path.join(directory, "playbook.yml")
            with open(playbook, "w", encoding="utf-8") as file:
                file.write(text)
            environ = dict(os.environ, ANSIBLE_COLLECTIONS_PATH=directory, ANSIBLE_HOME=directory, ANSIBLE_LOCAL_TEMP=directory, COLUMNS="200")
            return subprocess.run([command, *arguments, *([playbook] if text else [])], env=environ, check=False, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)

    def test_ansible_doc_prints_every_variable(self):
        names = ["edpm.operators." + role for role in NAMES]
        ran = self.ansible("ansible-doc", "-t", "role", *names)
        # Of its own collection ansible-core 2.22 says that it has no version.
        self.assertEqual((ran.returncode, re.findall(r"WARNING(?!.*/_protomatter)", ran.stdout)), (0, []), ran.stdout)
        for role in NAMES:
            for entry in entry_points(role).values():
                for name in entry["options"]:
                    self.assertRegex(ran.stdout, r"(?m)^(?:[-=]|  ) (?:\x1b\[\d+m)?%s\b" % name)

    def test_ansible_doc_explains_every_module(self):
        names = sorted("edpm.operators." + name[:-3] for name in os.listdir(os.path.join(runs.COLLECTION, "plugins", "modules")) if name.endswith(".py"))
        self.assertIn("edpm.operators.podman_services", names)
        ran = self.ansible("ansible-doc", *names)
        self.assertEqual((ran.returncode, "WARNING" in ran.stdout, "ERROR" in ran.stdout), (0, False, False), ran.stdout)
        for part in ("EXAMPLES:", "RETURN VALUES:"):
            self.assertEqual(ran.stdout.count(part), len(names), part)

    def refused(self, **variables):
        """Returns why Ansible refuses variables before the first task of a role."""
        play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": variables, "roles": ["edpm.operators.edpm_os_config"]}]
        ran = self.ansible("ansible-playbook", "-i", "localhost,", "--tags", "none", text=json.dumps(play))
        self.assertNotEqual(ran.returncode, 0, ran.stdout)
        return ran.stdout

    def test_wrong_values_are_refused_before_the_first_task(self):
        self.assertIn("value of edpm_nftables_policy must be one of: drop, accept, got: dorp", self.refused(edpm_nftables_policy="dorp"))
        self.assertRegex(self.refused(edpm_sysctl=[1]), "edpm_sysctl.* unable to convert to dict|edpm_sysctl.*dict")
        self.assertIn("missing required arguments: ports found in edpm_nftables_rules_extra", self.refused(edpm_nftables_rules_extra=[{"protocol": "tcp"}]))
        self.assertIn("edpm_nftables_rules_extra.port. Supported parameters include", self.refused(
            edpm_nftables_rules_extra=[{"protocol": "tcp", "ports": 1, "port": 2}]))


if __name__ == "__main__":
    unittest.main()
