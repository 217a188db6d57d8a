"""What roles write and decide, without a host."""

import json
import os
import sys
import unittest

import yaml

import runs

sys.path.insert(0, os.path.join(runs.COLLECTION, "plugins", "filter"))
import next_hops  # noqa: E402


class NextHopsTest(unittest.TestCase):
    """Routes as ip -json route show default prints them (iproute2 6.1)."""

    CASES = {
        "none": ([], []),
        "one gateway": ([{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []}], [("eth0", "192.0.2.1")]),
        "the first of two": ([{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "metric": 100}, {"dst": "default", "gateway": "192.0.2.2", "dev": "eth1", "metric": 200}],
                             [("eth0", "192.0.2.1")]),
        "several next hops": ([{"dst": "default", "flags": [], "nexthops": [{"gateway": "192.0.2.1", "dev": "eth0", "weight": 1, "flags": []},
                                                                            {"gateway": "198.51.100.1", "dev": "eth1", "weight": 1, "flags": []}]}],
                              [("eth0", "192.0.2.1"), ("eth1", "198.51.100.1")]),
        "a link-local gateway": ([{"dst": "default", "gateway": "fe80::1", "dev": "bond0", "protocol": "ra", "flags": []}], [("bond0", "fe80::1%bond0")]),
        "a global IPv6 gateway": ([{"dst": "default", "gateway": "2001:db8::1", "dev": "eth0"}], [("eth0", "2001:db8::1")]),
        "an IPv6 gateway of an IPv4 route": ([{"dst": "default", "via": {"family": "inet6", "host": "fe80::2"}, "dev": "eth0"}], [("eth0", "fe80::2%eth0")]),
        "no gateway": ([{"dst": "default", "dev": "tun0", "scope": "link"}], [("tun0", "")]),
        "unreachable": ([{"type": "unreachable", "dst": "default", "dev": "lo", "metric": 4294967295}], []),
        "unreachable before another": ([{"type": "blackhole", "dst": "default"}, {"dst": "default", "gateway": "2001:db8::1", "dev": "eth0"}], [("eth0", "2001:db8::1")]),
    }

    def test_next_hops(self):
        for name, (routes, want) in self.CASES.items():
            with self.subTest(name):
                self.assertEqual([(hop["dev"], hop["gateway"]) for hop in next_hops.next_hops(routes)], want)


class Rendering(runs.Run):
    """A run that renders a template of a role."""

    def __init__(self, role, template, **variables):
        self.text = ""
        super().__init__([{"hosts": "all", "gather_facts": False, "vars": variables, "tasks": [{"ansible.builtin.template": {
            "src": os.path.join(runs.COLLECTION, "roles", role, "templates", template), "dest": "{{ inventory_dir }}/../rendered"}}]}], hosts=("h1",))

    def after(self):
        if self.code == 0:
            with open(self.path("rendered"), encoding="utf-8") as file:
                self.text = file.read()


class Configuration(runs.Run):
    """Runs of the task of the role edpm_nova that copies the configuration, each with the files of one host, into a directory here."""

    ROLE = os.path.join(runs.COLLECTION, "roles", "edpm_nova")
    OPTIONS = "edpm.operators.config_files"

    def __init__(self, *steps):
        with open(os.path.join(self.ROLE, "tasks", "main.yml"), encoding="utf-8") as file:
            task = next(task for task in yaml.safe_load(file) if task["name"] == "Copy the configuration")
        top, self.trees, self.steps = "{{ inventory_dir }}/../nova", [], steps
        source = dict(task[self.OPTIONS], owner=os.getuid(), texts=[])
        source["templates"] = {os.path.join(self.ROLE, "templates", name): value for name, value in source["templates"].items()}
        tasks = []
        for number, files in enumerate(steps):
            variables = {
                "edpm_config_files": {name: "{{ inventory_dir }}/../%d/%s" % (number, name) for name in files}, "edpm_nova_config_dir": top, "edpm_nova_gid": str(os.getgid()),
                "edpm_nova_directories": [{"path": top, "mode": "0750"}], "edpm_nova_check": False, "edpm_nova_host_settings": {"host": "h1"}, "edpm_nova_my_ip": "",
                "edpm_nova_directories_of_providers": [{"path": top + "/provider_config", "mode": "0750"}] if any(name.startswith("provider") for name in files) else []}
            tasks += [dict(task, vars=variables, **{self.OPTIONS: source}),
                      {"name": "keep", "ansible.builtin.command": "cp --recursive %s {{ inventory_dir }}/../tree%d" % (top, number), "changed_when": False}]
        super().__init__([{"hosts": "all", "gather_facts": False, "tasks": tasks, "vars_files": [os.path.join(self.ROLE, name, "main.yml") for name in ("defaults", "vars")]}],
                         hosts=("h1",), files={"%d/%s" % (number, name): text for number, files in enumerate(steps) for name, text in files.items()})

    def after(self):
        for number in range(len(self.steps)):
            top, tree = self.path("tree%d" % number), {}
            for directory, _, names in os.walk(top):
                for path in [os.path.join(directory, name) for name in names]:
                    with open(path, encoding="utf-8") as file:
                        tree[os.path.relpath(path, top)] = file.read()
            self.trees.append(tree)


