#!/usr/bin/env python3
"""Prepares /runner from the environment, runs the given command and says how it ended.

Environment read:
  RUNNER_PLAYBOOK    text of a playbook      -> project/playbook.yaml
  RUNNER_INVENTORY   text of an inventory    -> inventory/inventory.yaml, or inventory/inventory if it is no YAML
  RUNNER_CMDLINE     more ansible arguments  -> env/cmdline
  RUNNER_EXTRA_VARS  variables, as YAML      -> env/extravars
  ANSIBLE_SSH_ARGS   arguments of ssh, behind those by which hosts are trusted
  ANSIBLE_PRIVATE_KEY_FILE  ssh key; replaced by a copy that ssh accepts
  EDPM_JUMP_HOST     host through which all others are reached, as JSON with address, port, user
                     and hostKey; its ssh key is in /runner/jump/ssh-privatekey
  ANSIBLE_TASK_TIMEOUT  seconds that a task may take (600); it cannot be turned off
  EDPM_RECAP_PATH    where the recap of the run goes (/dev/termination-log)

Keys of hosts that are known already are in /runner/config/known_hosts.

Called as ansible-playbook it sets what has to hold for every run and becomes the
real one: ansible-runner and its files in /runner/env have the last word otherwise.

The exit code is that of the command. A run that ends before Ansible could write
a recap of its hosts leaves one that holds only the category of the error.
"""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys

import yaml

RUNNER_DIR = os.environ.get("EDPM_RUNNER_DIR", "/runner")
RECAP_PATH = os.environ.get("EDPM_RECAP_PATH") or "/dev/termination-log"
TMP_DIR = os.environ.get("EDPM_TMP_DIR") or "/tmp"
NSS_WRAPPER = "libnss_wrapper.so"
CALLBACKS = ["edpm.operators.recap", "edpm.operators.limits"]
PLAYBOOK_COMMAND = "ansible-playbook"

# A host answers what it likes, also facts with the names of our variables. So facts
# are seen as ansible_facts only, and stay in memory. See docs/security.md.
FORCED = {
    "ANSIBLE_INJECT_FACT_VARS": "False",
    "ANSIBLE_CACHE_PLUGIN": "memory",
    "ANSIBLE_HOST_KEY_CHECKING": "True",
    "ANSIBLE_SSH_HOST_KEY_CHECKING": "True",
    "ANSIBLE_TRANSPORT": "ssh",
    "ANSIBLE_CONNECTION_PLUGINS": "/usr/share/ansible/plugins/connection",
    "ANSIBLE_SSH_EXECUTABLE": "ssh",
    "ANSIBLE_SFTP_EXECUTABLE": "sftp",
    "ANSIBLE_SCP_EXECUTABLE": "scp",
    "ANSIBLE_SSH_CONTROL_PATH": "",
    "ANSIBLE_SSH_CONTROL_PATH_DIR": "/tmp/ansible-cp",
}
# The same for variables, of an inventory and wherever else they can be set: extra
# variables come before all others, and the last ones before those of the user.
FORCED_VARS = {
    "ansible_host_key_checking": True,
    "ansible_ssh_host_key_checking": True,
    "ansible_ssh_args": "{{ lookup('ansible.builtin.env', 'ANSIBLE_SSH_ARGS') }}",
    "ansible_ssh_executable": "ssh",
    "ansible_sftp_executable": "sftp",
    "ansible_scp_executable": "scp",
    "ansible_control_path": "",
    "ansible_control_path_dir": FORCED["ANSIBLE_SSH_CONTROL_PATH_DIR"],
}
# Seconds after which a task fails on a host that does not answer.
TASK_TIMEOUT = 600

# A host is trusted when it is first seen (accept-new), and known by its key from
# then on: the key is in the recap of the run and is handed to every later one.
# These options come first, since ssh takes the first value that it finds: neither
# a variable of the environment nor an ansible.cfg of the user turns them off.
# ssh notes the hosts that it has logged in to: on others nothing can have run.
KNOWN_HOSTS = RUNNER_DIR + "/.known_hosts"
CONNECTED = RUNNER_DIR + "/.connected"
TRUST = "-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=%s -o HashKnownHosts=no " \
    "-o PermitLocalCommand=yes -o 'LocalCommand=echo %%h %%n >>%s'" % (KNOWN_HOSTS, CONNECTED)
