"""Connects to libvirt and to QEMU over TLS with the certificates of hosts, and says as which clients it can.

Reads {"confs": {name: text}, "server": files, "clients": {name: files}, "qemu": {name: {"server": files, "client": files}}} and writes for each
configuration of libvirt what became of the clients, and for "qemu" likewise, as JSON.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

PKI = "/etc/pki"
NBD = 10809
CREDENTIALS = "tls-creds-x509,id=c,endpoint=%s,verify-peer=on,dir=%s"


def write(directory, files):
    for name, text in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return directory


def wait(port, process):
    """Waits until a process listens at a port."""
    while True:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return process
        if process.poll() is not None:
            sys.exit("%s does not start" % process.args[0])
        time.sleep(0.1)


def said(command, good):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=60, check=False)
    if ran.returncode != 0:
        print(" ".join(command[-2:]), ran.stdout, file=sys.stderr)
    return good if ran.returncode == 0 else "refused"


def libvirt(conf, server, clients):
    write(PKI, server)
    write("/tmp", {"libvirtd.conf": conf})
    daemon = wait(16514, subprocess.Popen(["libvirtd", "--config", "/tmp/libvirtd.conf", "--listen"]))
    try:
        return {name: said(["virsh", "--quiet", "--connect", "qemu+tls://127.0.0.1/system?pkipath=" + write(tempfile.mkdtemp(), files), "uri"], "connected")
                for name, files in clients.items()}
    finally:
        daemon.kill()
        daemon.wait()


def qemu(given):
    write("/tmp", {"disk": "x" * 512})
    server = wait(NBD, subprocess.Popen(["qemu-nbd", "--object", CREDENTIALS % ("server", write(tempfile.mkdtemp(), given["server"])), "--tls-creds", "c",
                                         "--persistent", "--format", "raw", "--bind", "127.0.0.1", "--port", str(NBD), "/tmp/disk"]))
    try:
        return said(["qemu-img", "info", "--object", CREDENTIALS % ("client", write(tempfile.mkdtemp(), given["client"])), "--image-opts",
                     "driver=nbd,host=127.0.0.1,port=%d,tls-creds=c" % NBD], "connected")
    finally:
        server.kill()
        server.wait()


def main():
    given = json.load(sys.stdin)
    became = {name: libvirt(conf, given["server"], given["clients"]) for name, conf in given["confs"].items()}
    became["qemu"] = {name: qemu(pair) for name, pair in given["qemu"].items()}
    json.dump(became, sys.stdout)


main()
