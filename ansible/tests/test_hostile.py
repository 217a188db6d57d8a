"""A host whose python answers as an attacker: it may harm itself only. With the real Ansible."""

import json
import os
import re
import sys
import unittest

import yaml

import runs

KEY = "-----BEGIN OPENSSH PRIVATE KEY----- of the runner"
OTHERS = "password of another host"

# In place of the interpreter of the host: it takes what was sent, and answers what it likes.
EVIL = """#!/bin/sh
mkdir -p %(loot)s && cp -r %(sent)s/. %(loot)s/ 2>/dev/null
%(answer)s
"""


def answer(**result):
    return "cat <<'END'\n%s\nEND" % json.dumps(result)


class Attack(runs.Run):
    """A run on a good host and a bad one."""

    def __init__(self, playbook, script, variables=None, **options):
        self.script, self.variables, self.loot = script, variables or {}, ""
        options["prepare"] = self.prepare
        super().__init__(playbook, inventory=lambda run: {"all": {"vars": {"ansible_connection": "local", **self.variables}, "hosts": {
            "good": {"ansible_python_interpreter": sys.executable}, "bad": {"ansible_python_interpreter": run.path("evil")}}}}, **options)

    def prepare(self, _):
        for name, value in self.variables.items():
            if isinstance(value, str):
                self.variables[name] = value.replace("RUN", self.directory)
        self.write("key", KEY)
        self.write("config/others", OTHERS)
        self.write("evil", EVIL % {"loot": self.path("loot"), "sent": self.path("remote"),
                                   "answer": self.script.replace("RUN", self.directory)}, 0o755)

    def after(self):
        for directory, _, names in os.walk(self.path("loot")):
            for name in names:
                with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                    self.loot += file.read()


def task_of(role, name, file="main.yml"):
    """Returns a task of a role, for any user."""
    with open(os.path.join(runs.COLLECTION, "roles", role, "tasks", file), encoding="utf-8") as opened:
        task = next(t for t in yaml.safe_load(opened) if t["name"] == name)
    for module in task.values():
        if isinstance(module, dict):
            module.pop("owner", None), module.pop("group", None)
    arguments = task.get("edpm.operators.config_files")
    if arguments:
        for name in ("directories", "texts", "templates", "purge"):
            arguments.pop(name, None)
        arguments.update(owner=str(os.getuid()), group=str(os.getgid()))
    return task


ASK = {"name": "Ask", "ansible.builtin.command": "true"}


@runs.needs_ansible
class FactsTest(unittest.TestCase):
    """Facts of a host name no file, template or variable of the runner."""

    FACTS = {"edpm_config_files": {"loot": "RUN/key", "more": "RUN/config/others"}, "edpm_network_config_template": "RUN/key",
             "edpm_nova_config_dir": "RUN/host", "edpm_network_tool": "os-net-config", "os_family": "RUN/config/vars"}

    def attack(self, *tasks, **options):
        return Attack([{"hosts": "all", "gather_facts": False, "tasks": [ASK, *tasks]}],
                      answer(changed=False, rc=0, stdout="", stat={"exists": False}, ansible_facts=self.FACTS),
                      {**runs.vars_of("edpm_nova", "edpm_nova_copies", "edpm_nova_providers_dir"), "edpm_config_files": {}, "edpm_nova_config_dir": "RUN/host", "edpm_nova_gid": os.getgid(), "edpm_nova_check": False,
                       "edpm_network_config_template": "", "edpm_network_tool": "os-net-config", "edpm_network_config_path": {"os-net-config": "/nonexistent/x"}}, **options)

    def check(self, run):
        self.assertNotIn(KEY, run.loot, run.output)
        self.assertNotIn(OTHERS, run.loot, run.output)
        self.assertIn("good", run.done(), run.output)

    def test_files_of_the_configuration(self):
        self.check(self.attack(task_of("edpm_nova", "Copy the configuration")))

    def test_the_template_of_the_network(self):
        task = dict(task_of("edpm_network", "Write the network configuration", "template.yml"), when="edpm_network_config_template | length > 0")
        self.check(self.attack(task))

    def test_the_family_of_the_operating_system(self):
        task = task_of("edpm_os_config", "Read the paths of the distribution")
        show = {"ansible.builtin.debug": {"var": "vars_of_others"}}
        run = self.attack(dict(task, ignore_errors=True, when="inventory_hostname == 'bad'"), show,
                          files={"config/vars.yml": "vars_of_others: %s\n" % OTHERS})
        self.assertNotIn(OTHERS, run.output)

    def test_nobody_turns_that_off(self):
        copy = task_of("edpm_nova", "Copy the configuration")
        config = "[defaults]\ninject_facts_as_vars = true\nfact_caching = jsonfile\ntask_timeout = 0\n"
        for name, options in {
                "the environment": {"environment": {"ANSIBLE_INJECT_FACT_VARS": "True", "ANSIBLE_CACHE_PLUGIN": "jsonfile"}},
                "a configuration": {"files": {"ansible.cfg": config}, "config": "ansible.cfg"},
                "arguments": {"arguments": ["-e", "inject_facts_as_vars=true"]},
                "files of ansible-runner": {"runner": True, "files": {"env/envvars": "ANSIBLE_INJECT_FACT_VARS: 'True'\nANSIBLE_TASK_TIMEOUT: '0'\n"}},
        }.items():
            with self.subTest(name):
                show = {"name": "Show", "ansible.builtin.debug": {"msg": "{{ [lookup('config', 'INJECT_FACTS_AS_VARS'), lookup('config', 'CACHE_PLUGIN'), "
                                                                         "lookup('config', 'TASK_TIMEOUT')] }}"}}
                run = self.attack(show, copy, **options)
                self.check(run)
                self.assertRegex(run.output, r'false,\s+"memory",\s+600\s')