@runs.needs_ansible
class FurtherFilesTest(unittest.TestCase):
    """Files that nova-compute reads next to its options."""

    maxDiff = None
    HOST = "# Written by the role edpm.operators.edpm_nova, which overwrites changes.\n[DEFAULT]\nhost = h1\n"
    OPTIONS = {"01-nova.conf": "[DEFAULT]\n"}

    def test_each_is_where_nova_compute_looks_for_it_and_removed_with_the_last(self):
        files = {"policy.yaml": "a: b\n", "vendor_data.json": "{}", "provider.yaml": "one", "provider-2.yaml": "two"}
        fewer = {"provider.yaml": "other"}
        run = Configuration(dict(self.OPTIONS, **files), dict(self.OPTIONS, **files), dict(self.OPTIONS, **fewer), self.OPTIONS)
        self.assertEqual(run.code, 0, run.output)
        providers = "\n[compute]\nprovider_config_location = /etc/nova/nova.conf.d/provider_config\n"
        vendor_data = "\n[api]\nvendordata_jsonfile_path = /etc/nova/nova.conf.d/vendor_data.json\n"
        first = dict(self.OPTIONS, **{"policy.yaml": "a: b\n", "vendor_data.json": "{}", "provider_config/provider.yaml": "one", "provider_config/provider-2.yaml": "two",
                                      "01-nova-host.conf": self.HOST + vendor_data + providers})
        self.assertEqual(run.trees, [first, first, dict(self.OPTIONS, **{"provider_config/provider.yaml": "other", "01-nova-host.conf": self.HOST + providers}),
                                     dict(self.OPTIONS, **{"01-nova-host.conf": self.HOST})])
        self.assertEqual([line.split(":")[0] for line in run.output.splitlines() if line.startswith(("changed: ", "ok: "))][::2], ["changed", "ok", "changed", "changed"])


class Owners(runs.Run):
    """A run of the tasks of the role edpm_nova that look at who owns what nova-compute uses, as a user of the image with these IDs."""

    OWNER = 4711 if os.getuid() == 0 else os.getuid()

    def __init__(self, uid, groups, mode):
        with open(os.path.join(Configuration.ROLE, "tasks", "main.yml"), encoding="utf-8") as file:
            every = json.loads(json.dumps(yaml.safe_load(file)).replace("/var/lib/nova", "{{ inventory_dir }}/../host").replace("/run/libvirt", "{{ inventory_dir }}/../host"))
        names = [task["name"] for task in every]
        first = names.index("Find out who owns what nova-compute uses")
        variables = dict(runs.vars_of("edpm_nova", "edpm_nova_uid", "edpm_nova_groups", "edpm_nova_owner", "edpm_nova_socket_groups"),
                         edpm_service_found={"answers": {"user": [str(uid), str(groups[0]), " ".join(str(group) for group in groups)]}},
                         edpm_take_over="", edpm_nova_user="nova", edpm_nova_compute_image="example/nova:2")
        prepare = [{"ansible.builtin.file": {"path": "{{ inventory_dir }}/../host/libvirt-sock", "mode": mode}},
                   {"ansible.builtin.file": {"path": "{{ inventory_dir }}/../host/compute_id", "owner": str(self.OWNER)}}]
        super().__init__([{"hosts": "all", "gather_facts": False, "vars": variables, "tasks": prepare + every[first:first + 2]}], hosts=("h1",),
                         files={"host/compute_id": "id", "host/libvirt-sock": ""})