SSH_ARGS = "-C -o ControlMaster=auto -o ControlPersist=60s -o ConnectTimeout=15 -o ServerAliveInterval=15 " \
    "-o ServerAliveCountMax=4 -o PreferredAuthentications=publickey"

# The ssh that connects to the jump host reads no other configuration than this one, and
# trusts the one key that it was given. The name jump-host is the alias by which the recap
# tells its errors from those of the hosts behind it. Its time limit is below that of ssh to
# the hosts, which would otherwise end first and not say why.
JUMP = RUNNER_DIR + "/.jump"
JUMP_ALIAS = "jump-host"
JUMP_CONFIG = """Host {alias}
HostName {address}
Port {port}
User {user}
HostKeyAlias {alias}
IdentityFile {directory}/key
IdentitiesOnly yes
IdentityAgent none
PreferredAuthentications publickey
BatchMode yes
StrictHostKeyChecking yes
UserKnownHostsFile {directory}/known_hosts
GlobalKnownHostsFile /dev/null
UpdateHostKeys no
ConnectTimeout 10
ServerAliveInterval 15
ServerAliveCountMax 4
ControlPath {directory}/socket
"""
# As an option for all hosts. It precedes those of the user, as TRUST does.
JUMP_ARGS = " -o \"ProxyCommand=ssh -F %s/config -W '[%%h]:%%p' %s\"" % (JUMP, JUMP_ALIAS)
JUMP_CATEGORY = "the jump host is not valid: correct jumpHost"
# Seconds that the jump host has to let the runner in. ssh itself has no time limit for authentication.
JUMP_SECONDS = 60

# Releases of ansible-core with which the tests of the collection have been run, the
# oldest and the newest. Another one may write other files than ours.
SUPPORTED = ((2, 14), (2, 22))

MATERIALISED = {
    "RUNNER_PLAYBOOK": "project/playbook.yaml",
    "RUNNER_INVENTORY": "inventory/inventory.yaml",
    "RUNNER_CMDLINE": "env/cmdline",
    "RUNNER_EXTRA_VARS": "env/extravars",
}

# How an inventory begins that is meant as YAML; admission judges by the same.
YAML_START = re.compile(r"---|\{|[^\s:=\[]+:(\s|$)")

INVENTORY_CATEGORY = "the inventory cannot be read"
VARIABLES_CATEGORY = "the extra variables are not valid"

# What Ansible prints when it gives up, and what we say. First match wins. Only
# the category is passed on: Ansible quotes the lines around a syntax error.
CATEGORIES = [
    (r"the playbook: .* could not be found", "the playbook does not exist in the execution environment"),
    (r"parse .*inventory|inventory .*(unparsed|parse)|inventory source", INVENTORY_CATEGORY),
    (r"--limit does not match any hosts", "no host of the inventory matches the limit"),
    (r"the role '.*' was not found", "a role of the playbook does not exist in the execution environment"),
    (r"couldn't resolve module/action", "a module of the playbook does not exist in the execution environment"),
    (r"Syntax Error while loading YAML|is not a valid attribute|conflicting action statements"
     r"|playbooks must be a list|playbook entries must be|no action detected|no module/action detected"
     r"|A playbook must", "the playbook is not valid"),
    (r"Unable to (read|find) .*extra.?vars|Invalid extra vars|extravars", VARIABLES_CATEGORY),
    (r"unrecognized arguments|error: argument|usage: ansible", "the command line arguments are not valid"),
    (r"No space left on device", "no space is left in the execution environment"),
]
UNKNOWN_CATEGORY = "Ansible ended before it could report on its hosts; the log of the Pod says why"


def log(message):
    print("edpm-entrypoint: " + message, file=sys.stderr, flush=True)