# What of a task is a path, a name or code on the runner.
ON_THE_RUNNER = {
    "include_vars": ("file", "dir", "name"), "include_tasks": ("file",), "import_tasks": ("file",), "include_role": ("name", "tasks_from"),
    "import_role": ("name", "tasks_from"), "template": ("src",), "copy": ("src",), "script": ("cmd",), "unarchive": ("src",), "fetch": ("dest",),
    "add_host": ("name",), "group_by": ("key",), "config_files": ("copies",),
}


def tasks_in(node):
    """Returns all tasks of a parsed file of tasks, handlers or a playbook."""
    if isinstance(node, list):
        return [task for part in node for task in tasks_in(part)]
    if not isinstance(node, dict):
        return []
    inner = [task for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers") for task in tasks_in(node.get(part))]
    return [node, *inner]


def words_of(value):
    # What stands between "if" and "else" chooses between two values and is none of them.
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"\bif\b.*?\belse\b", " ", str(value))))


def names_of_templates(arguments):
    """Returns the templates of config_files: keys, of which Ansible evaluates none. An expression in place of all could name anything."""
    templates = arguments.get("templates", {})
    return list(templates) if isinstance(templates, dict) else ["ansible_facts"]


def on_the_runner(task):
    """Returns the expressions of a task that Ansible uses on the runner."""
    found = [task[key] for key in ("delegate_to", "vars_files", "role") if key in task]
    for name, arguments in task.items():
        fields = ON_THE_RUNNER.get(name.rpartition(".")[2])
        if fields:
            found += [arguments[field] for field in fields if field in arguments] if isinstance(arguments, dict) else [arguments]
        if name.endswith(".config_files"):
            found += names_of_templates(arguments)
    loop = [task[key] for key in task if key == "loop" or key.startswith("with_")]
    variable = task.get("loop_control", {}).get("loop_var", "item")
    return found + (loop if any(variable in words_of(value) for value in found) else [])


class RolesTest(unittest.TestCase):
    """The roles and playbooks of the collection, as they are written."""

    @staticmethod
    def files():
        for part in ("roles", "playbooks"):
            for directory, _, names in os.walk(os.path.join(runs.COLLECTION, part)):
                for name in names:
                    with open(os.path.join(directory, name), encoding="utf-8") as file:
                        yield os.path.join(directory, name), file.read()

    def test_no_path_on_the_runner_is_made_of_what_a_host_said(self):
        tasks = [(path, task) for path, text in self.files() if path.endswith(".yml") for task in tasks_in(yaml.safe_load(text))]
        said = {"ansible_facts", "hostvars", "ansible_local"}
        for _, task in tasks:
            said |= {task["register"]} if "register" in task else set()
            for name, arguments in task.items():
                said |= set(arguments) if name.endswith("set_fact") and isinstance(arguments, dict) else set()
        self.assertGreater(len(said), 20)
        looked = 0
        for path, task in tasks:
            for value in on_the_runner(task):
                looked += 1
                self.assertFalse(words_of(value) & said, "%s: %s of task %s comes from the host" % (path, value, task.get("name")))
        self.assertGreater(looked, 50)

    def test_lookups_name_literals(self):
        for path, text in self.files():
            for arguments in re.findall(r"\b(?:lookup|query|q)\(([^)]*)", text):
                self.assertRegex(arguments, r"^'ansible\.builtin\.\w+', (role_path ~ '/\.\./\w+/files/\w+\.(py|sh)'"
                                            r"|edpm_preflight_directory ~ '/[\w.-]+'|'[\w.]+')(,|$)", path)

    def test_facts_are_used_as_such(self):
        injected = re.compile(r"\bansible_(?!facts|host\b|port\b|user\b|connection|python|play|check_mode|managed|failed|loop|run_tags|version)[a-z_]+")
        for path, text in self.files():
            self.assertEqual(injected.findall(re.sub(r"ansible_facts[.\w]*|ansible\.builtin", "", text)), [], path)


