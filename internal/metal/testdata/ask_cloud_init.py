"""Asks the real cloud-init what it makes of user data and network data.

Reads a JSON object with user_data, network_data and macs (of the NICs, by address)
from standard input and writes what comes of them: the merged configuration, scripts,
problems with its schema, and /etc/network/interfaces.
"""
import json
import os
import sys
import tempfile

from cloudinit import handlers, helpers, user_data, util
from cloudinit.config import schema
from cloudinit.handlers import cloud_config
from cloudinit.net import eni, network_state
from cloudinit.sources.helpers import openstack


def merged(text):
    """The cloud-config that cloud-init merges, and the scripts beside it."""
    processor = user_data.UserDataProcessor(helpers.Paths({"cloud_dir": tempfile.mkdtemp()}))
    message = processor.process(text)
    out = tempfile.mktemp()

    class Paths(helpers.Paths):
        def get_ipath(self, name):
            return out

    handler = cloud_config.CloudConfigPartHandler(Paths({"cloud_dir": tempfile.mkdtemp()}))
    scripts = []
    handler.handle_part(None, handlers.CONTENT_START, None, None, None, None)
    for part in message.walk():
        if part.get_content_maintype() == "multipart":
            continue
        body = util.decode_binary(part.get_payload(decode=True))
        if part.get_content_type() == "text/x-shellscript":
            scripts.append(body)
        else:
            handler.handle_part(None, part.get_content_type(), part.get_filename(), body, None, part)
    handler.handle_part(None, handlers.CONTENT_END, None, None, None, None)
    config = util.load_yaml(util.load_file(out)) if os.path.exists(out) else {}
    return config, scripts


def rendered(text, macs):
    """The files that cloud-init writes for the network."""
    config = openstack.convert_net_json(json.loads(text), known_macs=macs)
    state = network_state.parse_net_config_data(config)
    target = tempfile.mkdtemp()
    eni.Renderer({"eni_path": "interfaces"}).render_network_state(state, target=target)
    return {"config": config, "interfaces": util.load_file(os.path.join(target, "interfaces"))}


def main():
    asked = json.load(sys.stdin)
    answer = {}
    if asked.get("user_data"):
        config, answer["scripts"] = merged(asked["user_data"])
        config.pop("merge_how", None)
        answer["config"] = config
        try:
            schema.validate_cloudconfig_schema(config, strict=True)
        except schema.SchemaValidationError as err:
            answer["problems"] = str(err)
    if asked.get("network_data"):
        answer["network"] = rendered(asked["network_data"], asked["macs"])
    json.dump(answer, sys.stdout)


main()
