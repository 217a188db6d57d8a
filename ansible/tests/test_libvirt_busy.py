"""The script that looks for jobs in libvirt, with a podman that runs commands on this machine and a virsh that answers what the test says."""

import os
import subprocess

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
