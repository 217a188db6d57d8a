"""What reports whether nova-compute is well, with processes and sockets of the test, and a real one."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import runs
from test_check_oslo_config import has_oslo

SCRIPT = os.path.join(runs.COLLECTION, "roles", "edpm_nova", "files", "health.py")
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: 0100007F:C350 %s:%04X %s 00000000:00000000 00:00000000 00000000     0        0 %d 1 0000000000000000 20 4 30 10 -1\n"
V4, V6 = "0200000A", "0000000000000000FFFF00000200000A"


@unittest.skipUnless(os.environ.get("CI") or has_oslo(), "oslo.config is not installed")
class HealthTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="edpm-health-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        self.configure("rabbit://u:S3cretPass@bus:5672/")
        self.process(7, "python3\0/usr/bin/nova-compute", {3: "socket:[70]", 4: "/dev/null"})

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def configure(self, url):
        self.write("conf/01-nova.conf", "[DEFAULT]\ntransport_url = rabbit://other:1/\n")
        self.write("conf/02-nova-override.conf", "[DEFAULT]\ntransport_url = %s\n" % url)

    def process(self, number, command, files):
        self.write("proc/%d/cmdline" % number, command)
        os.makedirs(os.path.join(self.directory, "proc", str(number), "fd"))
        for file, target in files.items():
            os.symlink(target, os.path.join(self.directory, "proc", str(number), "fd", str(file)))
        self.connections(number)

    def connections(self, number, *rows, version="tcp"):
        for name in ("tcp", "tcp6"):
            self.write("proc/%d/net/%s" % (number, name), HEADER + "".join(ROW % row for row in rows if name == version))

    def well(self, proc=None):
        """Reports whether nova-compute is well, and what is said."""
        ran = subprocess.run([sys.executable, "-B", SCRIPT, os.path.join(self.directory, "conf"), proc or os.path.join(self.directory, "proc")],
                             check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertNotIn("S3cretPass", ran.stdout)
        self.assertNotIn("Traceback", ran.stdout)
        return ran.returncode == 0, ran.stdout.strip()

    def test_without_a_connection(self):
        self.assertEqual(self.well(), (False, "nova-compute has no connection to its message bus, port 5672. See its log, and whether the host reaches the bus."))

    def test_with_a_connection(self):
        for address, version in ((V4, "tcp"), (V6, "tcp6")):
            with self.subTest(version):
                self.connections(7, (address, 5672, "01", 70), version=version)
                self.assertEqual(self.well(), (True, ""))

    def test_connections_that_do_not_count(self):
        for what, row in (("one that is being made", (V4, 5672, "02", 70)), ("to another port", (V4, 5671, "01", 70)), ("of another process", (V4, 5672, "01", 71))):
            with self.subTest(what):
                self.connections(7, row)
                self.assertFalse(self.well()[0])

    def test_another_process_does_not_count(self):
        self.process(8, "python3\0neutron-agent", {3: "socket:[80]"})
        self.connections(8, (V4, 5672, "01", 80))
        self.assertFalse(self.well()[0])

    def test_addresses(self):
        self.connections(7, (V4, 5671, "01", 70))
        for url, well in (("rabbit://u:S3cretPass@a:5672,u:S3cretPass@b:5671/nova", True), ("rabbit://u:S3cretPass@[fd00::5]:5671/", True),
                          ("rabbit://u:S3cretPass@[fd00::5671]/", False), ("rabbit://bus", False), ("fake:///", True), ("fake:", True),
                          ("rabbit://u:S3cretPass@bus:5671/?ssl=1", True), ("rabbit://u:S3cretPass@bus:5671?ssl=1", True)):
            with self.subTest(url):
                self.configure(url)
                self.assertEqual(self.well()[0], well)

    def test_a_real_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.configure("rabbit://u:S3cretPass@127.0.0.1:%d/" % port)
            self.assertFalse(self.well("/proc")[0])
            code = "import socket, time; s = socket.create_connection(('127.0.0.1', %d)); print('up', flush=True); time.sleep(60)" % port
            with subprocess.Popen([sys.executable, "-c", code, "nova-compute"], stdout=subprocess.PIPE) as client:
                self.addCleanup(client.kill)
                client.stdout.readline()
                self.assertEqual(self.well("/proc"), (True, ""))
                client.kill()


if __name__ == "__main__":
    unittest.main()
