"""The module that writes files, with the real Ansible: its action reads files and templates of the runner."""

import base64
import grp
import hashlib
import os
import pwd
import unittest

import modules
import runs

SECRET = "S3cretPass"


class Files(runs.Run):
    """Runs of one task, one after the other, of which the files below host are remembered."""

    def __init__(self, *tasks, arguments=("--diff", "-vvv"), before=None, **files):
        owner = {"owner": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name}
        self.before, self.tree, self.modes = before or {}, {}, {}
        plays = [{"hosts": "all", "gather_facts": False, "vars": {"host": "{{ inventory_dir }}/../host"},
                  "tasks": [{"name": "task %d" % number, "edpm.operators.config_files": dict(owner, **task)} for number, task in enumerate(tasks)]}]
        super().__init__(plays, hosts=("h1",), arguments=arguments, files=files, prepare=self.prepare)

    def prepare(self, _):
        os.makedirs(self.path("host"))
        for name, text in self.before.items():
            self.write("host/" + name, text)

    def after(self):
        for directory, names, files in os.walk(self.path("host")):
            for name in names + files:
                path = os.path.join(directory, name)
                self.modes[os.path.relpath(path, self.path("host"))] = "%o" % (os.stat(path).st_mode & 0o7777)
            for name in files:
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    self.tree[os.path.relpath(os.path.join(directory, name), self.path("host"))] = file.read()

    def changed(self):
        """Returns which tasks changed something."""
        number, changed = -1, []
        for line in self.output.splitlines():
            number += line.startswith("TASK [task ")
            changed += [number] if line.startswith("changed: [") else []
        return changed


