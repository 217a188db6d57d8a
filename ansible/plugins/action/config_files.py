# -*- coding: utf-8 -*-
"""Reads files and renders templates on the runner for the module config_files."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import base64
import hashlib
import os

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.module_utils.common.text.converters import to_bytes, to_text
from ansible.plugins.action import ActionBase
from ansible.utils.unsafe_proxy import wrap_var

try:  # Since 2.19 only text that is trusted is a template.
    from ansible.template import trust_as_template
except ImportError:
    trust_as_template = None

# What an entry of templates and texts says of its file; the module has the same options.
OF_A_FILE = ("mode", "validate", "secret")


def entries_of(value):
    """Returns the entries of a template, of which one is often enough."""
    return [value] if isinstance(value, dict) else value


class ActionModule(ActionBase):
    """The module gets the content of all files at once, by their paths on the host."""

    TRANSFERS_FILES = False
    _requires_connection = True

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        arguments = dict(self._task.args)
        self.directory = arguments.get("directory") or ""
        self.files, self.contents = [], {}
        try:
            for name, sources in sorted((arguments.pop("copies", None) or {}).items()):
                self.add("%s/%s" % (self.directory, name), self.joined(sources), {"secret": True})
            for source, value in (arguments.pop("templates", None) or {}).items():
                for entry in entries_of(value):
                    template = self.source(source, "templates")
                    self.add(entry["name"], self.rendered(source, template, entry, task_vars), entry, template)
            for entry in arguments.pop("texts", None) or []:
                self.add(entry["name"], to_bytes(entry["text"]), entry)
        except (AnsibleError, EnvironmentError) as error:
            raise AnsibleActionFail(to_text(error))
        arguments.update(files=self.files, contents=self.contents)
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        return result

    def add(self, name, content, entry, template=None):
        """Adds a file of the host. The module gets the digest of its template, to check that it was rendered."""
        path = os.path.normpath(os.path.join(self.directory, name))
        self.files.append(dict([("path", path)] + [(key, entry[key]) for key in OF_A_FILE if entry.get(key) is not None]))
        if template is not None:
            self.files[-1]["template"] = hashlib.sha256(template).hexdigest()
        self.contents[path] = to_text(base64.b64encode(content))

    def joined(self, sources):
        """Returns the content of a file on the runner, or of several, each of which begins a line."""
        if isinstance(sources, str):
            return self.source(sources, "files")
        contents = [self.source(name, "files") for name in sources]
        return b"".join(content if content.endswith(b"\n") else content + b"\n" for content in contents)

    def source(self, name, kind):
        """Returns the content of a file on the runner."""
        # As copy does it: files in vaults are decrypted.
        path = self._loader.get_real_file(self._find_needle(kind, name))
        try:
            with open(path, "rb") as stream:
                return stream.read()
        finally:
            self._loader.cleanup_tmp_file(path)

    def rendered(self, name, template, entry, task_vars):
        """Returns what a template on the runner becomes."""
        # What the task gave is a value already, and no template.
        variables = dict(task_vars, **wrap_var(entry.get("vars") or {}))
        searchpath = [os.path.dirname(self._find_needle("templates", name))]
        text = to_text(template)
        if trust_as_template is None:
            templar = self._templar.copy_with_new_env(searchpath=searchpath, trim_blocks=True, available_variables=variables)
            return to_bytes(templar.do_template(text, preserve_trailing_newlines=True, escape_backslashes=False))
        templar = self._templar.copy_with_new_env(searchpath=searchpath, available_variables=variables)
        result = templar.template(trust_as_template(text), escape_backslashes=False, overrides={"trim_blocks": True})
        return to_bytes("" if result is None else result, nonstring="simplerepr")
