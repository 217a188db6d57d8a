"""The checks before a deployment, with a fault planted for each, on servers of the test."""

import base64
import http.server
import importlib.util
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import modules
import runs

CONFIG = """[DEFAULT]
transport_url = rabbit://nova:p,ss%%w@bus-1.example:5671,nova:secret@[fd00::2]:5672/cell1?ssl=1
[oslo_messaging_rabbit]
[service_user]
auth_url = https://keystone.example/identity
[keystone_authtoken]
auth_url = https://keystone.example/identity
[placement]
auth_url = http://10.0.0.3:5000
"""
GIB = 1 << 30


def load(kind, name):
    spec = importlib.util.spec_from_file_location("preflight_" + kind, os.path.join(runs.COLLECTION, "plugins", kind, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def closed(test):
    """Returns a port that nothing listens at, and that no other program gets until the test ends."""
    holder = socket.socket()
    test.addCleanup(holder.close)
    holder.bind(("127.0.0.1", 0))
    return holder.getsockname()[1]


class Quiet(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self):
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@runs.needs_ansible
class PreflightTest(modules.ModuleTest):
    MODULE = "preflight"

    def setUp(self):
        super().setUp()
        self.route("eth0", 1500)

    def route(self, name, mtu):
        self.write("proc/net/route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
                                     "%s\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\nlan\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n" % name)
        self.write("sys/class/net/%s/mtu" % name, "%d\n" % mtu)
        self.write("sys/class/net/lan/mtu", "1000\n")

    def serve(self, status=200, certificate=None):
        """Returns the port of a server of HTTP, by TLS if it has a certificate."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Quiet,), {"status": status}))
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_port

    def certificate(self):
        """Returns a certificate of 127.0.0.1 with its key, as no authority issued it."""
        path = self.path("certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", path + ".key", "-out", path + ".crt"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.write("certificate.pem", self.read("certificate.pem.key") + self.read("certificate.pem.crt"))
        return path

    def look(self, ahead=0, **options):
        """Returns the checks by name; the control plane's clock is ahead by that many seconds."""
        answer = self.done(**dict(dict(now=time.time() + ahead, root=self.directory, disk={self.directory: 0.001}, timeout=3), **options))
        self.assertFalse(answer["changed"])
        return {check["check"]: check for check in answer["checks"]}

    def endpoint(self, check, port, **more):
        return dict({"check": check, "host": "127.0.0.1", "port": port, "tls": False}, **more)

    def test_a_host_that_has_everything(self):
        certificate = self.certificate()
        checks = self.look(ca=self.read("certificate.pem.crt"), endpoints=[
            self.endpoint("message bus", self.serve()), self.endpoint("keystone", self.serve(), path="/v3"),
            self.endpoint("registry", self.serve(401, certificate), tls=True, path="/v2/"), {"check": "message bus", "host": "localhost", "port": self.serve(), "tls": False}])
        self.assertEqual({name: check["ok"] for name, check in checks.items()},
                         dict.fromkeys(("time", "disk", "mtu", "dns", "message bus", "keystone", "registry", "tls"), True))

    def test_what_is_not_known_is_not_checked(self):
        checks = self.look()
        self.assertEqual([name for name, check in checks.items() if check["ok"] is None], ["message bus", "keystone", "registry", "tls"])

    def test_every_planted_fault_is_found_with_its_remedy(self):
        certificate = self.certificate()
        for name, check, options, message, remedy in (
                ("the clock is behind", "time", {"ahead": 300}, r"the clock is (29\d|300) s behind", "edpm_ntp_servers"),
                ("the clock is ahead", "time", {"ahead": -300}, r"the clock is 30\d s ahead", "time service"),
                ("the disk is full", "disk", {"disk": {self.path("var/lib/containers"): 10000000}}, r"containers has [\d.]+ of 10000000 GiB", "free space"),
                ("the MTU is small", "mtu", {"mtu": 9000}, "the MTU is 1500 of eth0, and 9000 is wanted", "network configuration"),
                ("a name does not resolve", "dns", {"endpoints": [self.endpoint("keystone", 5000, host="none.invalid")]}, r"does not resolve none\.invalid \(", "/etc/resolv.conf"),
                ("the registry is closed", "registry", {"endpoints": [self.endpoint("registry", closed(self), path="/v2/")]}, r"127\.0\.0\.1:\d+ \(Connection refused\)", "mirror"),
                ("the registry is broken", "registry", {"endpoints": [self.endpoint("registry", self.serve(503), path="/v2/")]}, "HTTP status 503", "mirror"),
                ("the message bus is closed", "message bus", {"endpoints": [self.endpoint("message bus", closed(self))]}, "Connection refused", "transport_url"),
                ("keystone is closed", "keystone", {"endpoints": [self.endpoint("keystone", closed(self), path="/v3")]}, "Connection refused", "keystoneAuthURL"),
                ("keystone is something else", "keystone", {"endpoints": [self.endpoint("keystone", self.talker(b"220 mail\r\n"), path="/v3")]}, "does not speak HTTP", "keystoneAuthURL"),
                ("keystone is silent", "keystone", {"timeout": 0.5, "endpoints": [self.endpoint("keystone", self.talker(b""), path="/v3")]}, "no answer within", "open the port"),
                ("an authority is not trusted", "tls", {"endpoints": [self.endpoint("keystone", self.serve(certificate=certificate), tls=True, path="/v3")]},
                 r"does not accept the certificate of 127\.0\.0\.1:\d+ \(self.signed certificate", "caBundleSecretName"),
                ("a certificate is of another name", "tls", {"ca": self.read("certificate.pem.crt"), "endpoints": [
                    self.endpoint("keystone", self.serve(certificate=certificate), host="localhost", tls=True, path="/v3")]}, r"localhost:\d+ \(.*[Hh]ostname", "correct the certificate")):
            with self.subTest(name):
                checks = self.look(**options)
                self.assertEqual([c for c in checks if checks[c]["ok"] is False and (c != "keystone" or check != "dns")], [check])
                self.assertRegex(checks[check]["message"], message)
                self.assertIn(remedy, checks[check]["remedy"])

    def talker(self, text):
        """Returns the port of a server that says a text and nothing else."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def talk():
            try:
                with listener.accept()[0] as connection:
                    connection.sendall(text)
                    while connection.recv(1024):
                        pass
            except OSError:
                pass
        threading.Thread(target=talk, daemon=True).start()
        return listener.getsockname()[1]

    def test_an_authority_that_nova_compute_accepts_is_accepted_whatever_python_the_host_has(self):
        self.write("extensions", "subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=none\n")
        for command in ("req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=authority -keyout ca.key -out ca.crt",
                        "req -newkey rsa:2048 -nodes -subj /CN=test -keyout key -out request",
                        "x509 -req -in request -CA ca.crt -CAkey ca.key -set_serial 2 -days 1 -extfile extensions -out crt"):
            subprocess.run(["openssl"] + command.split(), cwd=self.directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        served = self.endpoint("keystone", self.serve(certificate=self.write("certificate.pem", self.read("key") + self.read("crt"))), tls=True, path="/v3")
        strict = ssl.create_default_context()
        strict.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
        module = load("modules", "preflight")
        with mock.patch.object(module.ssl, "create_default_context", return_value=strict):
            checks = {check["check"]: check for check in module.check_endpoints([served], self.read("ca.crt"), 3)}
        self.assertEqual((checks["keystone"]["ok"], checks["tls"]), (True, {"check": "tls", "ok": True, "message": "certificates are accepted", "remedy": ""}))

    def test_certificates_of_what_was_not_reached_are_not_called_accepted(self):
        checks = self.look(endpoints=[self.endpoint("keystone", closed(self), tls=True, path="/v3")])
        self.assertEqual((checks["keystone"]["ok"], checks["tls"]["ok"]), (False, None))

    def test_a_host_without_a_default_route(self):
        self.write("proc/net/route", "Iface\tDestination\n")
        self.assertEqual(self.look()["mtu"]["message"], "the host has no default route")

    def test_a_default_route_of_ipv6(self):
        self.write("proc/net/route", "Iface\tDestination\n")
        zero = "0" * 32
        self.write("proc/net/ipv6_route", "%s 00 %s 00 fe80%s 00000400 0 0 00000003 eth6\n%s 00 %s 00 %s ffffffff 1 0 00200200 lo\n" % (zero, zero, "0" * 28, zero, zero, zero))
        self.write("sys/class/net/eth6/mtu", "1280\n")
        self.assertEqual(self.look()["mtu"]["message"], "the MTU is 1280 of eth6, and 1500 is wanted")

    def test_free_space_is_that_of_the_file_system_that_will_have_the_directory(self):
        module = load("modules", "preflight")
        asked = []

        def statvfs(path):
            asked.append(path)
            return types.SimpleNamespace(f_bavail=5, f_frsize=GIB)
        self.assertTrue(module.check_disk({"/nonexistent/deep/directory": 5}, statvfs)["ok"])
        self.assertFalse(module.check_disk({"/nonexistent": "5.5"}, statvfs)["ok"])
        self.assertEqual(asked, ["/", "/"])


class FilterTest(unittest.TestCase):
    def setUp(self):
        self.filters = load("filter", "preflight")

    def test_endpoints_are_those_of_the_configuration_and_have_no_password(self):
        found = self.filters.preflight_endpoints(CONFIG.replace("p,ss%%w", "p%%2Css"), ["quay.example:8443/nova/compute:1", "registry.example.com/nova@sha256:0", "localhost/nova:1", "nova", "library/nova"])
        self.assertEqual([(e["check"], e["host"], e["port"], e["tls"], e.get("path")) for e in found], [
            ("message bus", "bus-1.example", 5671, True, None), ("message bus", "fd00::2", 5672, True, None),
            ("keystone", "keystone.example", 443, True, "/identity"), ("keystone", "10.0.0.3", 5000, False, "/"),
            ("registry", "quay.example", 8443, True, "/v2/"), ("registry", "registry.example.com", 443, True, "/v2/")])
        self.assertNotIn("secret", json.dumps(found))

    def test_ports_have_the_defaults_of_the_protocol(self):
        endpoints = self.filters.preflight_endpoints
        self.assertEqual(endpoints("[DEFAULT]\ntransport_url = rabbit://u:p@h/\n")[0]["port"], 5672)
        for secured in ("/?ssl=1\n", "/\n[oslo_messaging_rabbit]\nssl = true\n"):
            self.assertEqual(endpoints("[DEFAULT]\ntransport_url = rabbit://u:p@h" + secured)[0], {"check": "message bus", "host": "h", "port": 5672, "tls": True})
        self.assertEqual(endpoints(""), [])

    GOOD = {"rc": 0, "stdout": "", "stderr": ""}
    ROOT = dict(GOOD, stdout="0\r\n")
    PYTHON = dict(GOOD, stdout="Python 3.11.2\r\n")

    def test_every_planted_fault_of_logging_in_is_found_with_its_remedy(self):
        refused = {"unreachable": True, "msg": "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.1 port 22: Connection refused"}
        for name, results, failing, message, remedy in (
                ("ssh", (refused, {"skipped": True}, {"skipped": True}), "ssh", "Connection refused", "ansibleHost"),
                ("sudo asks for a password", (self.GOOD, {"failed": True, "msg": "Missing sudo password"}, self.PYTHON), "sudo", "Missing sudo password", "NOPASSWD"),
                ("sudo makes another user", (self.GOOD, dict(self.GOOD, stdout="1000\n"), self.PYTHON), "sudo", "does not become root", "NOPASSWD"),
                ("no Python at all", (self.GOOD, self.ROOT, {"failed": True, "rc": 127, "msg": "non-zero return code", "stdout": "sh: 1: python3: not found"}), "python", "no python3", "install python3 3.9"),
                ("an old Python", (self.GOOD, self.ROOT, dict(self.GOOD, stderr="Python 2.7.18\n")), "python", "Python 2.7", "ansible_python_interpreter"),
                ("a module that broke", (self.GOOD, self.ROOT, self.PYTHON, {"failed": True, "msg": "MODULE FAILURE"}), "host", "MODULE FAILURE", "output of the run")):
            with self.subTest(name):
                checks = self.filters.preflight_report(*results, **({} if len(results) == 4 else {"module": {"checks": []}}))
                wrong = [c for c in checks if not c["ok"]]
                self.assertEqual([c["check"] for c in wrong], [failing])
                self.assertIn(message, wrong[0]["message"])
                self.assertIn(remedy, wrong[0]["remedy"])

    def test_what_a_host_prints_is_cut(self):
        checks = self.filters.preflight_report({"unreachable": True, "msg": "x\n" * 100000}, {}, {}, {})
        self.assertLess(len(checks[0]["message"]), 301)


@runs.needs_ansible
class PlaybookTest(unittest.TestCase):
    """The playbook with the real Ansible: on this machine, and on a host that does not answer."""

    def results(self, run):
        found = re.findall(r"EDPM_PREFLIGHT t0ken ([A-Za-z0-9+/=]+)", run.output)
        return {result["host"]: {c["check"]: c for c in result["checks"]} for result in (json.loads(base64.b64decode(text)) for text in found)}

    def test_each_host_has_a_result(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory, True)
        with open(os.path.join(directory, "01-nova.conf"), "w", encoding="utf-8") as file:
            file.write("[DEFAULT]\ntransport_url = rabbit://nova:s3cret@127.0.0.1:%d/\n" % closed(self))
        hosts = {"here": {"ansible_connection": "local", "ansible_become_method": "ansible.builtin.su"},
                 "gone": {"ansible_host": "127.0.0.1", "ansible_port": closed(self), "ansible_connection": "ssh"}}
        run = runs.Run([{"import_playbook": "edpm.operators.preflight"}], arguments=["--check", "-e", json.dumps({"edpm_preflight_directory": directory})],
                       inventory={"all": {"hosts": hosts, "vars": {"edpm_preflight_token": "t0ken", "edpm_preflight_disk": {"/": 0}, "edpm_preflight_mtu": 1}}})
        found = self.results(run)
        self.assertEqual(set(found), set(hosts), run.output)
        self.assertEqual([(c, check["ok"]) for c, check in found["gone"].items()], [("ssh", False)])
        self.assertIn("Connection refused", found["gone"]["ssh"]["message"])
        if os.getuid() == 0:
            # The test may be in a container without a network.
            self.assertEqual({c: check["ok"] for c, check in found["here"].items() if c != "mtu"}, {
                "ssh": True, "sudo": True, "python": True, "time": True, "disk": True, "dns": True,
                "message bus": False, "keystone": None, "registry": None, "tls": None})
        else:  # su asks for a password
            self.assertEqual({c: check["ok"] for c, check in found["here"].items()}, {"ssh": True, "sudo": False, "python": True})
        self.assertNotIn("s3cret", run.output)
        self.assertEqual(run.code, 0, run.output)

    def test_variables_of_a_host_do_not_choose_which_files_of_the_runner_are_read(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory, True)
        with open(os.path.join(directory, "tls-ca-bundle.pem"), "w", encoding="utf-8") as file:
            file.write("of another directory")
        show = {"ansible.builtin.debug": {"msg": "READS '{{ edpm_preflight_authorities | trim }}'"}}
        play = {"hosts": "all", "gather_facts": False, "vars_files": [os.path.join(runs.COLLECTION, "roles", "edpm_preflight", "vars", "main.yml")], "tasks": [show]}
        run = runs.Run([play], inventory={"all": {"hosts": {"h1": {"ansible_connection": "local", "edpm_preflight_directory": directory}}}})
        self.assertIn("READS ''", run.output)


if __name__ == "__main__":
    unittest.main()