def write_private(path, text):
    """Writes text to path so that only this user can read it."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def writable(directory):
    return os.access(directory, os.W_OK)


def inventory_name(text):
    """Returns the name of the file for an inventory, by which its format is known."""
    for line in text.splitlines():
        if line.strip() and line[0] not in "#;":
            return "inventory.yaml" if YAML_START.match(line.rstrip()) else "inventory"
    return "inventory.yaml"


def materialise(environ):
    """Writes what the environment carries, and takes it out of the environment.

    The inventory directory may be a mount that cannot be written to; then the
    inventory goes to another directory, which Ansible reads as well.
    """
    texts = {path: environ.pop(name, "").strip() for name, path in MATERIALISED.items()}
    for directory in ("project", "inventory", "env", "artifacts"):
        os.makedirs(os.path.join(RUNNER_DIR, directory), exist_ok=True)
    inventory = texts.pop("inventory/inventory.yaml")
    if inventory and not writable(os.path.join(RUNNER_DIR, "inventory")):
        directory = os.path.join(TMP_DIR, "inventory")
        os.makedirs(directory, exist_ok=True)
        write_private(os.path.join(directory, inventory_name(inventory)), inventory + "\n")
        texts["env/cmdline"] = (texts["env/cmdline"] + " -i " + directory).strip()
    elif inventory:
        texts["inventory/" + inventory_name(inventory)] = inventory
    for path, text in texts.items():
        if text:
            write_private(os.path.join(RUNNER_DIR, path), text + "\n")


def check_syntax():
    """Returns what is wrong with the inventory or the variables, or None.

    Ansible would quote the lines around a syntax error, which may hold secrets.
    """
    inventory = os.path.join(RUNNER_DIR, "inventory")
    paths = [(os.path.join(inventory, name), INVENTORY_CATEGORY) for name in sorted(os.listdir(inventory))
             if name.endswith((".yaml", ".yml", ".json"))]
    paths.append((os.path.join(RUNNER_DIR, MATERIALISED["RUNNER_EXTRA_VARS"]), VARIABLES_CATEGORY))
    for path, sentence in paths:
        try:
            with open(path, encoding="utf-8") as file:
                yaml.compose(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            log("%s: %s" % (path, type(error).__name__))
            return sentence
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            log("%s is not valid YAML%s" % (path, mark and ": line %d, column %d" % (mark.line + 1, mark.column + 1) or ""))
            return sentence
    return None


def ansible_version():
    """Returns the version of ansible-core as text, or None if there is none."""
    try:
        from ansible.release import __version__
        return __version__
    except ImportError:
        pass
    try:  # of an interpreter of its own
        output = subprocess.run([PLAYBOOK_COMMAND, "--version"], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    except OSError:
        return None
    found = re.match(r"\S+ \[?(?:core )?(\d[^\]\s]*)", output.decode("utf-8", "replace"))
    return found.group(1) if found else None


def check_version(version):
    """Returns what is wrong with this version of ansible-core, or None."""
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    if not numbers:
        return None  # without Ansible there is no run
    oldest, newest = SUPPORTED
    if oldest <= tuple(int(number) for number in numbers.groups()) <= newest:
        return None
    return "ansible-core %s of the execution environment is not supported, but %d.%d to %d.%d. Choose another image in the object " \
        "(image, ansibleEEContainerImage) or in the manager (RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT)" % ((version,) + oldest + newest)


def know_user(environ):
    """Gives the user id a passwd entry, without which ssh refuses to work."""
    home = RUNNER_DIR if os.access(RUNNER_DIR, os.W_OK) else TMP_DIR
    environ["HOME"] = home
    try:
        pwd.getpwuid(os.getuid())
        return
    except KeyError:
        pass
    passwd = os.path.join(TMP_DIR, "passwd")
    group = os.path.join(TMP_DIR, "group")
    write_private(passwd, "runner:x:%d:%d:runner:%s:/bin/sh\n" % (os.getuid(), os.getgid(), home))
    write_private(group, "runner:x:%d:\n" % os.getgid())
    environ.update(LD_PRELOAD=NSS_WRAPPER, NSS_WRAPPER_PASSWD=passwd, NSS_WRAPPER_GROUP=group)


def copy_private(source, copy):
    """Copies an ssh key: ssh wants it private and with a final newline. Returns whether it could be read.

    Without a key that cannot be read each host is reported as unreachable, with the reason.
    """
    try:
        with open(source, encoding="utf-8") as file:
            key = file.read()
    except (OSError, UnicodeDecodeError) as error:
        log("the ssh key %s cannot be read: %s" % (source, type(error).__name__))
        return False
    write_private(copy, key.replace("\r\n", "\n").strip() + "\n")
    return True


def copy_key(environ):
    """Copies the ssh key, if there is one; one that cannot be read is left alone."""
    source, copy = environ.get("ANSIBLE_PRIVATE_KEY_FILE"), os.path.join(TMP_DIR, "ssh-privatekey")
    if source and copy_private(source, copy):
        environ["ANSIBLE_PRIVATE_KEY_FILE"] = copy


def jump_host(environ):
    """Returns the jump host of the run, None if there is none. A ValueError says that it is not valid."""
    text = environ.get("EDPM_JUMP_HOST")
    if not text:
        return None
    jump = json.loads(text)
    words = [jump["address"], str(jump.get("port") or 22), jump["user"], *jump["hostKey"].split()[:2]]
    # Each is a word of a configuration of ssh or of a file of known hosts.
    if len(words) != 5 or any(re.search(r"[\s\"'#%]|^-|^$", word) for word in words):
        raise ValueError("a word of it is empty or has a character that ssh would take for another one")
    return dict(zip(("address", "port", "user"), words), key=" ".join(words[3:]))


def prepare_jump(environ):
    """Writes what ssh needs for the jump host. Returns what is wrong with that, or None."""
    try:
        jump = jump_host(environ)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        log("EDPM_JUMP_HOST: %s: %s" % (type(error).__name__, error))
        return JUMP_CATEGORY
    if jump:
        os.makedirs(JUMP, exist_ok=True)
        write_private(JUMP + "/config", JUMP_CONFIG.format(alias=JUMP_ALIAS, directory=JUMP, **jump))
        write_private(JUMP + "/known_hosts", "%s %s\n" % (JUMP_ALIAS, jump["key"]))
        copy_private(os.path.join(RUNNER_DIR, "jump", "ssh-privatekey"), JUMP + "/key")
        environ["EDPM_RUNNER_JUMP_HOST"] = jump["address"]
    return None


def open_jump(environ):
    """Opens the one connection to the jump host that all hosts use while it lasts.

    All of them start at once, and a server of ssh turns most of that many connections away
    (MaxStartups, sshd_config(5)). Without that connection each has its own, and says what is wrong.
    """
    if environ.get("EDPM_JUMP_HOST"):
        try:
            subprocess.run(["ssh", "-F", JUMP + "/config", "-M", "-N", "-f", JUMP_ALIAS], env=environ, check=False, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=None, timeout=JUMP_SECONDS)
        except subprocess.TimeoutExpired:
            log("the jump host %s has not let the runner in after %d s" % (environ["EDPM_RUNNER_JUMP_HOST"], JUMP_SECONDS))


def close_jump(environ):
    """Closes the connection to the jump host."""
    if os.path.exists(JUMP + "/socket"):
        subprocess.run(["ssh", "-F", JUMP + "/config", "-O", "exit", JUMP_ALIAS], env=environ, check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def know_hosts():
    """Copies the known host keys to where ssh adds those of hosts that it meets."""
    try:
        with open(os.path.join(RUNNER_DIR, "config", "known_hosts"), encoding="utf-8") as file:
            write_private(os.path.join(RUNNER_DIR, ".known_hosts"), file.read())
    except FileNotFoundError:
        pass


def task_timeout(environ):
    """Returns how long a task may take, in seconds."""
    wanted = environ.get("ANSIBLE_TASK_TIMEOUT") or str(TASK_TIMEOUT)
    if wanted.isascii() and wanted.isdigit() and int(wanted) > 0:
        return wanted
    log("ANSIBLE_TASK_TIMEOUT is %s, which would let one host block all others: it is %d" % (wanted, TASK_TIMEOUT))
    return str(TASK_TIMEOUT)


def configure(environ):
    """Sets what ansible-runner or a user's settings would otherwise turn off. To do so twice changes nothing."""
    environ.update(FORCED)
    environ["ANSIBLE_TASK_TIMEOUT"] = task_timeout(environ)
    arguments = environ.get("ANSIBLE_SSH_ARGS") or SSH_ARGS
    first = TRUST + (JUMP_ARGS if environ.get("EDPM_JUMP_HOST") else "")
    environ["ANSIBLE_SSH_ARGS"] = arguments if arguments.startswith(first) else first + " " + arguments
    environ.setdefault("ANSIBLE_CONFIG", "/etc/ansible/ansible.cfg")
    environ.pop("ANSIBLE_CALLBACK_WHITELIST", None)
    callbacks = environ.get("ANSIBLE_CALLBACKS_ENABLED", "").split(",")
    environ["ANSIBLE_CALLBACKS_ENABLED"] = ",".join(dict.fromkeys([c for c in callbacks if c] + CALLBACKS))
    environ.update(EDPM_RECAP_PATH=RECAP_PATH, EDPM_RUNNER_KNOWN_HOSTS=KNOWN_HOSTS, EDPM_RUNNER_CONNECTED=CONNECTED)


