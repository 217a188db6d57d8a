# -*- coding: utf-8 -*-
"""Limits what one host can make of a run of many."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
    name: limits
    type: aggregate
    short_description: keeps what a host answers within limits
    description:
      - Modules run on hosts that may be compromised. What they print is read by a worker, and its result by the
        process that all hosts of the run share.
      - A worker that needs more than I(memory) MiB beyond what it starts with fails, and so does its host. The others
        continue.
      - A task fails if the host printed more than I(output) MiB.
      - Keys of a result by which actions on the runner tell Ansible what to do, and which no module has, are left out.
    options:
      memory:
        description: MiB that a worker may use.
        default: 256
        env:
          - name: EDPM_WORKER_MEMORY_MIB
        type: int
      output:
        description: MiB that a task may print on a host.
        default: 16
        env:
          - name: EDPM_TASK_OUTPUT_MIB
        type: int
    requirements:
      - enable in configuration (C(callbacks_enabled))
"""

import functools
import os
import resource

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

MIB = 1 << 20
RESERVE = 64 * MIB
# Read as flags of the items of a loop.
FLAGS = ("changed", "failed", "skipped", "unreachable")


def data_size():
    """Returns how many bytes of private memory this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def limit_memory(size):
    """Lets this process and its children have size more bytes of memory, and RESERVE more after allow_reserve."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = data_size() + size
    if hard == resource.RLIM_INFINITY or hard >= limit + RESERVE:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit + RESERVE))


def allow_reserve():
    """Makes room for what a worker needs to report that its memory was not enough."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def read_output(run, size):
    """Returns what run returns, a command's result; fails if the host printed more than size bytes."""
    try:
        result = run()
    except MemoryError:
        # Not failed from here: the traceback holds all that the host printed.
        result = None
    if result is None:
        allow_reserve()
        raise AnsibleActionFail("the host printed more than the memory of a worker can hold")
    printed = sum(len(result.get(name) or "") for name in ("stdout", "stderr"))
    if printed > size:
        raise AnsibleActionFail("the host printed %d MiB, and a task may print %d MiB at most" % (printed // MIB, size // MIB))
    return result


def is_item(value):
    return isinstance(value, str) or isinstance(value, dict) and "failed_when_result" not in value \
        and all(isinstance(value.get(flag, False), bool) for flag in FLAGS)


def harmless(data):
    """Returns the answer of a module without what would be an order to the runner, or end the run for all hosts."""
    data.pop("ansible_stats", None)
    results = data.get("results")
    if isinstance(results, list) and not all(is_item(item) for item in results):
        data["ansible_module_results"] = data.pop("results")
    return data


def around(method, check):
    """Returns a method that is called by check."""
    @functools.wraps(method)
    def checked(*args, **kwargs):
        return check(functools.partial(method, *args, **kwargs))
    return checked


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "edpm.operators.limits"
    CALLBACK_NEEDS_ENABLED = True

    def set_options(self, task_keys=None, var_options=None, direct=None):
        super(CallbackModule, self).set_options(task_keys=task_keys, var_options=var_options, direct=direct)
        memory, output = self.get_option("memory") * MIB, self.get_option("output") * MIB
        os.register_at_fork(after_in_child=lambda: limit_memory(memory))
        # There is no setting for this. All that hosts answer comes through these two, which
        # have had the same result in every release of ansible-core so far.
        ActionBase._low_level_execute_command = around(ActionBase._low_level_execute_command, lambda run: read_output(run, output))
        ActionBase._execute_module = around(ActionBase._execute_module, lambda run: harmless(run()))
