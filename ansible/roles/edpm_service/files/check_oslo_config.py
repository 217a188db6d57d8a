"""Checks files of oslo.config with what the image that this runs in knows of options.

Values are read as the daemon reads them. One of the wrong type, or that is not allowed, is an error: one line on standard error for
each, and exit code 78 (EX_CONFIG), as the same files are refused each time. Exit code 1 is for what may be otherwise the next time.
So are options that say which service the daemon is: they must have a value, or be set in a file. Directories of the configuration that
the daemon has now must stay as long as it keeps something there. oslo-config-validator looks for options that do not exist or have another name now. Daemons ignore them, so these
are warnings on standard output. Neither has a value of a secret option.
"""

from __future__ import print_function

import argparse
import fnmatch
import glob
import importlib
import logging
import os
import sys

try:
    from importlib import metadata
except ImportError:  # before Python 3.8
    import importlib_metadata as metadata

try:
    from oslo_config import cfg, iniparser, validator
except ImportError as missing:
    sys.exit("%s cannot check anything: %s. Set edpm_nova_check_python, or edpm_ovn_metadata_check_python, to the "
             "interpreter of the service." % (sys.executable, missing))


# What the same files lead to each time. os.EX_CONFIG is not everywhere.
EX_CONFIG = 78


class Places(iniparser.BaseParser):
    """Where options are set last, by group and name. The section of a place is the group as it is written there."""

    def __init__(self, sources, hidden):
        iniparser.BaseParser.__init__(self)
        self.sources, self.hidden, self.last, self.sections, self.path, self.secret = sources, hidden, {}, {}, "", set()

    def read(self, path):
        """Reads a file. An error does not show the line, which may have a secret."""
        self.path, self.section, self.lineno = path, "DEFAULT", 0
        with open(path) as lines:
            try:
                self.parse(lines)
            except iniparser.ParseError as error:
                self.first = error.lineno
                raise cfg.Error("%s: %s" % (self.title((path, error.lineno)), error.msg))

    def new_section(self, section):
        self.section = section

    def _split_key_value(self, line):
        self.first = self.lineno  # of a value that may have more lines
        return iniparser.BaseParser._split_key_value(self, line)

    def assignment(self, key, value):
        name = (group_of(self.section), key)
        self.last[name], self.sections[name] = (self.path, self.first), self.section
        # A value with a substitution has that of another option, which may be secret.
        if "$" in "".join(value) or any(fnmatch.fnmatch(os.path.basename(self.path), pattern) for pattern in self.hidden):
            self.secret.add(name)

    def title(self, place):
        name = os.path.basename(place[0])
        return "%s line %d" % (self.sources.get(name, name), place[1])

    def line(self, option, what):
        """Returns the message about an option."""
        place = self.title(self.last[option]) + ": " if option in self.last else ""
        return "%s%s in [%s] %s" % (place, option[1], self.sections.get(option, option[0]), what)


class Options(object):
    """Options, each with the section that the image has for it, by group and all the names that they may have."""

    def __init__(self, namespaces):
        self.known, self.sections = {}, set()
        for group, options in [each for name in sorted(namespaces) for each in namespaces[name].load()()]:
            section = getattr(group, "name", group) or "DEFAULT"
            self.sections.add(group_of(section))
            for option in options:
                names = [(section, option.name), (section, option.dest)] + [(old.group or section, old.name or option.dest) for old in option.deprecated_opts]
                names = [(group_of(written), name) for written, name in names]
                self.known.update((name, (section, option)) for name in names if name not in self.known)

    def is_current(self, name):
        """Returns whether an option has this name now, and not only had it before."""
        section, option = self.known[name]
        return name in ((group_of(section), option.name), (group_of(section), option.dest))

    def problem(self, conf, name, secret):
        """Returns what is wrong with the value that the daemon reads, and nothing if all is well. A value that is set under a secret name is not in it."""
        if name not in self.known:
            return ""
        section, option = self.known[name]
        hidden = any(self.known.get(each) == (section, option) for each in secret)
        try:
            # Libraries register theirs when they use them.
            conf.register_opt(option, group=None if section == "DEFAULT" else section)
        except cfg.DuplicateOptError:
            pass  # The daemon has registered it otherwise, which counts.
        try:
            (conf if section == "DEFAULT" else conf[section])[option.dest]
        except Exception as error:  # Types of options may raise anything.
            detail = str(error)
            return "is not valid" + ("" if option.secret or hidden else ": " + (detail.partition(" is not valid: ")[2] or detail))
        return ""