@runs.needs_ansible
class OwnersTest(unittest.TestCase):
    def test_an_image_whose_user_could_not_use_what_the_host_has_is_refused(self):
        uid, gid = Owners.OWNER, os.getgid()
        for name, run, refused in (
                ("the same IDs", Owners(uid, [gid], "0770"), None),
                ("root", Owners(0, [12345], "0770"), None),
                ("another user", Owners(54321, [gid], "0770"), "belong to the ID %d" % uid),
                ("no member of the group of the socket", Owners(uid, [12345], "0770"), "the sockets of libvirt to the group %d" % gid),
                ("a socket for everyone", Owners(uid, [12345], "0777"), None),
        ):
            with self.subTest(name):
                self.assertEqual(run.code == 0, refused is None, run.output)
                self.assertIn(refused or "", run.output)
                if refused:
                    self.assertIn("In example/nova:2 user nova has the ID", run.output)


class Identity(runs.Run):
    """A run of the tasks of the role edpm_nova that give a host the ID of its compute, if there is one, on a host with a file of it."""

    def __init__(self, before, *arguments, ident="new-id"):
        self.ident = None
        with open(os.path.join(Configuration.ROLE, "tasks", "main.yml"), encoding="utf-8") as file:
            every = json.loads(json.dumps(yaml.safe_load(file)).replace("/var/lib/nova/", "{{ inventory_dir }}/../nova/"))
        names = [task["name"] for task in every]
        first = names.index("Remove an ID of the compute that a loss of power has emptied")
        variables = {"edpm_nova_compute_id": ident, "edpm_nova_in_use": "", "edpm_nova_uid": str(os.getuid()), "edpm_nova_gid": str(os.getgid())}
        super().__init__([{"hosts": "all", "gather_facts": False, "vars": variables, "tasks": every[first:names.index("Run nova-compute")]}], hosts=("h1",),
                         arguments=arguments, files={"nova/compute_id": before} if before is not None else {"nova/other": ""})

    def after(self):
        if os.path.exists(self.path("nova", "compute_id")):
            with open(self.path("nova", "compute_id"), encoding="utf-8") as file:
                self.ident = file.read()


@runs.needs_ansible
class IdentityTest(unittest.TestCase):
    def test_a_host_keeps_the_id_of_its_compute_unless_it_is_empty(self):
        for name, run, want in (
                ("the host has one", Identity("of-the-host"), ("of-the-host", "changed=0")),
                ("it was installed again", Identity(None), ("new-id", "changed=1")),
                ("a loss of power has emptied it", Identity(""), ("new-id", "changed=2")),
                ("and nova knows none", Identity("", ident=""), (None, "changed=1")),
                ("check mode", Identity("", "--check"), ("", "changed=0"))):
            with self.subTest(name):
                self.assertEqual((run.code, run.ident), (0, want[0]), run.output)
                self.assertIn(want[1], run.output)


@runs.needs_ansible
class TemplatesTest(unittest.TestCase):
    def rendered(self, role, template, **variables):
        run = Rendering(role, template, **variables)
        self.assertEqual(run.code, 0, run.output)
        return run.text

    def test_settings_of_libvirt(self):
        text = self.rendered("edpm_libvirt", "libvirt.conf.j2", edpm_libvirt_settings={
            "a_list": ["/dev/null", "/dev/kvm"], "b_true": True, "c_false": False, "d_number": 7, "e_text": "0770", "f_quote": 'a "b"',
            "g_numbers": [1, 2], "h_none": [], "i_backslash": "a\\b"})
        self.assertEqual(text.splitlines()[1:], [
            'a_list = ["/dev/null", "/dev/kvm"]', "b_true = 1", "c_false = 0", "d_number = 7", 'e_text = "0770"', "f_quote = 'a \"b\"'",
            "g_numbers = [1, 2]", "h_none = []", 'i_backslash = "a\\b"'])


