"""Tests of the callback that writes the recap. Needs ansible-core, nothing else."""

import base64
import importlib.util
import json
import os
import random
import re
import tempfile
import time
import unittest
import zlib

PLUGINS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")


def load(*parts):
    spec = importlib.util.spec_from_file_location(parts[-1], os.path.join(PLUGINS, *parts) + ".py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


recap = load("callback", "recap")
mask = load("module_utils", "mask").mask


def decode(data):
    """Returns the hosts of a recap, and whether it was packed."""
    value = json.loads(data.decode("utf-8"))
    if "z" in value:
        return json.loads(zlib.decompress(base64.b64decode(value["z"]))), True
    return value["hosts"], False


def names(count, length, seed=1):
    generator = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
    return ["".join(generator.choice(letters) for _ in range(length)) for _ in range(count)]


class EncodeTest(unittest.TestCase):
    def fits(self, hosts, steps=1):
        data = recap.encode(hosts, steps)
        self.assertLessEqual(len(data), 4096)
        decoded, packed = decode(data)
        self.assertEqual(list(decoded), list(hosts))
        for name, entry in hosts.items():
            self.assertEqual(decoded[name][:5], entry[:5])
        return decoded, packed

    def test_the_shape_of_a_small_recap(self):
        self.assertEqual(recap.encode({"a": [1, 2, 0, 0, 3], "b": [0, 0, 0, 1, 0, "no route"]}),
                         b'{"v":1,"steps":1,"hosts":{"a":[1,2,0,0,3],"b":[0,0,0,1,0,"no route"]}}')

    def test_differences_are_named_as_far_as_they_fit(self):
        few = {"a": [9, 2, 0, 0, 3, "", "", 2, 1, None, 0, [[1, "Write hosts", "/etc/hosts"], [2, "Run nova"]]]}
        self.assertEqual(self.fits(few, 2)[0], few)
        many = [[step, "Task %d of %d" % (n, step)] for step in (1, 2) for n in range(30)]
        (entry,) = self.fits({"a": few["a"][:11] + [many]}, 2)[0].values()
        self.assertEqual(entry[11], many[:8] + [[1, 22]] + many[30:38] + [[2, 22]])

    def test_that_a_step_differs_is_never_lost(self):
        generator = random.Random(3)
        texts = names(400, 70, seed=4)
        hosts = {name: [99, 40, 0, 0, 99, "", "", 7, 1, None, 0, [[step, generator.choice(texts), "/" + generator.choice(texts)] for step in range(1, 8) for _ in range(6)]]
                 for name in names(50, 63)}
        for entry in self.fits(hosts, 7)[0].values():
            self.assertEqual({difference[0] for difference in entry[11]}, set(range(1, 8)))

    def test_fifty_hosts_that_differ_alike_are_named(self):
        same = [[step, "Write the configuration of step %d" % step, "/etc/step/%d.conf" % step] for step in range(1, 8)]
        hosts = {name: [99, 7, 0, 0, 99, "", "", 7, 1, None, 0, same] for name in names(50, 20)}
        for entry in self.fits(hosts, 7)[0].values():
            self.assertEqual(entry[11], same)

    def test_names_of_what_differs(self):
        for result, arguments, want in (
                ({"changes": ["/etc/hosts: 2 lines", "edpm_nova_compute: restarted"]}, {"path": "/x"}, ["/etc/hosts", "edpm_nova_compute"]),
                ({"changes": ["write edpm_nova.service", "restart edpm_nova.service", "enable x", "the password is S3cret", "remove /etc/x"]}, {}, ["edpm_nova.service", "/etc/x"]),
                ({"path": "/etc/a"}, {"dest": "/etc/b"}, ["/etc/a", "/etc/b"]),
                ({}, {"dest": "{{ path }}", "content": "secret"}, []),
                ({"changes": ["password is S3cret", "/etc/x y: z"]}, {}, []),
                ({"path": "/etc/secret", "_ansible_no_log": True}, {"path": "/etc/secret"}, []),
                ({"results": [{"changed": True, "dest": "/a"}, {"changed": False, "dest": "/b"}, {"changed": True, "invocation": {"module_args": {"path": "/c"}}}, 7]}, {}, ["/a", "/c"]),
                ({"changes": ["/%d: x" % n for n in range(9)]}, {}, ["/0", "/1", "/2"]),
                ({"path": "/" + "x" * 200}, {}, []),
        ):
            with self.subTest(result):
                self.assertEqual(recap.names_of(result, arguments), want)

    def test_no_hosts(self):
        self.assertEqual(recap.encode({}), b'{"v":1,"steps":1,"hosts":{}}')

    def test_long_messages_are_cut_to_the_same_length(self):
        hosts = {name: [1, 0, 1, 0, 0, "m" * 200] for name in names(30, 10)}
        decoded, packed = self.fits(hosts)
        self.assertFalse(packed)
        lengths = {len(entry[5]) for entry in decoded.values()}
        self.assertEqual(len(lengths), 1)
        self.assertGreater(lengths.pop(), 60)

    def test_what_comes_behind_the_message_is_kept_when_it_is_cut(self):
        hosts = {name: [0, 0, 0, 1, 0, "m" * 200, "", 0, 0] for name in names(50, 63)}
        decoded, _ = self.fits(hosts)
        self.assertEqual({tuple(entry[6:]) for entry in decoded.values()}, {("", 0, 0)})

    def test_fifty_hosts_that_fail_in_any_of_many_steps_fit(self):
        generator = random.Random(5)
        hosts = {name: [generator.randint(0, 999) for _ in range(5)] + ["m" * 200, "", generator.randint(0, 31), 1, generator.randint(2, 32), 1]
                 for name in names(50, 63)}
        data = recap.encode(hosts, 32)
        self.assertLessEqual(len(data), 4096)
        decoded, _ = decode(data)
        for name, entry in hosts.items():
            self.assertEqual(decoded[name], [min(count, 1) for count in entry[:5]] + ["", ""] + entry[7:])

    def test_short_messages_are_kept_whole_when_long_ones_are_cut(self):
        hosts = {name: [1, 0, 1, 0, 0, "m" * 200] for name in names(30, 10)}
        hosts["short"] = [1, 0, 1, 0, 0, "one two three"]
        decoded, _ = self.fits(hosts)
        self.assertEqual(decoded["short"][5], "one two three")

    def test_fifty_hosts_with_long_names_and_messages_of_many_bytes_always_fit(self):
        generator = random.Random(7)
        for text in ("\u00fc", "\u6f22", "\U0001f600", '"', "\\", "\u2028"):
            for seed in range(5):
                hosts = {}
                for name in names(50, 63, seed):
                    counts = [generator.choice((0, 7, 42, 1234)) for _ in range(5)]
                    hosts[name] = counts + [text * generator.choice((1, 20, 200))]
                self.fits(hosts)

    def test_random_messages_and_counts_of_fifty_hosts_always_fit(self):
        generator = random.Random(3)
        for seed in range(20):
            hosts = {}
            for name in names(generator.randint(1, 50), generator.randint(1, 63), seed):
                message = "".join(chr(generator.choice((generator.randint(32, 126), generator.randint(0xa1, 0xd7ff))))
                                  for _ in range(generator.randint(0, 200)))
                hosts[name] = [generator.randint(0, 99999) for _ in range(5)] + [message]
            self.fits(hosts)

    def test_counts_alone_are_packed_when_too_long(self):
        hosts = {name: [100, 100, 100, 100, 100] for name in names(50, 63)}
        _, packed = self.fits(hosts)
        self.assertTrue(packed)

    def test_the_keys_of_fifty_hosts_fit_and_some_of_more_do(self):
        def hosts(count, length):
            generator = random.Random(2)
            key = lambda size: base64.b64encode(bytes(generator.randrange(256) for _ in range(size))).decode("ascii")
            return {name: [1, 0, 1, 0, 0, "no reason at all"] + ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + key(length)]
                    for name in names(count, 20)}
        decoded, _ = self.fits(hosts(50, 32))
        self.assertEqual([len(entry) for entry in decoded.values()], [7] * 50)
        decoded, _ = self.fits(hosts(50, 270))  # as long as keys of RSA
        known = [len(entry) > 6 for entry in decoded.values()]
        self.assertTrue(0 < sum(known) < 50)
        self.assertEqual(known, sorted(known, reverse=True))

    def test_what_cannot_fit_says_so(self):
        data = recap.encode({name: [1, 0, 0, 0, 0] for name in names(200, 253)})
        self.assertLessEqual(len(data), 4096)
        self.assertEqual(json.loads(data)["error"], "the recap of 200 hosts does not fit")

    def test_lone_surrogates_do_not_break_it(self):
        self.assertLessEqual(len(recap.encode({"a": [0, 0, 1, 0, 0, "bad \udc80 byte"]})), 4096)