# What a python can answer, and what the recap says of the host that has it (None: it need not fail).
ANSWERS = {
    "output without end": ("yes 'no end of it'", "more than the memory"),
    "output without end on stderr": ("yes 'no end of it' >&2", "more than the memory"),
    "one endless line": ("tr '\\0' x </dev/zero", "more than the memory"),
    "much output": ("yes x | head -c 40000000", "the host printed 38 MiB"),
    "a module that never ends": ("exec sleep 60", "time frame|[Tt]imed out"),
    "a module that never ends and cannot be stopped": ("trap '' TERM HUP INT; for i in $(seq 60); do sleep 1; done", "time frame|[Tt]imed out"),
    "ten thousand characters of token": ("yes token | tr -d '\\n' | head -c 10000; exit 1", "token|start of json"),
    "a megabyte of token in a message": (
        "printf '{\"failed\": true, \"msg\": \"'; yes token | tr -d '\\n' | head -c 1000000; printf '\"}'", "^Ask: token"),
    "statistics": (answer(rc=0, ansible_stats={"data": [1], "per_host": 1}), None),
    "statistics that are none": (answer(rc=0, ansible_stats=7), None),
    "results that are no items": (answer(rc=0, results=[1, None]), None),
    "results with flags that are none": (answer(rc=0, results=[{"unreachable": "x", "failed": [], "failed_when_result": 1}]), None),
    "facts that are none": (answer(rc=0, ansible_facts=[1]), None),
    "warnings that are none": (answer(rc=0, warnings=7, deprecations=[{"removed": True, "msg": 1}], exception=1, diff=7), None),
    "nested answers": ("printf '{\"rc\": 0, \"x\":'; yes '[' | tr -d '\\n' | head -c 100000; exit 0", "."),
    "deep answers": ("printf '{\"rc\": 0, \"x\":'; yes '[' | tr -d '\\n' | head -c 400; yes ']' | tr -d '\\n' | head -c 400; printf '}'", None),
    "lone surrogates": ("printf '{\"rc\": 0, \"msg\": \"\\\\ud800\", \"stdout\": \"\\\\udfff\"}'", None),
    "another host to be added": (answer(rc=0, changed=True, add_host={"host_name": "good", "host_vars": {"ansible_host": "192.0.2.1"}, "groups": []},
                                        add_group="x", _ansible_delegated_vars={}), None),
    "a recap": ("echo '{\"v\":1,\"steps\":1,\"hosts\":{\"good\":[0,0,1,0,0,\"forged\"],\"bad\":[9,0,0,0,0]}}'", None),
    "a template": (answer(rc=0, stdout="{{ lookup('pipe', 'touch RUN/mark') }}", warnings=["{{ lookup('pipe', 'touch RUN/mark') }}"]), None),
    "flags that are none": (answer(rc="x", changed="yes", failed="no", skipped=[], unreachable={}, stdout=7), "."),
    "nothing": ("exit 0", "MODULE FAILURE|start of json"),
}


NAMES = {what: "bad%d" % number for number, what in enumerate(ANSWERS)}


class Attacks(runs.Run):
    """A run of which is remembered whether a command of a host ran on the runner."""

    def after(self):
        self.mark = os.path.exists(self.path("mark"))


@runs.needs_ansible
class AnswersTest(unittest.TestCase):
    """Whatever a host answers, it ends alone, and the others have what they would have had."""

    maxDiff = None

    def run_with(self, answers):
        """Runs on a good host and one for each answer."""
        def prepare(run):
            for name, script in answers.items():
                run.write(name, EVIL % {"loot": run.path("loot"), "sent": run.path("remote"), "answer": script.replace("RUN", run.directory)}, 0o755)

        def inventory(run):
            return {"all": {"vars": {"ansible_connection": "local"}, "hosts": {
                "good": {"ansible_python_interpreter": sys.executable},
                **{name: {"ansible_python_interpreter": run.path(name)} for name in answers}}}}

        # What the host has answered is used again, as roles do.
        use = {"name": "Use it", "ansible.builtin.debug": {"msg": "{{ asked.stdout | default('') | string | truncate(20) }}"}}
        ask = dict(ASK, register="asked", timeout="{{ 5 if 'never ends' in what[inventory_hostname] | default('') else 300 }}")
        what = {name: text for name, text in zip(NAMES.values(), NAMES)}
        return Attacks([{"hosts": "all", "gather_facts": False, "vars": {"what": what}, "tasks": [ask, use, ASK]}],
                       prepare=prepare, inventory=inventory, environment={"ANSIBLE_FORKS": "30"}, timeout=400)

    def test_answers(self):
        answers = {NAMES[what]: script for what, (script, _) in ANSWERS.items()}
        run = self.run_with(answers)
        if "good" not in run.done():
            guilty = [what for what in ANSWERS if "good" not in self.run_with({NAMES[what]: answers[NAMES[what]]}).done()]
            self.fail("the good host fails because of %s: %s" % (guilty or "all of them together", run.raw + run.output[-3000:]))
        self.assertEqual(run.recap["hosts"]["good"], [3, 2, 0, 0, 0])
        self.assertFalse(run.mark, "a command ran on the runner")
        self.assertLess(len(run.raw), 4096)
        for what, (_, expected) in ANSWERS.items():
            if expected:
                with self.subTest(what):
                    _, failed, gone, message = runs.host_of(run.recap, NAMES[what])
                    self.assertTrue(failed or gone, run.recap["hosts"][NAMES[what]])
                    self.assertRegex(message, expected)


if __name__ == "__main__":
    unittest.main()