def options_of(patterns, sections):
    """Returns the namespaces of the image that match, and their options: those of all if there are sections that none of these has."""
    found = metadata.entry_points()
    found = found.select(group="oslo.config.opts") if hasattr(found, "select") else found.get("oslo.config.opts", ())
    every = dict((point.name, point) for point in found)
    chosen = dict((name, every[name]) for name in every if any(fnmatch.fnmatch(name, pattern) for pattern in patterns))
    options = Options(chosen)
    return (chosen, options) if sections <= options.sections else (every, Options(every))


class Complaints(logging.Handler):
    """What oslo-config-validator says of the names of options. It takes a section of another case for one that does not exist."""

    WHAT = {logging.WARNING: "is deprecated", logging.ERROR: "is unknown to the image, which ignores it"}

    def emit(self, record):
        # Other modules have something to say of namespaces.
        if record.module == "validator" and len(record.args) == 2:
            self.found.append((record.args, self.WHAT[record.levelno]))

    def of(self, path, namespaces, options):
        """Returns the group and name of each option in a file that has a warning, and the warning."""
        self.found = []
        sys.argv = ["oslo-config-validator", "--input-file", path] + [word for name in sorted(namespaces) for word in ("--namespace", name)]
        validator.main()
        said = []
        for (section, key), what in self.found:
            name = (group_of(section), key)
            if what == self.WHAT[logging.ERROR]:
                what = self.of_unknown(name, options)
            if what and (name, what) not in said:
                said.append((name, what))
        return said

    def of_unknown(self, name, options):
        """Returns the warning for an option that the validator does not find in the section as it is written, empty for none."""
        if name in options.known:
            return "" if options.is_current(name) else self.WHAT[logging.WARNING]
        return "" if name[0] in getattr(validator, "KNOWN_BAD_GROUPS", ()) else self.WHAT[logging.ERROR]


class Identity(object):
    """Options that say which service the daemon is, and the directories in which it keeps what is its own."""

    def __init__(self, values, files, keep, previous, root):
        self.values, self.files, self.keep, self.previous, self.root = values, files, keep, previous, root
        self.kept = {}

    def remember(self, conf):
        """Notes the directories of the configuration that the daemon has now, and how much it keeps there."""
        if not self.previous or not os.path.isdir(beneath(self.root, self.previous)):
            return
        try:
            load(conf, beneath(self.root, self.previous))
            for option, what, pattern in self.keep:
                path = value_of(conf, option_of(option))
                self.kept[option_of(option)] = (path, what, len(glob.glob(os.path.join(beneath(self.root, path), pattern))))
        except (cfg.Error, EnvironmentError, UnicodeError):
            pass  # The daemon cannot read it either.

    def problems(self, conf, places):
        """Returns the options that make another service of the daemon, each with what is wrong with it."""
        problems = [(option_of(option), "must stay %s" % value) for option, value in self.values if value_of(conf, option_of(option)) != value]
        for option, pattern in self.files:
            problems += [(each, "must be that of %s" % pattern) for each, place in sorted(places.last.items())
                         if each == option_of(option) and not fnmatch.fnmatch(os.path.basename(place[0]), pattern)]
        return problems

    def left(self, conf):
        """Returns the options that leave a directory in which the daemon keeps something."""
        return [(option, "would leave %s, which has %s (%d)" % self.kept[option]) for option in sorted(self.kept)
                if self.kept[option][2] and os.path.normpath(value_of(conf, option)) != os.path.normpath(self.kept[option][0])]