class ReasonTest(unittest.TestCase):
    def test_reasons(self):
        cases = {
            "the message of the module": ({"msg": "no such file"}, "no such file"),
            "hidden results say so": ({"censored": "the output has been hidden"},
                                      "details are hidden because they may hold secrets (no_log)"),
            "no_log hides results that were not cleaned": (
                {"_ansible_no_log": True, "msg": "password"}, "details are hidden because they may hold secrets (no_log)"),
            "the item of a loop that failed": (
                {"msg": "One or more items failed", "results": [{"msg": "fine"}, {"failed": True, "msg": "second is bad"}]},
                "second is bad"),
            "a command's exit code and last words": (
                {"msg": "non-zero return code", "rc": 3, "stderr": "first\nlast\n"}, "exit code 3: last"),
            "a module that broke": (
                {"msg": "MODULE FAILURE\nSee stdout/stderr for the exact error", "module_stderr": "Traceback\nKeyError: 'x'\n", "rc": 1},
                "MODULE FAILURE: KeyError: 'x'"),
            "a module that ended early, as ansible-core 2.19 says it": (
                {"msg": "Module result deserialization failed: No start of json char found", "module_stderr": "Traceback\nKeyError: 'x'\n", "module_stdout": "", "rc": 1},
                "Module result deserialization failed: No start of json char found: KeyError: 'x'"),
            "a disk that is full": (
                {"msg": "Module result deserialization failed: No start of json char found", "rc": 1, "module_stdout": "",
                 "module_stderr": "Traceback\nFileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp']\n"},
                "the disk of the host is full or read-only, see df and mount there: No usable temporary directory found in ['/tmp', '/var/tmp']"),
            "ssh's reason without its noise": (
                {"unreachable": True, "msg": "Failed to connect to the host via ssh: Warning: Permanently added '1.2.3.4' (ED25519) "
                                             "to the list of known hosts.\r\nu@1.2.3.4: Permission denied (publickey)."},
                "u@1.2.3.4: Permission denied (publickey)."),
            "a host that is another one": (
                {"unreachable": True, "msg": "Failed to connect to the host via ssh: @@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
                                             "@@@@@@\r\nIT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\n"
                                             "The fingerprint for the ED25519 key sent by the remote host is\nSHA256:abc/DEF+1.\r\n"
                                             "Host key verification failed."},
                "the host shows another key than it had, SHA256:abc/DEF+1: if it was reinstalled, put its public key in annotation "
                "edpm.openstack.org/host-key of the node"),
            "the same when data was to be sent": (
                {"unreachable": True, "msg": 'Data could not be sent to remote host "1.2.3.4". Make sure this host can be reached '
                                             "over ssh: ssh: connect to host 1.2.3.4 port 22: No route to host\r\n"},
                "ssh: connect to host 1.2.3.4 port 22: No route to host"),
            "colours and control characters go": ({"msg": "\x1b[31mred\x1b[0m\tand\x00\nblue\u200b"}, "red and blue"),
            "a list of messages": ({"msg": ["one", "two"]}, "one two"),
            "nothing at all": ({}, "no reason given"),
            "the last line of an exception": ({"exception": "Traceback\n  File x\nMemoryError\n", "stdout": ""}, "MemoryError"),
            "items within items": ({"msg": "One or more items failed", "results": [{"failed": True, "results": [{"failed": True}], "msg": "x"}]}, "x"),
            "what is no list of items": ({"results": 7, "msg": "x"}, "x"),
        }
        for name, (result, expected) in cases.items():
            with self.subTest(name):
                self.assertEqual(recap.reason(result), expected)