@runs.needs_ansible
class ConfigFilesTest(unittest.TestCase):
    maxDiff = None
    TASK = {"directory": "{{ host }}/etc", "mode": "0640", "directories": [{"path": "{{ host }}/etc", "mode": "0750"}],
            "copies": "{{ {'key': inventory_dir ~ '/../source'} }}", "purge": True, "keep": ["kept"],
            "texts": [{"name": "a/b", "text": "text\n", "mode": "0600"}]}

    def task(self, **options):
        return dict(self.TASK, **options)

    def template(self, *entries):
        return {"templates": {"t.j2": list(entries)}}

    def run_tasks(self, *tasks, **options):
        run = Files(*tasks, **options)
        self.assertEqual(run.code, 0, run.output)
        return run

    def test_all_kinds_of_files(self):
        task = self.task(directories=self.TASK["directories"] + [{"path": "{{ host }}/etc/a", "mode": "0700"}],
                         **self.template({"name": "one", "vars": {"x": 1}}, {"name": "{{ host }}/etc/two", "vars": {"x": "{{ '{{ host }}' }}"}, "mode": "0644"}))
        run = self.run_tasks(task, task, before={"etc/old": "", "etc/.hidden": "", "etc/kept": "", "other": "", "etc/dir/file": ""},
                             **{"project/t.j2": "{% if x %}\nx = {{ x }}\n{% endif %}\n", "source": "{{ 7 * 7 }}"})
        self.assertEqual(run.tree, {"etc/key": "{{ 7 * 7 }}", "etc/one": "x = 1\n", "etc/two": "x = {{ host }}\n", "etc/a/b": "text\n", "etc/kept": "", "other": ""})
        self.assertEqual({name: run.modes[name] for name in ("etc", "etc/a", "etc/key", "etc/one", "etc/two", "etc/a/b")}, {
            "etc": "750", "etc/a": "700", "etc/key": "640", "etc/one": "640", "etc/two": "644", "etc/a/b": "600"})
        self.assertEqual(run.changed(), [0])

    def test_purge_reaches_where_files_are_written_and_no_further(self):
        """What is next to a file that a task writes elsewhere is none of its business, and neither are directories that it keeps."""
        deep = {"name": "a/c/d", "text": "deep\n"}
        task = self.task(directories=self.TASK["directories"] + [{"path": "{{ host }}/" + name, "mode": "0700"} for name in ("etc/a", "etc/a/c", "other")],
                         texts=self.TASK["texts"] + [deep, {"name": "{{ host }}/other/mine", "text": ""}, {"name": "kept/mine", "text": ""}])
        fewer = self.task(directories=task["directories"][:2], texts=self.TASK["texts"])
        before = {"etc/a/old": "", "etc/a/c/old": "", "etc/a/x/y": "", "etc/kept/theirs": "", "other/theirs": "", "theirs": ""}
        run = self.run_tasks(task, task, before=before, source="")
        stays = {"etc/key": "", "etc/a/b": "text\n", "etc/kept/theirs": "", "etc/kept/mine": "", "other/theirs": "", "other/mine": "", "theirs": ""}
        self.assertEqual(run.tree, dict(stays, **{"etc/a/c/d": "deep\n"}))
        self.assertEqual(run.changed(), [0])
        run = self.run_tasks(task, fewer, fewer, before=before, source="")
        self.assertEqual(run.tree, stays)
        self.assertEqual(run.changed(), [0, 1])

    def test_one_file_of_several(self):
        task = self.task(copies="{{ {'all': [inventory_dir ~ '/../one', inventory_dir ~ '/../two'], 'none': []} }}", texts=[])
        run = self.run_tasks(task, one="no end", two="end\n")
        self.assertEqual(run.tree, {"etc/all": "no end\nend\n", "etc/none": ""})

    def test_secrets_are_not_shown(self):
        def task(number):
            return dict(self.template({"name": "t", "vars": {"x": SECRET + str(number)}, "secret": True}, {"name": "shown", "vars": {"x": "visible%d" % number}}),
                        directory="{{ host }}", copies="{{ {'copy': inventory_dir ~ '/../source%d'} }}" % number)
        run = self.run_tasks(task(1), task(2), **{"project/t.j2": "x = {{ x }}\n", "source1": SECRET, "source2": SECRET + "2"})
        self.assertEqual(run.tree, {"t": "x = %s2\n" % SECRET, "copy": SECRET + "2", "shown": "x = visible2\n"})
        self.assertNotIn(SECRET, run.output)
        self.assertNotIn(base64.b64encode(SECRET.encode()).decode()[:12], run.output)
        self.assertIn("-x = visible1\n+x = visible2", run.output)
        for name in ("t", "copy"):
            self.assertRegex(run.output, r"host/%s: (content|made)" % name)

    def test_check_mode_changes_nothing(self):
        before = {"etc/old": "1", "etc/key": "2"}
        run = self.run_tasks(self.task(templates={}, edits=[{"path": "{{ host }}/etc/old", "steps": [{"line": "x"}]}]), arguments=("--check", "--diff"),
                             before=before, source="3")
        self.assertEqual((run.tree, run.changed()), (before, [0]))
        for line in ("etc/key: content", "etc/old: removed", "+text", "+x"):
            self.assertIn(line, run.output)

    def test_a_file_that_is_not_valid_is_not_written(self):
        run = Files({"texts": [{"name": "{{ host }}/a", "text": "new", "validate": "grep -q good %s"}]}, before={"a": "old"})
        self.assertNotEqual(run.code, 0)
        self.assertIn("host/a is not valid", run.output)
        self.assertEqual(run.tree, {"a": "old"})

    # Sees all new files together, and nothing else.
    CHECK = ["sh", "-c", "cd $0; cat *.conf >&2; grep -q bad *.conf && exit 3; grep -q never *.conf && exit 78; ls; echo password=%s" % SECRET, "%(copies)s"]

    def checked(self, *texts, before=None, arguments=("--diff",), **options):
        """Runs tasks, each with the texts of a.conf and b.conf, of which the first before is there."""
        tasks = [dict({"directory": "{{ host }}", "mode": "0640", "purge": True, "keep": ["kept"], "validate": self.CHECK},
                      texts=[{"name": name, "text": text} for name, text in zip(("a.conf", "b.conf"), pair)], **options) for pair in texts]
        return Files(*tasks, before=before, arguments=arguments)

    def test_new_files_are_checked_together_before_they_replace_others(self):
        before = {"a.conf": "old", "c.conf": "x"}
        for arguments in (("--diff",), ("--check", "--diff")):
            run = self.checked(("good", "bad password=%s\n" % SECRET), before=before, arguments=arguments)
            self.assertNotEqual(run.code, 0)
            self.assertEqual(run.tree, before)
            self.assertIn("Refused, nothing was changed: goodbad password=***", run.output)
            self.assertNotIn(SECRET, run.output)

    def test_a_check_says_whether_it_refuses_the_files_each_time(self):
        for text, refused in (("bad", "false"), ("never", "true")):
            run = self.checked((text, ""))
            self.assertNotEqual(run.code, 0)
            self.assertIn('"edpm_refused": %s' % refused, run.output)

    def test_what_the_check_of_valid_files_prints_is_a_warning(self):
        run = self.checked(("good", "fine"))
        self.assertEqual((run.code, run.tree), (0, {"a.conf": "good", "b.conf": "fine"}), run.output)
        for line in ("a.conf", "b.conf", "password=***"):
            self.assertIn("[WARNING]: %s\n" % line, run.output)

    def test_files_are_checked_only_if_they_differ(self):
        same = {"a.conf": "bad", "b.conf": "", "kept": ""}
        self.assertEqual(self.checked(("bad", ""), before=same).code, 0)
        for differs in (dict(same, d=""), {"b.conf": ""}, dict(same, **{"a.conf": "good"})):
            self.assertNotEqual(self.checked(("bad", ""), before=differs).code, 0, differs)

    EDITS = {
        "a line is added": ("a\n", [{"line": "b"}], "a\nb\n"),
        "a line is there": ("b\na\n", [{"line": "b"}], "b\na\n"),
        "a line comes first": ("a\n", [{"line": "b", "first": True}], "b\na\n"),
        "a line in place of the last match": ("x=1\nx=2\ny\n", [{"line": "x=3", "regexp": "^x="}], "x=1\nx=3\ny\n"),
        "a line that matches and is the same": ("x=3\n", [{"line": "x=3", "regexp": "^x="}], "x=3\n"),
        "a line that a longer one contains": ("ab\n", [{"line": "a"}], "ab\na\n"),
        "a file without a line end": ("a", [{"line": "b"}], "a\nb\n"),
        "a line is removed": ("a\nb\na\n", [{"absent": "a"}], "b\n"),
        "a line that is not there is removed": ("a\n", [{"absent": "b"}], "a\n"),
        "matches are replaced": ("pool a\nserver b\n", [{"regexp": r"^(pool|server)(\s.*)?$", "replace": r"# \1\2"}], "# pool a\n# server b\n"),
        "and back": ("# pool a\nx # pool\n", [{"regexp": "^# ", "replace": ""}], "pool a\nx # pool\n"),
        "several steps": ("a\nb\n", [{"regexp": "^b$", "replace": "c"}, {"line": "c"}], "a\nc\n"),
        "a file that does not exist": (None, [{"line": "b"}], "b\n"),
        "a line is removed from a file that does not exist": (None, [{"absent": "b"}], None),
    }

    def test_edits(self):
        names = {case: "f%d" % number for number, case in enumerate(self.EDITS)}
        before = {names[case]: text for case, (text, _, _) in self.EDITS.items() if text is not None}
        task = {"edits": [{"path": "{{ host }}/" + names[case], "steps": steps, "create": after is not None} for case, (_, steps, after) in self.EDITS.items()]}
        run = self.run_tasks(task, task, before=before)
        for case, (_, _, after) in self.EDITS.items():
            with self.subTest(case):
                self.assertEqual(run.tree.get(names[case]), after)
        self.assertEqual(run.changed(), [0])

    def test_a_file_to_edit_that_is_missing(self):
        run = Files({"edits": [{"path": "{{ host }}/none", "steps": [{"line": "a"}]}]})
        self.assertIn("host/none does not exist, but lines in it have to be changed. Install the package", run.output)

    def test_paths_are_removed(self):
        task = {"absent": ["{{ host }}/dir", "{{ host }}/none", "{{ host }}/file"]}
        run = self.run_tasks(task, task, before={"dir/a/b": "", "file": "", "other": ""})
        self.assertEqual((run.tree, run.changed()), ({"other": ""}, [0]))

    def test_a_source_that_does_not_exist(self):
        run = Files({"copies": "{{ {'a': '/nonexistent/b'} }}", "directory": "{{ host }}"})
        self.assertNotEqual(run.code, 0)
        self.assertIn("/nonexistent/b", run.output)