class Audit(runs.Run):
    """A run that notes a start and an end, on a host whose sync writes to the same log."""

    def __init__(self, *arguments, sync="true"):
        self.log, self.sync = [], sync
        self.environment = {"PATH": os.environ["PATH"]}  # raw has no keyword environment
        task = {"ansible.builtin.import_role": {"name": "edpm.operators.edpm_audit"}}
        super().__init__([{"hosts": "all", "gather_facts": False, "vars": {"edpm_audit_log": "{{ inventory_dir }}/../host/runs.log"},
                           "tasks": [dict(task, vars={"edpm_audit_event": event}) for event in ("start", "end")]}],
                         hosts=("h1",), arguments=arguments, environment=self.environment, prepare=self.prepare)

    def prepare(self, _):
        self.write("bin/sync", '#!/bin/sh\necho "- sync $*" >> %s\n%s\n' % (self.path("host", "runs.log"), self.sync), 0o755)
        self.environment["PATH"] = self.path("bin") + os.pathsep + self.environment["PATH"]

    def after(self):
        if os.path.exists(self.path("host", "runs.log")):
            with open(self.path("host", "runs.log"), encoding="utf-8") as file:
                self.log = [line.split(" ", 1)[1].strip() for line in file]


@runs.needs_ansible
class AuditTest(unittest.TestCase):
    def test_the_end_is_noted_when_the_files_of_the_step_are_on_the_disk(self):
        run = Audit()
        self.assertEqual((run.code, [line.split()[0] for line in run.log]), (0, ["start", "sync", "end"]), run.output)
        self.assertRegex(run.log[1], "^sync --file-system / .*/etc .*/var/lib")

    def test_a_host_that_cannot_store_them_has_not_ended(self):
        run = Audit(sync="exit 1")
        self.assertEqual((run.code, [line.split()[0] for line in run.log]), (2, ["start", "sync"]), run.output)

    def test_check_mode_writes_nothing(self):
        run = Audit("--check")
        self.assertEqual((run.code, run.log), (0, []), run.output)


class Certificates(runs.Run):
    """A run that writes the configuration of libvirt, and the certificates of a host, by the variables of the roles."""

    CONFS = {"qemu": "edpm_libvirt_qemu_conf", "libvirtd": "(edpm_libvirt_files | selectattr('name', 'eq', 'libvirtd/libvirtd.conf') | first).vars.edpm_libvirt_settings"}

    def __init__(self, names, **variables):
        self.confs, self.written = {}, {}
        files = [os.path.join(runs.COLLECTION, "roles", role, name, "main.yml")
                 for role in ("edpm_migration", "edpm_libvirt") for name in ("defaults", "vars")]
        self.directories = [name for name, first in (("qemu", "tls.crt"), ("libvirt", "tls.crt"), ("consoles", "console.crt")) if first in names]
        tasks = [
            {"ansible.builtin.template": {"src": os.path.join(runs.COLLECTION, "roles", "edpm_libvirt", "templates", "libvirt.conf.j2"),
                                          "dest": "{{ inventory_dir }}/../%s.conf" % name},
             "vars": {"edpm_libvirt_settings": "{{ %s }}" % settings}} for name, settings in self.CONFS.items()
        ] + [
            {"edpm.operators.config_files": {"directory": "{{ inventory_dir }}/../" + name, "copies": "{{ edpm_migration_of_%s }}" % name, "mode": "0640",
                                             "directories": [{"path": "{{ inventory_dir }}/../%s/%s" % (name, directory)} for directory in below]}}
            for name, below in (("qemu", ["."]), ("libvirt", [".", "CA", "libvirt", "libvirt/private"]), ("consoles", ["."])) if name in self.directories
        ]
        config_files = {name: "{{ inventory_dir }}/../given/" + name for name in names}
        variables = dict(variables, edpm_libvirt_daemons=["libvirtd"])
        super().__init__([{"hosts": "all", "gather_facts": False, "vars_files": files, "vars": {"edpm_config_files": config_files}, "tasks": tasks}],
                         hosts=("h1",), arguments=("--extra-vars", json.dumps(variables)), files={"given/" + name: name for name in names})

    def after(self):
        if self.code != 0:
            return
        for name in self.CONFS:
            with open(self.path(name + ".conf"), encoding="utf-8") as file:
                self.confs[name] = file.read().splitlines()
        for top in self.directories:
            self.written[top] = {}
            for directory, _, names in os.walk(self.path(top)):
                for name in names:
                    with open(os.path.join(directory, name), encoding="utf-8") as file:
                        self.written[top][os.path.relpath(os.path.join(directory, name), self.path(top))] = file.read()


