"""What checks the configuration of nova-compute in its image, with oslo.config and a daemon of the test in place of nova."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import runs

SCRIPT = os.path.join(runs.COLLECTION, "roles", "edpm_service", "files", "check_oslo_config.py")
DAEMON = """
from oslo_config import cfg

CONF = cfg.ConfigOpts()
OWN = [cfg.IntOpt('workers', min=1, deprecated_name='processes'), cfg.StrOpt('kind', choices=['a', 'b']), cfg.StrOpt('dash-name'),
       cfg.IntOpt('pin', secret=True), cfg.MultiOpt('many', item_type=cfg.types.Integer()), cfg.ListOpt('list', item_type=cfg.types.Port())]
CONF.register_opts(OWN)
CONF.register_opts([cfg.IPOpt('address', default='$kind')], group='net')


def own():
    return [(None, OWN), ('net', [cfg.IPOpt('address', default='$kind')])]


def library():
    # The daemon has another idea of kind.
    return [(cfg.OptGroup('library'), [cfg.BoolOpt('on', deprecated_opts=[cfg.DeprecatedOpt('was', group='old')])]), ('DEFAULT', [cfg.IntOpt('kind')]),
            (cfg.OptGroup('AGENT'), [cfg.IntOpt('poll')])]


def other():
    return [('other', [cfg.FloatOpt('ratio')])]
