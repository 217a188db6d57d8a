"""The module migration_peers names the hosts that libvirt would not reach."""

import os
import shutil
import socket
import ssl
import subprocess
import threading
import unittest

import modules


@unittest.skipUnless(shutil.which("openssl"), "needs openssl")
class MigrationPeersTest(modules.ModuleTest):
    MODULE = "migration_peers"

    def setUp(self):
        super().setUp()
        self.authority("ca")
        self.certificate("host", "ca", "127.0.0.1")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                     "-keyout", name + ".key", "-out", name + ".crt")

    def certificate(self, name, authority, address):
        self.write(name + ".ext", "subjectAltName=IP:%s\n" % address)
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", authority + ".crt", "-CAkey", authority + ".key", "-CAcreateserial", "-days", "1",
                     "-extfile", name + ".ext", "-out", name + ".crt")

    def libvirt(self, certificate="host", trusted="ca", answer=b"\1"):
        """Returns the port at which something answers as libvirt does."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(certificate + ".crt"), self.path(certificate + ".key"))
        context.load_verify_locations(self.path(trusted + ".crt"))
        context.verify_mode = ssl.CERT_REQUIRED
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen()
        self.addCleanup(server.close)

        def serve():
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                try:
                    with context.wrap_socket(connection, server_side=True) as stream:
                        stream.sendall(answer)
                except OSError:
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()[1]

    def reach(self, port, own="other", peers=None):
        return self.done(peers=peers or {"peer": "127.0.0.1"}, own=own, port=port, authority=self.path("ca.crt"), certificate=self.path("host.crt"),
                         key=self.path("host.key"), patience=2)

    def test_a_host_that_accepts_the_certificate_is_reached(self):
        answer = self.reach(self.libvirt())
        self.assertEqual((answer["unreached"], answer["edpm_note"]), ({}, ""))
        self.assertEqual(self.reach(self.libvirt(), own="peer")["unreached"], {})

    def test_hosts_that_are_not_reached_are_named_with_the_reason(self):
        self.authority("foreign")
        self.certificate("stranger", "foreign", "127.0.0.1")
        self.certificate("misplaced", "ca", "127.0.0.2")
        self.certificate("older", "ca", "127.0.0.1")
        closed = self.libvirt()
        for port, own, why in (
                (self.libvirt(certificate="stranger"), "other", "its certificate is not valid"),
                (self.libvirt(certificate="misplaced"), "other", "its certificate is not valid"),
                (self.libvirt(trusted="foreign"), "other", "it refuses our certificate"),
                (self.libvirt(answer=b""), "other", "it refuses our certificate"),
                (self.libvirt(certificate="older"), "peer", "it has not read its certificate"),
                (1, "other", "it does not listen"),
        ):
            with self.subTest(why=why, port=port):
                answer = self.reach(port, own)
                self.assertEqual((answer["unreached"], answer["edpm_note"]), ({"peer": why}, "Not reached over TLS: peer (%s)" % why))
        self.assertEqual(self.reach(closed)["unreached"], {})

    def test_a_note_of_many_is_short(self):
        answer = self.reach(1, peers={"peer-%d" % n: "127.0.0.1" for n in range(40)})
        self.assertEqual(len(answer["unreached"]), 40)
        self.assertEqual(answer["edpm_note"], "Not reached over TLS: peer-0 (it does not listen), peer-1 (it does not listen), peer-10 (it does not listen), 37 more")

    def test_a_host_without_certificate_fails(self):
        os.unlink(self.path("host.crt"))
        self.assertIn("The certificate of the host cannot be read", self.failure(
            peers={}, own="x", authority=self.path("ca.crt"), certificate=self.path("host.crt"), key=self.path("host.key")))


if __name__ == "__main__":
    unittest.main()
