"""The script that looks for jobs in libvirt, with a podman that runs commands on this machine and a virsh that answers what the test says."""

import json
import os
import subprocess
import unittest

import yaml

import modules
import runs

SCRIPT = os.path.join(runs.COLLECTION, "roles", "edpm_service", "files", "libvirt_busy.sh")
# The guests idle, moving and copying, as virsh 9 and 11 show them.
VIRSH = r"""
case "$*" in
  *"list --uuid") printf 'idle\nmoving\ncopying\n\n';;
  *"domjobinfo moving") printf 'Job type:         Unbounded   \nOperation:        Outgoing migration\n';;
  *domjobinfo*) printf 'Job type:         None        \n\n';;
  *domblklist*) printf ' vda      /var/lib/nova/instances/a/disk\n sda      -\n\n';;
  *"blockjob copying vda --raw") printf ' type=Block Copy\n bandwidth=0\n cur=1\n end=2\n';;
  *"blockjob"*sda*) echo "error: disk is empty" >&2; exit 1;;
esac"""


class LibvirtBusyTest(modules.ModuleTest):
    def ask(self, daemon):
        """Returns what the script prints on a host with a daemon."""
        self.command("podman", 'case "$6" in edpm_libvirt_%s) shift 6; exec "$@";; *) echo no such container >&2; exit 125;; esac' % daemon)
        ran = subprocess.run(["/bin/sh", SCRIPT, self.path("bin", "podman"), "--runtime", "crun"], env=dict(os.environ, PATH=self.path("bin") + os.pathsep + os.environ["PATH"]),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        self.assertEqual(ran.stderr, "")
        return ran.stdout

    def test_what_libvirt_does(self):
        self.command("virsh", VIRSH)
        for daemon in ("virtqemud", "libvirtd"):
            self.assertEqual(self.ask(daemon), "guest moving has a job\ndisk vda of guest copying has a job\n", daemon)

    def test_a_daemon_that_does_nothing_or_does_not_answer(self):
        self.command("virsh", 'echo "error: failed to connect" >&2; exit 1')
        self.assertEqual(self.ask("virtqemud"), "")
        self.command("virsh", VIRSH.replace("Unbounded", "None").replace("type=Block Copy", ""))
        self.assertEqual(self.ask("virtqemud"), "")
        self.assertEqual(self.ask("another"), "")


@runs.needs_ansible
class WhoWaitsTest(unittest.TestCase):
    """The services that the role edpm_service restarts while libvirt does nothing only."""

    @staticmethod
    def imports(role):
        """Returns the tasks of a role that run services."""
        with open(os.path.join(runs.COLLECTION, "roles", role, "tasks", "main.yml"), encoding="utf-8") as file:
            return [task for task in yaml.safe_load(file) if task.get("ansible.builtin.import_role", {}).get("tasks_from") == "services.yml"]

    def asked(self, role):
        """Returns the command that each such task of a role gives to the module."""
        tasks = [dict(task, vars=dict(task["vars"], edpm_service_list=[])) for task in self.imports(role)]
        # From ansible-core 2.20 on results have the parameters of their module only if that is asked for.
        run = runs.Run([{"hosts": "all", "gather_facts": False, "tasks": tasks}], hosts=["h1"], environment={"ANSIBLE_INJECT_INVOCATION": "True"}, arguments=["--check", "-vvv", "-e", json.dumps({
            "edpm_podman_binary": "/bin/true", "edpm_podman_runtime": "crun"})], inventory={"all": {"hosts": {"h1": {
                "ansible_connection": "local", "edpm_service_busy": ["/bin/echo", "of the inventory"]}}}})
        self.assertEqual(run.code, 0, run.output)
        return [json.JSONDecoder().raw_decode(rest)[0] for rest in run.output.split('"busy": ')[1:]]

    def test_services_that_guests_depend_on_wait_and_others_do_not(self):
        with open(SCRIPT, encoding="utf-8") as file:
            waits = ["/bin/sh", "-c", file.read().rstrip("\n"), "busy", "/bin/true", "--runtime", "crun"]
        self.assertEqual([self.asked(role) for role in ("edpm_libvirt", "edpm_nova", "edpm_ovn_controller", "edpm_ovn_metadata")], [[waits], [waits], [[]], [[]]])

    def test_the_task_has_time_to_wait_and_to_restart(self):
        with open(os.path.join(runs.COLLECTION, "roles", "edpm_service", "tasks", "services.yml"), encoding="utf-8") as file:
            timeout = yaml.safe_load(file)[0]["timeout"]
        for limit, total in (({}, 900), ({"ANSIBLE_TASK_TIMEOUT": "1000"}, 1300)):
            with self.subTest(limit):
                run = runs.Run([{"hosts": "all", "gather_facts": False, "vars": {"edpm_service_busy_seconds": "300"},
                                 "tasks": [{"ansible.builtin.debug": {"msg": "it has %s seconds" % timeout}}]}], hosts=["h1"], environment=limit)
                self.assertIn("it has %d seconds" % total, run.output)


if __name__ == "__main__":
    unittest.main()
