"""Fails if nova-compute has no connection to its message bus. Runs in its container, with the directory of its configuration as argument."""

import os
import re
import sys

from oslo_config import cfg

DEFAULT_PORT = 5672
ESTABLISHED = "01"


def ports(url):
    """Returns the ports of the hosts of a transport URL, of which there can be several. Without hosts there is nothing to connect to."""
    hosts = [part.rpartition("@")[2] for part in re.split("[/?]", url.partition("://")[2])[0].split(",")]
    found = [re.search(r":(\d+)$", host) for host in hosts if host]
    return {int(port.group(1)) if port else DEFAULT_PORT for port in found}


def transport_url(directory):
    """Returns the address of the message bus."""
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.StrOpt("transport_url", default="", secret=True))
    conf(["--config-file", "/dev/null", "--config-dir", directory])
    return conf.transport_url


def read(path):
    """Returns the lines of a file, none of a process that has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().splitlines()
    except OSError:
        return []


def processes(proc):
    """Returns the directories of the processes of nova-compute."""
    names = [os.path.join(proc, name) for name in os.listdir(proc) if name.isdigit()]
    return [name for name in names if "nova-compute" in "".join(read(os.path.join(name, "cmdline")))]


def sockets(process):
    """Returns the inodes of the sockets of a process."""
    directory, found = os.path.join(process, "fd"), set()
    for name in os.listdir(directory):
        try:
            found.update(re.findall(r"^socket:\[(\d+)\]$", os.readlink(os.path.join(directory, name))))
        except OSError:
            continue  # It was closed meanwhile.
    return found


def connected(process):
    """Returns the ports that a process has connections to."""
    fields = [line.split() for name in ("tcp", "tcp6") for line in read(os.path.join(process, "net", name))[1:]]
    own = sockets(process)
    return {int(each[2].rpartition(":")[2], 16) for each in fields if each[3] == ESTABLISHED and each[9] in own}


def main(directory, proc="/proc"):
    wanted = ports(transport_url(directory))
    if wanted and not any(connected(process) & wanted for process in processes(proc)):
        sys.exit("nova-compute has no connection to its message bus, port %s. See its log, and whether the host reaches the bus." %
                 ", ".join(str(port) for port in sorted(wanted)))


if __name__ == "__main__":
    main(*sys.argv[1:])
