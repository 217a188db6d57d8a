"""Opens consoles of QEMU as the console proxy of nova does, by its configuration, and says as which clients it can.

Reads {"server": files, "clients": {name: files}} and writes {name: what became of the client}, as JSON.
"""

import eventlet

eventlet.monkey_patch()  # as nova-novncproxy does

import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import nova.conf  # noqa: E402
from nova.console.rfb import auth, auths  # noqa: E402

CONFIGURATION = "/etc/nova/nova.conf.d"
SOCKET = "/tmp/vnc"


def write(directory, files):
    os.makedirs(directory, exist_ok=True)
    for name, text in files.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


def serve(files):
    """Returns QEMU with a console, once it listens."""
    directory = tempfile.mkdtemp()
    write(directory, files)
    qemu = subprocess.Popen(["qemu-system-x86_64", "-machine", "none", "-nodefaults", "-display", "none", "-S",
                             "-object", "tls-creds-x509,id=c,endpoint=server,verify-peer=on,dir=" + directory, "-vnc", "unix:%s,tls-creds=c" % SOCKET])
    while not os.path.exists(SOCKET):
        if qemu.poll() is not None:
            sys.exit("QEMU does not start")
        time.sleep(0.1)
    return qemu


def attempt(files):
    """Returns what becomes of a client that has the files."""
    shutil.rmtree(CONFIGURATION, True)
    write(CONFIGURATION, files)
    nova.conf.CONF.clear()
    nova.conf.CONF(["--config-file", CONFIGURATION + "/program.ini"], project="nova")
    console = socket.socket(socket.AF_UNIX)
    console.settimeout(20)
    console.connect(SOCKET)
    try:
        console.recv(12)
        console.sendall(b"RFB 003.008\n")
        offered = [auth.AuthType(number) for number in console.recv(console.recv(1)[0])]
        scheme = auths.RFBAuthSchemeList().find_scheme(offered)
        console.sendall(bytes([scheme.security_type()]))
        stream = scheme.security_handshake(console)
        if stream.recv(4) != bytes(4):
            return "refused"
        stream.sendall(b"\1")
        return "%s opened a screen of %d bytes" % (offered[0].name, len(stream.recv(24)))
    except Exception as error:  # whatever the library of TLS says
        return "refused: %s" % type(error).__name__
    finally:
        console.close()


def main():
    given = json.load(sys.stdin)
    qemu = serve(given["server"])
    try:
        said = {name: attempt(files) for name, files in given["clients"].items()}
    finally:
        qemu.kill()
    json.dump({name: said[name].split(":")[0] for name in said}, sys.stdout)


main()