class HostileTextTest(unittest.TestCase):
    """A host may print what it likes; who reads it must not take longer for more of it."""

    TEXTS = {
        "token": "token", "quotes": "parse'", "addresses": "a://b:", "colours": "\x1b[", "keys": "HOST IDENTIFICATION HAS CHANGED SHA256:",
        "ssh": "Warning: Permanently added ", "blanks": " ", "lines": "\n", "secrets": "secret_", "one word": "x", "assignments": "token= ",
    }

    def quick(self, work):
        for name, text in self.TEXTS.items():
            with self.subTest(name):
                started = time.process_time()
                work(text * (200_000 // len(text)))
                self.assertLess(time.process_time() - started, 2)

    def test_reasons(self):
        self.quick(lambda text: recap.reason({"msg": text}))
        self.quick(lambda text: recap.reason({"msg": "non-zero return code", "rc": 1, "stderr": text, "stdout": text}))
        self.quick(lambda text: recap.reason({"exception": text}))
        self.quick(lambda text: recap.reason({"msg": [text] * 3}))

    def test_addresses(self):
        self.quick(lambda text: recap.no_login(text[:recap.MAX_TEXT]))
        self.quick(lambda text: recap.jump_reason(text[:recap.MAX_TEXT], "b"))

    def test_masks_what_must_gather_masks(self):
        """The lines are a test of cmd/kubectl-edpm/internal/redact as well."""
        lines = os.path.join(os.path.dirname(PLUGINS), os.pardir, "cmd", "kubectl-edpm", "internal", "redact", "testdata", "lines.json")
        with open(lines, encoding="utf-8") as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 10)
        for case in cases:
            for secret in case["secrets"]:
                self.assertNotIn(secret, mask(case["line"]), case["line"])

    def test_masks(self):
        self.quick(mask)
        for text in self.TEXTS.values():
            self.assertLess(len(mask(text * 10_000)), 10_000, "a line this long is cut")


class Thing:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class CallbackTest(unittest.TestCase):
    def setUp(self):
        file = tempfile.NamedTemporaryFile(delete=False)
        file.close()
        self.addCleanup(os.remove, file.name)
        self.path = file.name
        self.callback = recap.CallbackModule()
        self.known, self.connected = self.path + ".known", self.path + ".connected"
        self.callback.get_option = {"path": self.path, "known_hosts": self.known, "connected": self.connected, "steps": 1}.get
        self.done = set()
        self.callback.progress = self.progress()

    def progress(self):
        return Thing(start=lambda play, variables: False, ran=lambda name, well: None, begun={}, idle=set(),
                     done=lambda failed: {name: 1 for name in self.done})

    def ssh_knows(self, *lines):
        self.write(self.known, *lines)

    def write(self, path, *lines):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))

    def play(self, *hosts, **hostvars):
        variables = Thing(get_vars=lambda play: {
            "ansible_play_hosts_all": list(hosts), "hostvars": {name: hostvars.get(name, {}) for name in hosts}})
        self.callback.v2_playbook_on_play_start(Thing(get_variable_manager=lambda: variables))

    def result(self, host, task, variables=None, **result):
        return Thing(_host=Thing(get_name=lambda: host), task_name=task, _task=Thing(action=task, vars=variables or {}), _result=result)

    def stats(self, **hosts):
        fields = ("ok", "changed", "failures", "unreachable", "skipped")
        summaries = {name: dict(zip(fields, counts)) for name, counts in hosts.items()}
        empty = dict.fromkeys(fields, 0)
        self.callback.v2_playbook_on_stats(Thing(
            processed={name: 1 for name in hosts}, summarize=lambda name: summaries.get(name, empty)))
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)["hosts"]

    def test_a_run_with_all_kinds_of_hosts(self):
        self.play("good", "bad", "gone", "late")
        self.callback.v2_runner_on_failed(self.result("bad", "Start it", msg="will not"))
        self.callback.v2_runner_on_unreachable(self.result("gone", "Note the start", msg="no route"))
        self.done = {"good"}
        self.assertEqual(self.stats(good=(3, 1, 0, 0, 2), bad=(1, 0, 1, 0, 0), gone=(0, 0, 0, 1, 0)), {
            "good": [3, 1, 0, 0, 2],
            "bad": [1, 0, 1, 0, 0, "Start it: will not"],
            "gone": [0, 0, 0, 1, 0, "no route"],
            "late": [0, 0, 0, 0, 0, "not reached", "", 0],
        })

    def test_a_host_that_stood_by_when_a_play_was_aborted_says_so(self):
        self.play("a")
        self.assertEqual(self.stats(a=(1, 1, 0, 0, 0)), {"a": [1, 1, 0, 0, 0, recap.ABORTED, "", 0]})

    def test_nothing_ran_on_a_host_only_if_ssh_never_logged_in(self):
        self.play("down", "pipe", "dropped", "denied", "other", "unknown")
        for host, message in {
                "down": "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.1 port 22: No route to host",
                "pipe": 'Data could not be sent to remote host "10.0.0.6". Make sure this host can be reached over ssh: [Errno 32] Broken pipe',
                # The retry failed, the first attempt did not.
                "dropped": "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.2 port 22: No route to host",
                "denied": "Failed to connect to the host via ssh: u@fd00::3: Permission denied (publickey).",
                "other": "Host key for [10.0.0.4]:2222 has changed and you have requested strict checking.",
                "unknown": "Failed to connect to the host via ssh: Shared connection to 10.0.0.5 closed."}.items():
            self.callback.v2_runner_on_unreachable(self.result(host, "T", msg=message))
        self.write(self.connected, "10.0.0.20 10.0.0.20", "10.0.0.2 10.0.0.2", "10.0.0.5 10.0.0.5")
        dark = (0, 0, 0, 1, 0)
        recap_of = self.stats(down=dark, pipe=dark, dropped=dark, denied=dark, other=dark, unknown=dark)
        self.assertEqual({host: fields[8:] for host, fields in recap_of.items()},
                         {"down": [0], "pipe": [0], "dropped": [], "denied": [0], "other": [0], "unknown": []})

    CHANGED = ("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nThe fingerprint for the ED25519 key sent by the remote host is\n"
               "SHA256:abc/DEF+1.\r\nHost key for %s has changed and you have requested strict checking.\r\nHost key verification failed.\r\n")
    CLOSED = "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by UNKNOWN port 65535"
    # What ssh of OpenSSH 9.2 says, and what the message of a host behind jump host b says of it.
    BEHIND = {
        "down": ("ssh: connect to host b port 22: Connection refused\r\n" + CLOSED, "jump host b: connect to host b port 22: Connection refused"),
        "unresolved": ("ssh: Could not resolve hostname b: Name or service not known\r\n" + CLOSED,
                       "jump host b: Could not resolve hostname b: Name or service not known"),
        "denied": ("jump@b: Permission denied (publickey).\r\n" + CLOSED, "jump host b: Permission denied (publickey): check user and key of jumpHost"),
        "other": (CHANGED % "jump-host" + CLOSED,
                  "jump host b shows another key than its hostKey says, SHA256:abc/DEF+1: correct jumpHost.hostKey if it was reinstalled"),
        "closed": ("channel 0: open failed: connect failed: No route to host\r\nstdio forwarding failed\r\n" + CLOSED,
                   "jump host b was reached, but does not connect to the host (connect failed: No route to host): check that it is up, its address"),
        "shared": ("Stdio forwarding request failed: Session open refused by peer\r\n" + CLOSED,
                   "jump host b was reached, but does not connect to the host (Session open refused by peer): check that it is up, its address"),
        "silent": ("Connection timed out during banner exchange\r\nConnection to UNKNOWN port 65535 timed out",
                   "no answer through jump host b: Connection timed out during banner exchange"),
        # The host itself was reached: its own failures read as they do without a jump host.
        "refused": ("u@10.0.0.9: Permission denied (publickey).", "u@10.0.0.9: Permission denied (publickey)."),
        "replaced": (CHANGED % "10.0.0.9", "the host shows another key than it had, SHA256:abc/DEF+1: if it was reinstalled"),
    }

    def test_a_failure_at_the_jump_host_is_told_from_one_at_the_host(self):
        options = self.callback.get_option
        self.callback.get_option = lambda name: "b" if name == "jump_host" else options(name)
        self.play(*self.BEHIND, **{name: {"ansible_host": "10.0.0.9"} for name in self.BEHIND})
        for host, (message, _) in self.BEHIND.items():
            self.callback.v2_runner_on_unreachable(self.result(host, "T", msg="Failed to connect to the host via ssh: " + message))
        for host, fields in self.stats(**{name: (0, 0, 0, 1, 0) for name in self.BEHIND}).items():
            with self.subTest(host):
                self.assertTrue(fields[5].startswith(self.BEHIND[host][1]), fields[5])
                self.assertEqual(fields[8:], [0], "nothing ran on it")

    def test_a_host_whose_jump_host_failed_later_was_reached_before(self):
        options = self.callback.get_option
        self.callback.get_option = lambda name: "b" if name == "jump_host" else options(name)
        self.play("a", a={"ansible_host": "fd00::9", "ansible_port": 2222})
        self.callback.v2_runner_on_unreachable(self.result("a", "T", msg=self.BEHIND["down"][0]))
        self.write(self.connected, "fd00::9 fd00::9")
        self.assertEqual(self.stats(a=(1, 1, 0, 1, 0))["a"][8:], [])

    def test_the_key_of_a_host_is_told_when_it_is_first_met(self):
        self.ssh_knows("[10.0.0.2]:2222 ssh-ed25519 OLD", "# a comment", "10.0.0.9")
        only = Thing(_uuid="1", get_variable_manager=lambda: None, vars={})
        self.callback.v2_playbook_on_start(Thing(get_plays=lambda: [only], _entries=[only], _loader=None))
        self.callback.progress = self.progress()
        self.play("new", "old", "bad", "never", new={"ansible_host": "10.0.0.1"},
                  old={"ansible_host": "10.0.0.2", "ansible_port": 2222}, bad={}, never={"ansible_host": "10.0.0.9"})
        self.ssh_knows("[10.0.0.2]:2222 ssh-ed25519 OLD", "10.0.0.1 ssh-ed25519 NEW", "bad,10.0.0.3 ssh-rsa BAD comment")
        self.callback.v2_runner_on_unreachable(self.result("bad", "T", msg="denied"))
        self.done = {"new", "old", "never"}
        self.assertEqual(self.stats(new=(1, 0, 0, 0, 0), old=(1, 0, 0, 0, 0), bad=(0, 0, 0, 1, 0), never=(1, 0, 0, 0, 0)), {
            "new": [1, 0, 0, 0, 0, "", "ssh-ed25519 NEW"],
            "old": [1, 0, 0, 0, 0],
            "bad": [0, 0, 0, 1, 0, "denied", "ssh-rsa BAD"],
            "never": [1, 0, 0, 0, 0],
        })

    def test_an_ignored_or_rescued_failure_leaves_no_message(self):
        self.play("a", "b")
        self.callback.v2_runner_on_failed(self.result("a", "Try", msg="no"), ignore_errors=True)
        self.callback.v2_runner_on_failed(self.result("b", "Try", msg="no"))
        self.done = {"a", "b"}
        done = [2, 0, 0, 0, 0]
        self.assertEqual(self.stats(a=(2, 0, 0, 0, 0), b=(2, 0, 0, 0, 0)), {"a": done, "b": done})

    def test_the_last_failure_counts(self):
        self.play("a")
        self.callback.v2_runner_on_failed(self.result("a", "Start", msg="no"))
        self.callback.v2_runner_on_failed(self.result("a", "Report", msg="why"))
        self.assertEqual(self.stats(a=(2, 0, 1, 0, 0))["a"][5], "Report: why")

    def test_a_task_that_fails_each_time_with_the_same_inputs_says_so(self):
        self.play("a", "b", "c", "d", "e")
        for host, *results in (("a", True), ("b", True, None), ("c", None, True), ("d", "yes"), ("e", True)):
            for refused in results:
                self.callback.v2_runner_on_failed(self.result(host, "Configure", msg="no", edpm_refused=refused))
        self.callback.v2_runner_on_unreachable(self.result("e", "Configure", msg="no route"))
        failed = (2, 0, 1, 0, 0)
        recap_of = self.stats(a=failed, b=failed, c=failed, d=failed, e=(2, 0, 0, 1, 0))
        self.assertEqual({host: entry[7:] for host, entry in recap_of.items()}, {"a": [0, 1, 1, 1], "b": [], "c": [0, 1, 1, 1], "d": [], "e": []})

    def test_a_task_that_needs_an_empty_host_says_so(self):
        self.play("a", "b", "c", "d", "e")
        empty = {"edpm_needs": "drained"}
        for host, *tasks in (("a", empty), ("b", empty, {}), ("c", {}, empty), ("d", {"edpm_needs": "other"}), ("e", empty)):
            for variables in tasks:
                self.callback.v2_runner_on_failed(self.result(host, "Check", variables, msg="no"))
        self.callback.v2_runner_on_unreachable(self.result("e", "Check", empty, msg="no route"))
        failed = (2, 0, 1, 0, 0)
        recap_of = self.stats(a=failed, b=failed, c=failed, d=failed, e=(2, 0, 0, 1, 0))
        self.assertEqual({host: entry[7:] for host, entry in recap_of.items()},
                         {"a": [0, 1, None, 0, [], 1], "b": [], "c": [0, 1, None, 0, [], 1], "d": [], "e": []})

    def test_a_rescued_refusal_is_none(self):
        self.play("a")
        self.callback.v2_runner_on_failed(self.result("a", "Try", msg="no", edpm_refused=True))
        self.done = {"a"}
        self.assertEqual(self.stats(a=(2, 0, 0, 0, 0)), {"a": [2, 0, 0, 0, 0]})

    def test_what_a_module_notes_is_said_of_a_host_that_is_well(self):
        self.play("a", "b", "c", "d")
        for host, action, note in (("a", "one", "A reboot\nis pending"), ("a", "two", "and more"), ("b", "one", "A reboot is pending"), ("b", "one", ""),
                                   ("c", "one", "A reboot is pending"), ("d", "one", {"not": "text"})):
            self.callback.v2_runner_on_ok(self.result(host, action, edpm_note=note))
        self.callback.v2_runner_on_failed(self.result("c", "Start", msg="no"))
        self.done = {"a", "b", "d"}
        done = (2, 0, 0, 0, 0)
        self.assertEqual({host: entry[5:] for host, entry in self.stats(a=done, b=done, c=(2, 0, 1, 0, 0), d=done).items()},
                         {"a": ["A reboot is pending. and more"], "b": [], "c": ["Start: no"], "d": []})

    def test_messages_have_at_most_200_characters(self):
        self.play("a")
        self.callback.v2_runner_on_failed(self.result("a", "T", msg="\u6f22" * 1000))
        self.assertEqual(len(self.stats(a=(0, 0, 1, 0, 0))["a"][5]), 200)

    def test_a_path_that_cannot_be_written_is_no_failure(self):
        self.callback.get_option = lambda name: 1 if name == "steps" else "/nonexistent/" + name
        self.callback.v2_playbook_on_stats(Thing(processed={}, summarize=None))