@runs.needs_ansible
class StoredTest(modules.ModuleTest):
    MODULE = "config_files"

    def test_an_edit_of_a_file_of_others_survives_a_loss_of_power(self):
        self.note_writes()
        path = self.write("sshd_config", "Port 22\n")
        edit = {"edits": [{"path": path, "steps": [{"line": "Port 2222", "regexp": "^Port"}]}]}
        self.done(check=True, **edit)
        self.assertEqual(self.writes("sshd_config"), [])
        self.done(**edit)
        self.assertEqual(self.writes("sshd_config"), ["fsync temporary", "rename sshd_config", "fsync sshd_config"])
        self.assertEqual(self.read("sshd_config"), "Port 2222\n")


@runs.needs_ansible
class UnrenderedTest(modules.ModuleTest):
    """What the module does with what an action sends that has rendered nothing."""

    MODULE = "config_files"

    def test_a_template_that_was_not_rendered_is_never_written(self):
        template, plain = "x = {{ x }}\n", "x = 1\n"
        for content, source, refused in ((template, template, True), (template, None, False), (plain, template, False), (plain, plain, False)):
            with self.subTest(content=content, source=source):
                path = self.write("file", "old")
                answer = self.module(**{
                    "owner": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name,
                    "files": [{"path": path, "template": source and hashlib.sha256(source.encode()).hexdigest()}],
                    "contents": {path: base64.b64encode(content.encode()).decode()}})
                self.assertEqual(self.read("file"), "old" if refused else content, answer)
                self.assertEqual("would be the template itself" in answer.get("msg", ""), refused, answer)

if __name__ == "__main__":
    unittest.main()
