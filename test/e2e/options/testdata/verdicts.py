"""Says what nova makes of assignments of options, one line of JSON for each that it reads: {"section", "key", "value"}.

Each is a configuration of its own, which is read as nova reads its files. The answer is the option's verdict: what oslo-config-validator
says of its name ("known", "deprecated", "unknown"), whether the option is to be removed, and the error of reading its value, if any.
"""

import json
import logging
import os
import sys

import check_oslo_config
from nova.conf import CONF
from oslo_config import cfg, generator, validator

PATH = "/tmp/one.conf"
logging.disable(logging.CRITICAL)

CONF([], default_config_files=[], default_config_dirs=[])
chosen, _ = check_oslo_config.options_of(["*"], set())
groups = generator._get_groups(generator._list_opts(sorted(chosen)))
data = generator._generate_machine_readable_data(groups, cfg.ConfigOpts())
current = {}
for group, listed in [each for point in chosen.values() for each in point.load()()]:
    for option in listed:
        current.setdefault((getattr(group, "name", group) or "DEFAULT", option.dest), option)
for (section, _), option in current.items():
    try:
        CONF.register_opt(option, group=None if section == "DEFAULT" else section)
    except (cfg.DuplicateOptError, cfg.ArgsAlreadyParsedError):
        pass  # nova's own idea of it counts
former = {(section, old["name"]): (old["replacement_group"], old["replacement_name"].replace("-", "_"))
          for section, olds in data["deprecated_options"].items() for old in olds}


def load(path):
    """Has a file read in the place of those that were read before, as fast as 10,000 files need it."""
    namespace = cfg._Namespace(CONF)
    cfg.ConfigParser._parse_file(path, namespace)
    CONF._namespace = namespace
    CONF._ConfigOpts__cache.clear()


def name_verdict(section, key):
    if validator._validate_deprecated_opt(section, key, data):
        return "deprecated"
    return "known" if validator._validate_opt(section, key, data) else "unknown"


def answer(case):
    with open(PATH, "w") as out:
        out.write("[%(section)s]\n%(key)s = %(value)s\n" % case)
    section, key = case["section"], case["key"]
    group = section if section == "DEFAULT" else section.lower()
    result = {"name": name_verdict(section, key), "leaving": False, "error": ""}
    try:
        load(PATH)
    except cfg.ConfigFileParseError as error:
        result["error"] = "file: %s" % error
        return result
    name = (group, key) if (group, key) in current else former.get((group, key))
    if name in current:
        result["leaving"] = bool(current[name].deprecated_for_removal)
        try:
            (CONF if name[0] == "DEFAULT" else CONF[name[0]])[name[1]]
        except Exception as error:  # types may raise anything
            result["error"] = str(error) or repr(error)
    return result


print("ready")
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))))
