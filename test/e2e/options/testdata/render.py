"""Renders templates as Ansible does: reads {name: [template, {variable: value}]} as JSON, and writes {name: text}."""

import json
import sys

import jinja2


def boolean(value):
    """ansible.builtin.bool"""
    return value if isinstance(value, bool) else str(value).lower() in ("yes", "on", "1", "true")


environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
environment.filters["bool"] = boolean
rendered = {name: environment.from_string(template).render(values) for name, (template, values) in json.load(sys.stdin).items()}
json.dump(rendered, sys.stdout)
