"""Compares configurations with the options that nova has in the image in which this runs.

    compare.py [--show DIRECTORY SECTION OPTION]... DIRECTORY...    of *.conf, one for each process

Prints one line for each problem, and how many options it has looked at: an unknown option, one that has another name now or is to be
removed, and a value of another type. Prints the values that nova has for options in a directory, whether they are in it or not.
"""

import argparse
import glob
import os
import sys

import check_oslo_config
from keystoneauth1 import loading
from nova.conf import CONF
from oslo_config import cfg

# keystonemiddleware registers those of its plugin when it is used.
PLUGIN = ("keystone_authtoken", loading.get_auth_plugin_conf_options("password"))


class Known(object):
    """The options of all libraries of the image, by section and name as they are now."""

    def __init__(self):
        self.now, self.before = {}, {}
        _, everything = check_oslo_config.options_of(["*"], set())
        for (section, name), (_, option) in everything.known.items():
            (self.now if everything.is_current((section, name)) else self.before)[section, name] = option
        self.now.update(((PLUGIN[0], option.dest), option) for option in PLUGIN[1])

    def problem(self, name):
        option = self.now.get(name)
        if option is None:
            return "is deprecated" if name in self.before else "is unknown"
        if option.deprecated_for_removal:
            return "is deprecated and will be removed"
        return value_problem(name[0], option)


def value_of(section, option):
    group = None if section == "DEFAULT" else section
    try:
        CONF.register_opt(option, group=group)
    except cfg.DuplicateOptError:
        pass  # nova's own idea of it counts
    return getattr(CONF[section] if group else CONF, option.dest)


def value_problem(section, option):
    try:
        value_of(section, option)
    except Exception as error:  # types may raise anything
        return "has a value that is not valid: %s" % error
    return ""


def options_in(directory):
    places = check_oslo_config.Places({}, [])
    for path in sorted(glob.glob(os.path.join(directory, "*.conf"))):
        places.read(path)
    return sorted(places.last)


def compare(known, directory, shown):
    CONF(["--config-file", os.devnull, "--config-dir", directory], default_config_files=[], default_config_dirs=[])
    for name in options_in(directory):
        problem = known.problem(name)
        if problem:
            print("%s: [%s] %s %s" % (os.path.basename(directory), name[0], name[1], problem))
    for section, name in shown:
        option = known.now.get((section, name))
        print("%s: [%s] %s = %s" % (os.path.basename(directory), section, name, value_of(section, option) if option else "unknown"))


def main(shown, directories):
    known = Known()
    for directory in directories:
        sys.stdout.flush()
        child = os.fork()  # options that are registered for one are not for the next
        if child == 0:
            compare(known, directory, [option for name, *option in shown if name == os.path.basename(directory)])
            return
        if os.waitpid(child, 0)[1] != 0:
            sys.exit("comparing %s failed" % directory)
    print("%d options" % sum(len(options_in(directory)) for directory in directories))


parser = argparse.ArgumentParser()
parser.add_argument("--show", nargs=3, action="append", default=[])
parser.add_argument("directories", nargs="+")
arguments = parser.parse_args()
main(arguments.show, arguments.directories)
