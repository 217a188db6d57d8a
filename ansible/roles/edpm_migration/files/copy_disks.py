"""Command of the login by which nova on other computes of the cell copies disks of guests: it runs what nova sends, and refuses all else.

What nova sends is in nova/virt/libvirt/volume/remotefs.py. No shell reads it. The service of the login has a root directory
of its own: nothing of the host can be reached there but directories of guests, whatever a path or a link in it says. The
service of the login gives neither a terminal nor forwarding.
"""

import os
import re
import sys

INSTANCES = "/var/lib/nova/instances"
GUEST = INSTANCES + "/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NAME = "/[A-Za-z0-9_][A-Za-z0-9_.-]*"
# Of scp before OpenSSH 9: what is sent, and what is asked for if an image no longer exists.
SENT = "%s(?:%s)?" % (GUEST, NAME)
FETCHED = "(?:%s|%s/_base)%s" % (GUEST, INSTANCES, NAME)
# Letters of rsync before e are options, and those after it say what the other side can do.
LETTERS = "-[logDtprRSz]+e[0-9]*\\.?[A-Za-z]*"
# With R a path that is sent begins at the root directory.
RSYNC = "(?:%s|%s|/)" % (INSTANCES, SENT)
ALLOWED = [re.compile(pattern, re.ASCII) for pattern in (
    # Whether storage is shared is found out with a file.
    "(touch|rm) %s/[0-9a-f]{32}\\.tmp" % GUEST,
    "(mkdir) -p %s" % GUEST,
    "(rm) -rf %s" % GUEST,
    "(scp) (?:-r )?-t %s" % SENT,
    "(scp) (?:-r )?-f %s" % FETCHED,
    "(rsync) --server %s(?: --(?:delete|delete-excluded|no-implied-dirs))* \\. %s/?" % (LETTERS, RSYNC),
    "(rsync) --server --sender %s \\. %s" % (LETTERS, FETCHED),
)]
# The request for the subsystem; scp of OpenSSH 9 and later sends files by it. It makes no links, and removes and renames nothing.
SFTP = "sftp-server"
SFTP_PATHS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
SFTP_REQUESTS = "open,close,read,write,lstat,fstat,setstat,fsetstat,opendir,readdir,mkdir,realpath,stat,limits,expand-path"
# Asked whether the login works.
CHECK = "true"


def arguments(command):
    """Returns the program that a command runs with its arguments, nothing for one that is refused."""
    if command == CHECK:
        return ["true"]
    if command == SFTP:
        return [next((path for path in SFTP_PATHS if os.path.exists(path)), SFTP_PATHS[0]), "-d", INSTANCES, "-p", SFTP_REQUESTS]
    match = next((found for found in (pattern.fullmatch(command) for pattern in ALLOWED) if found), None)
    if match is None:
        return None
    words = command.split(" ")
    # Links that are sent lead nowhere.
    return words[:2] + ["--munge-links"] + words[2:] if match.group(1) == "rsync" else words


def main(command):
    found = arguments(command)
    if found is None:
        sys.exit("This login copies disks of guests of nova, and runs nothing else.")
    try:
        os.execvpe(found[0], found, {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    except OSError as error:
        sys.exit("%s cannot be run on this host: %s" % (found[0], error.strerror))


if __name__ == "__main__":
    main(os.environ.get("SSH_ORIGINAL_COMMAND", ""))