class MaskTest(unittest.TestCase):
    def test_lines(self):
        cases = {
            "transport_url = rabbit://u:secret@h:5672/": "transport_url = ***",
            "cannot reach rabbit://u:secret@h:5672/": "cannot reach rabbit://***@h:5672/",
            "admin_password=secret": "admin_password=***",
            "[service] 'auth_token': 'secret'": "[service] 'auth_token': ***",
            "Failed to parse /etc/x: at x:3, No ':' or '=' found in assignment: 'secret'":
                "Failed to parse /etc/x: at x:3, No '***'",
            "No such file or directory": "No such file or directory",
            "KeyError: 'x'": "KeyError: 'x'",
        }
        for line, expected in cases.items():
            with self.subTest(line):
                self.assertEqual(mask(line), expected)
                self.assertNotIn("secret", mask(line))

    def test_what_must_gather_masks_too(self):
        path = os.path.join(PLUGINS, "..", "..", "cmd", "kubectl-edpm", "internal", "redact", "testdata", "lines.json")
        if not os.path.exists(path):
            self.skipTest("this is not the repository")
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 10)
        for case in cases:
            with self.subTest(case["line"]):
                for secret in case["secrets"]:
                    # Short parts of a password are parts of words as well.
                    self.assertNotIn(secret, re.sub(r"^[\w ]+", "", mask(case["line"])))


if __name__ == "__main__":
    unittest.main()