def option_of(text):
    """Returns section and name of an option, which is given as section/name."""
    return tuple(text.split("/", 1))


def group_of(section):
    """Returns the group to which a section sets options: oslo.config ignores its case, but for DEFAULT (cfg.py, _normalize_group_name)."""
    return section if section == "DEFAULT" else section.lower()


def value_of(conf, option):
    return (conf if option[0] == "DEFAULT" else conf[option[0]])[option[1]]


def beneath(root, path, most=40):
    """Returns where a path is that is below a root, with symbolic links as they are for who has the root as /. It follows no more than Linux does."""
    done, rest = "", path.split("/")
    while rest:
        name = rest.pop(0)
        if name == "..":
            done = os.path.dirname(done)
        elif name not in ("", ".") and os.path.islink(root + done + "/" + name) and most:
            target, most = os.readlink(root + done + "/" + name), most - 1
            done, rest = "" if target.startswith("/") else done, target.split("/") + rest
        elif name not in ("", "."):
            done += "/" + name
    return root + done


def load(conf, directory):
    """Has the daemon's options read from a directory."""
    conf(["--config-file", os.devnull, "--config-dir", directory], default_config_files=[], default_config_dirs=[])


def check(directory, conf, patterns, places, identity):
    """Returns the warnings, the errors, and what is an error while the daemon keeps something."""
    paths = sorted(glob.glob(os.path.join(directory, "*.conf")))
    for path in paths:
        places.read(path)
    identity.remember(conf)
    load(conf, directory)
    complaints = Complaints(logging.WARNING)
    logging.getLogger().handlers = [complaints]
    namespaces, options = options_of(patterns, set(section for section, _ in places.last))
    warnings = [places.line(option, what) for path in paths for option, what in complaints.of(path, namespaces, options) if places.last[option][0] == path]
    problems = identity.problems(conf, places)
    problems += [(option, options.problem(conf, option, places.secret)) for option in sorted(places.last, key=places.last.get)]
    return warnings, [places.line(option, problem) for option, problem in problems if problem], [places.line(*each) for each in identity.left(conf)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--parser", required=True, help="ConfigOpts of the daemon, as module:attribute")
    parser.add_argument("--namespace", action="append", default=[], help="pattern of namespaces of options that the daemon reads")
    parser.add_argument("--source", action="append", default=[], help="what people call a file, as name=source")
    parser.add_argument("--hidden", action="append", default=[], help="pattern of the names of files whose values are secret, whatever they are for")
    parser.add_argument("--value", action="append", nargs=2, default=[], help="option, as section/name, and the value that it must have")
    parser.add_argument("--set-in", action="append", nargs=2, default=[], help="option, and the pattern of the names of files that may set it")
    parser.add_argument("--keep", action="append", nargs=3, default=[], help="option with a directory, what the daemon keeps there, and the pattern of its names")
    parser.add_argument("--previous", help="directory of the configuration that the daemon has now")
    parser.add_argument("--root", default="", help="where that directory and those that it names are")
    arguments = parser.parse_args()
    identity = Identity(arguments.value, arguments.set_in, arguments.keep, arguments.previous, arguments.root)
    module, _, attribute = arguments.parser.partition(":")
    try:
        warnings, errors, left = check(arguments.directory, getattr(importlib.import_module(module), attribute), arguments.namespace,
                                       Places(dict(each.split("=", 1) for each in arguments.source), arguments.hidden), identity)
    except cfg.Error as error:
        warnings, errors, left = [], [str(error)], []
    print("".join(line + "\n" for line in warnings), end="")
    print("".join(line + "\n" for line in errors + left), end="", file=sys.stderr)
    return EX_CONFIG if errors else 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