def precede_ansible(environ):
    """Makes this file the first ansible-playbook that is found."""
    directory = os.path.join(TMP_DIR, "edpm-bin")
    link = os.path.join(directory, PLAYBOOK_COMMAND)
    os.makedirs(directory, exist_ok=True)
    if not os.path.lexists(link):
        os.symlink(os.path.abspath(__file__), link)
    environ["PATH"] = directory + os.pathsep + environ.get("PATH", os.defpath)


def become_ansible(arguments):
    """Continues as the real ansible-playbook."""
    configure(os.environ)
    own = os.path.realpath(__file__)
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        real = shutil.which(PLAYBOOK_COMMAND, path=directory)
        if real and os.path.realpath(real) != own:
            os.execv(real, [real, *arguments, "--extra-vars", json.dumps(FORCED_VARS)])
    log("there is no " + PLAYBOOK_COMMAND)
    return 127


def write_recap(text):
    try:
        with open(RECAP_PATH, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        log("the recap cannot be written: %s" % error)


def has_recap():
    try:
        return os.path.getsize(RECAP_PATH) > 0
    except OSError:
        return False


def last_output():
    """Returns the end of what Ansible printed in the newest run."""
    artifacts = os.path.join(RUNNER_DIR, "artifacts")
    texts = []
    for directory, _, files in os.walk(artifacts):
        for name in files:
            if name in ("stdout", "stderr"):
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    file.seek(max(os.path.getsize(path) - 20000, 0))
                    texts.append((os.path.getmtime(path), file.read().decode("utf-8", "replace")))
    return "\n".join(text for _, text in sorted(texts))


def category(output):
    """Returns why Ansible gave up, as one of a fixed set of sentences."""
    # Hosts can have written what is there: long lines are cut before they are matched.
    output = "\n".join(line[:500] for line in output.splitlines())
    errors = "\n".join(re.findall(r"(?:ERROR!|error:|usage:|Errno).*(?:\n.+){0,3}", output))
    for pattern, sentence in CATEGORIES:
        if re.search(pattern, errors, re.IGNORECASE):
            return sentence
    return UNKNOWN_CATEGORY


def run(command, environ):
    """Runs command as a child, passes signals on and reaps orphans.

    Returns its exit code and whether it was told to stop.
    """
    stopped = []
    child = subprocess.Popen(command, env=environ)

    def forward(number, _frame):
        stopped.append(number)
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, forward)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            child.returncode = code
            return (code if code >= 0 else 128 - code), bool(stopped)


def main(command):
    environ = dict(os.environ)
    os.umask(0o077)
    write_recap("")
    try:
        know_user(environ)
        materialise(environ)
        copy_key(environ)
        know_hosts()
        configure(environ)
        precede_ansible(environ)
        wrong = check_version(ansible_version()) or check_syntax() or prepare_jump(environ)
        if wrong:
            write_recap(json.dumps({"v": 1, "hosts": {}, "error": wrong}))
            return 4
        open_jump(environ)
        try:
            code, stopped = run(command, environ)
        finally:
            close_jump(environ)
    except FileNotFoundError as error:
        log("%s" % error)
        code, stopped = 127, False
    except OSError as error:
        log("%s" % error)
        code, stopped = 1, False
    if stopped:
        # Nobody knows what the hosts are like now: say nothing about them.
        write_recap("")
        return code or 143
    if code != 0 and not has_recap():
        write_recap(json.dumps({"v": 1, "hosts": {}, "error": category(last_output())}))
    return code


if __name__ == "__main__":
    sys.exit((become_ansible if os.path.basename(sys.argv[0]) == PLAYBOOK_COMMAND else main)(sys.argv[1:]))
