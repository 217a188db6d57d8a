"""Prints how oslo.messaging uses the message bus of each URL in a process that is configured for queues of the other type.

    queues.py quorum|classic URL...    the type in the configuration of the process

Each line has the options of the queues and of TLS by which RPC, and then notifications, connect.
"""

import sys

import oslo_messaging
from oslo_config import cfg

SHOWN = ("amqp_durable_queues", "rabbit_quorum_queue", "rabbit_transient_quorum_queue", "ssl")


def show(conf, transport):
    options = transport._driver.conf.oslo_messaging_rabbit
    return " ".join("%s=%s" % (name, options[name]) for name in SHOWN)


def main(own, urls):
    conf = cfg.ConfigOpts()
    conf([])
    oslo_messaging.get_rpc_transport(conf, url="rabbit://u:p@own/")
    for name in SHOWN[:3]:
        conf.set_override(name, own == "quorum", group="oslo_messaging_rabbit")
    for url in urls:
        for transport in (oslo_messaging.get_rpc_transport, oslo_messaging.get_notification_transport):
            print(show(conf, transport(conf, url=url)))


main(sys.argv[1], sys.argv[2:])