"""
POINTS = "[oslo.config.opts]\ndaemon = daemon:own\nlibrary.one = daemon:library\nother = daemon:other\n"


def has_oslo():
    return subprocess.run([sys.executable, "-c", "import oslo_config"], check=False, stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(os.environ.get("CI") or has_oslo(), "oslo.config is not installed")
class CheckTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="edpm-check-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        self.write("daemon.py", DAEMON)
        self.write("daemon-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: daemon\nVersion: 1\n")
        self.write("daemon-1.dist-info/entry_points.txt", POINTS)

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def check(self, *texts, python=(sys.executable,), arguments=()):
        """Returns exit code, warnings and errors for files with texts."""
        for number, text in enumerate(texts, 1):
            self.write("conf/%d.conf" % number, text)
        with open(SCRIPT, encoding="utf-8") as file:
            command = [*python, "-c", file.read(), os.path.join(self.directory, "conf"), "--parser", "daemon:CONF",
                       "--namespace", "daemon", "--namespace", "library.*", "--source", "2.conf=theirs", *arguments]
        ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                             env=dict(os.environ, PYTHONPATH=self.directory, HOME=self.directory))
        return ran.returncode, ran.stdout.splitlines(), ran.stderr.splitlines()

    def refused(self, *texts):
        code, warnings, errors = self.check(*texts)
        self.assertEqual((code, warnings), (78, []), errors)
        return errors

    def accepted(self, *texts):
        code, warnings, errors = self.check(*texts)
        self.assertEqual((code, errors), (0, []), warnings)
        return warnings

    def test_valid_configuration(self):
        self.assertEqual(self.accepted(
            "[DEFAULT]\nworkers = 1\nkind = a\ndash_name = x\nmany = 1\nmany = 2\nlist = 1,\n  2\n[library]\non = yes\n[net]\naddress = 192.0.2.1\n",
            "", "[other]\nratio = 0.5\n"), [])

    def test_each_value_that_is_not_valid_is_an_error(self):
        self.assertEqual(self.refused(
            "[DEFAULT]\n# comment\nworkers = 0\nkind: c\n", "[DEFAULT]\nmany = 1\nmany = x\nlist = 1,\n  70000\n[net]\naddress = a.b\n[library]\non = often\n[other]\nratio = x\n"), [
                "1.conf line 3: workers in [DEFAULT] is not valid: Should be greater than or equal to 1",
                "1.conf line 4: kind in [DEFAULT] is not valid: Valid values are [a, b], but found 'c'",
                "theirs line 3: many in [DEFAULT] is not valid: invalid literal for int() with base 10: 'x'",
                "theirs line 4: list in [DEFAULT] is not valid: Should be less than or equal to 65535",
                "theirs line 7: address in [net] is not valid: a.b is not IPv4 or IPv6 address",
                "theirs line 9: on in [library] is not valid: Unexpected boolean value 'often'",
                "theirs line 11: ratio in [other] is not valid: could not convert string to float: 'x'"])

    def test_the_last_value_counts(self):
        self.assertEqual(self.accepted("[DEFAULT]\nworkers = x\n", "[DEFAULT]\nworkers = 2\n"), [])

    def test_a_value_with_another_option_in_it(self):
        self.assertEqual(self.accepted("[DEFAULT]\ndash_name = 192.0.2.1\n[net]\naddress = $dash_name\n"), [])
        self.assertEqual(self.refused("[DEFAULT]\ndash_name = nowhere.\n[net]\naddress = $dash_name\n"), ["1.conf line 4: address in [net] is not valid"])
        self.assertEqual(self.refused("[DEFAULT]\npin = 5\ndash_name = x$pin\nworkers = $dash_name\nmany = 1\nmany = ${dash_name}\n"),
                         ["1.conf line 4: workers in [DEFAULT] is not valid", "1.conf line 6: many in [DEFAULT] is not valid"],
                         "neither what is secret nor what may be")

    def test_a_secret_is_not_shown(self):
        self.assertEqual(self.refused("[DEFAULT]\npin = S3cret\n"), ["1.conf line 2: pin in [DEFAULT] is not valid"])
        self.assertEqual(self.refused("[DEFAULT]\nS3cret\n"), ["1.conf line 2: No ':' or '=' found in assignment"])
        self.assertEqual(self.refused("[DEFAULT]\n", "  S3cret\n"), ["theirs line 1: Unexpected continuation line"])

    def test_a_value_of_a_file_that_is_hidden_is_not_shown(self):
        hidden = ("--hidden", "2.*")
        code, _, errors = self.check("[DEFAULT]\nkind = c\nmany = 1\n", "[DEFAULT]\nmany = S3cret\ndash_name = S3cret\n[library]\non = S3cret\n",
                                     "[net]\naddress = $dash_name\n", arguments=hidden)
        self.assertEqual((code, errors), (78, [
            "1.conf line 2: kind in [DEFAULT] is not valid: Valid values are [a, b], but found 'c'",
            "theirs line 2: many in [DEFAULT] is not valid", "theirs line 5: on in [library] is not valid", "3.conf line 2: address in [net] is not valid"]))
        code, _, errors = self.check("[DEFAULT]\nmany = 1\n", "[DEFAULT]\nmany = S3cret\n", "[DEFAULT]\nmany = 1\n", arguments=hidden)
        self.assertEqual((code, errors), (78, ["3.conf line 2: many in [DEFAULT] is not valid"]), "all of its values are read")

    def test_an_old_name_is_a_warning_and_its_value_is_checked(self):
        self.assertEqual(self.accepted("[DEFAULT]\nprocesses = 1\n"), ["1.conf line 2: processes in [DEFAULT] is deprecated"])
        code, warnings, errors = self.check("[DEFAULT]\nprocesses = x\n")
        self.assertEqual((code, errors), (78, ["1.conf line 2: processes in [DEFAULT] is not valid: invalid literal for int() with base 10: 'x'"]), warnings)

    def test_an_unknown_option_is_a_warning(self):
        self.assertEqual(self.accepted("[DEFAULT]\nwrokers = S3cret\n", "[none]\nx = 1\n"), [
            "1.conf line 2: wrokers in [DEFAULT] is unknown to the image, which ignores it",
            "theirs line 2: x in [none] is unknown to the image, which ignores it"])

    def test_a_section_in_another_case_is_the_same_group(self):
        self.assertEqual(self.accepted("[Library]\non = yes\n[NET]\naddress = 192.0.2.1\n[OLD]\nwas = 1\nhad = 2\n"),
                         ["1.conf line 6: was in [OLD] is deprecated", "1.conf line 7: had in [OLD] is unknown to the image, which ignores it"])
        self.assertEqual(self.accepted("[default]\nworkers = x\n"), ["1.conf line 2: workers in [default] is unknown to the image, which ignores it"],
                         "only DEFAULT has no other case")
        self.assertEqual(self.accepted("[net]\naddress = a.b\n", "[Net]\naddress = 192.0.2.1\n[net]\n"), [])
        code, _, errors = self.check("[net]\naddress = 192.0.2.1\n[Library]\non = 1\n[AGENT]\npoll = 1\n", "[NET]\naddress = a.b\n[library]\non = often\n[agent]\npoll = x\n")
        self.assertEqual((code, errors), (78, [
            "theirs line 2: address in [NET] is not valid: a.b is not IPv4 or IPv6 address",
            "theirs line 4: on in [library] is not valid: Unexpected boolean value 'often'",
            "theirs line 6: poll in [agent] is not valid: invalid literal for int() with base 10: 'x'"]))

    def test_a_secret_in_a_section_of_another_case_or_under_another_name_is_not_shown(self):
        hidden = ("--hidden", "2.*")
        code, _, errors = self.check("[net]\naddress = 192.0.2.1\n", "[Net]\naddress = S3cret\n", arguments=hidden)
        self.assertEqual((code, errors), (78, ["theirs line 2: address in [Net] is not valid"]))
        code, _, errors = self.check("[DEFAULT]\nworkers = 1\n", "[DEFAULT]\nprocesses = S3cret\n", arguments=hidden)
        self.assertEqual((code, errors), (78, ["1.conf line 2: workers in [DEFAULT] is not valid", "theirs line 2: processes in [DEFAULT] is not valid"]))

    def test_what_says_which_service_it_is(self):
        for theirs, errors in (
                ("", []), ("[default]\ndash_name = other\n", []), ("[DEFAULT]\nDash_name = other\n", None),
                ("[DEFAULT]\ndash_name = other\n", ["theirs line 2: dash_name in [DEFAULT] must stay me"]),
                ("[DEFAULT]\ndash_name: \n  other\n", ["theirs line 2: dash_name in [DEFAULT] must stay me"]),
                ("[DEFAULT]\ndash_name = me\nworkers = 3\n", ["theirs line 3: workers in [DEFAULT] must be that of 1*.conf"]),
                ("[NET]\naddress = 192.0.2.1\n", ["theirs line 2: address in [NET] must be that of 1*.conf"])):
            with self.subTest(theirs):
                code, warnings, found = self.check("[DEFAULT]\ndash_name = me\nworkers = 2\n", theirs,
                                                   arguments=("--value", "DEFAULT/dash_name", "me", "--set-in", "DEFAULT/workers", "1*.conf", "--set-in", "net/address", "1*.conf"))
                self.assertEqual((code, found), (78 if errors else 0, errors or []), warnings)

    def test_what_the_service_keeps_in_a_directory(self):
        self.write("host/was/1.conf", "[DEFAULT]\ndash_name = /state\n")
        self.write("host/state/a-1/disk", "")
        self.write("host/state/b", "")
        keep = ("--previous", "/was", "--root", os.path.join(self.directory, "host"), "--keep", "DEFAULT/dash_name", "guests", "a-?")
        moved = ["1.conf line 2: dash_name in [DEFAULT] would leave /state, which has guests (1)"]
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\n", arguments=keep), (1, [], moved))
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /state/\n", arguments=keep), (0, [], []))
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\nworkers = 0\n", arguments=keep)[0], 78)
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\n", arguments=keep[:-1] + ("c-?",)), (0, [], []))
        self.write("host/data/state/a-2/disk", "")
        self.write("host/data/state/a-3/disk", "")
        for link, target in (("moved", "/data/up/state"), ("data/up", "../mid/../data"), ("mid", "/data"), ("around", "/around"), ("kept", "/was")):
            os.symlink(target, os.path.join(self.directory, "host", link))
        self.write("host/was/1.conf", "[DEFAULT]\ndash_name = /moved\n")
        moved = ["1.conf line 2: dash_name in [DEFAULT] would leave /moved, which has guests (2)"]
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\n", arguments=keep), (1, [], moved), "symbolic links are those of the host")
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\n", arguments=("--previous", "/kept") + keep[2:]), (1, [], moved))
        self.write("host/was/1.conf", "[DEFAULT]\ndash_name = /around\n")
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\n", arguments=keep), (0, [], []))
        self.write("host/was/1.conf", "[DEFAULT]\nnonsense\n")
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\n", arguments=keep), (0, [], []), "the service cannot read what it has")
        self.assertEqual(self.check("[DEFAULT]\ndash_name = /other\n", arguments=("--previous", "/none") + keep[2:]), (0, [], []), "it has none yet")

    def test_an_image_without_oslo_config(self):
        code, _, errors = self.check("[DEFAULT]\n", python=(sys.executable, "-S", "-I"))
        self.assertEqual((code, len(errors)), (1, 1))
        self.assertRegex(errors[0], "cannot check anything: No module named 'oslo_config'. Set edpm_nova_check_python")


if __name__ == "__main__":
    unittest.main()