@runs.needs_ansible
class MigrationTest(unittest.TestCase):
    SHARED = ("tls.crt", "tls.key", "ca.crt")
    OF_LIBVIRT = {"CA/cacert.pem": "ca.crt", "libvirt/servercert.pem": "tls.crt", "libvirt/clientcert.pem": "tls.crt",
                  "libvirt/private/serverkey.pem": "tls.key", "libvirt/private/clientkey.pem": "tls.key"}

    def run_with(self, *names, **variables):
        run = Certificates(names, **variables)
        self.assertEqual(run.code, 0, run.output)
        return run

    def test_qemu_has_a_certificate_of_its_own(self):
        run = self.run_with(*self.SHARED, "qemu.crt", "qemu.key", "qemu-ca.crt", edpm_migration_address="192.0.2.1", edpm_libvirt_tls_clients="OU=libvirt of a/b,CN=*")
        self.assertEqual(run.written["libvirt"], self.OF_LIBVIRT)
        self.assertEqual(run.written["qemu"], {"ca-cert.pem": "qemu-ca.crt", "server-cert.pem": "qemu.crt", "client-cert.pem": "qemu.crt",
                                               "server-key.pem": "qemu.key", "client-key.pem": "qemu.key"})
        self.assertIn('tls_allowed_dn_list = ["OU=libvirt of a/b,CN=*"]', run.confs["libvirtd"])
        for line in ("listen_tls = 1", "listen_tcp = 0", 'listen_addr = "192.0.2.1"', 'auth_tls = "none"'):
            self.assertIn(line, run.confs["libvirtd"])

    def test_a_host_of_an_earlier_version_keeps_one_certificate(self):
        run = self.run_with(*self.SHARED, edpm_migration_address="192.0.2.1")
        self.assertEqual(run.written["libvirt"], self.OF_LIBVIRT)
        self.assertEqual(run.written["qemu"], {"ca-cert.pem": "ca.crt", "server-cert.pem": "tls.crt", "client-cert.pem": "tls.crt",
                                               "server-key.pem": "tls.key", "client-key.pem": "tls.key"})
        self.assertNotIn("tls_allowed_dn_list", "".join(run.confs["libvirtd"]))

    def test_a_host_without_an_address_listens_for_no_one(self):
        self.assertNotIn("tls", "".join(self.run_with().confs["libvirtd"]))


@runs.needs_ansible
class ConsolesTest(unittest.TestCase):
    OURS = ["vnc_tls = 1", 'vnc_tls_x509_cert_dir = "/var/lib/libvirt/pki/vnc"', "vnc_tls_x509_verify = 1"]

    def consoles(self, **variables):
        run = Certificates(("console-ca.crt", "console.crt", "console.key"), **variables)
        self.assertEqual(run.code, 0, run.output)
        return [line for line in run.confs["qemu"] if line.startswith("vnc_")], run

    def test_consoles_over_tls(self):
        lines, run = self.consoles(edpm_libvirt_console_tls=True, edpm_migration_address="192.0.2.1")
        self.assertEqual(lines, self.OURS)
        self.assertIn('default_tls_x509_cert_dir = "/var/lib/libvirt/pki/qemu"', run.confs["qemu"])
        self.assertEqual(run.written["consoles"], {"ca-cert.pem": "console-ca.crt", "server-cert.pem": "console.crt", "server-key.pem": "console.key"})

    def test_a_host_without_certificates_for_them(self):
        self.assertEqual(self.consoles(edpm_migration_address="192.0.2.1")[0], [])

    def test_settings_of_people_win(self):
        lines, _ = self.consoles(edpm_libvirt_console_tls=True, edpm_libvirt_qemu_settings={"vnc_tls_x509_cert_dir": "/etc/pki/mine"})
        self.assertEqual(lines, [self.OURS[0], 'vnc_tls_x509_cert_dir = "/etc/pki/mine"', self.OURS[2]])


if __name__ == "__main__":
    unittest.main()
