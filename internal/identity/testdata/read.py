"""Reports which of some options oslo.config finds in texts: a JSON object on each line, for one on each line of the input."""

import json
import os
import sys
import tempfile

from oslo_config import cfg

for line in sys.stdin:
    request, conf = json.loads(line), cfg.ConfigOpts()
    for section, key, also in request["options"]:
        old = [cfg.DeprecatedOpt(name, group=group) for group, name in also]
        conf.register_opt(cfg.StrOpt(key, deprecated_opts=old), group=None if section == "DEFAULT" else section)
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "a.conf"), "w", encoding="utf-8", newline="") as file:
            file.write(request["text"])
        conf(["--config-dir", directory], default_config_files=[], default_config_dirs=[])
        values = [(conf if section == "DEFAULT" else conf[section])[key] for section, key, _ in request["options"]]
    print(json.dumps([value is not None for value in values]))
