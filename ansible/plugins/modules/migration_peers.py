#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Module that connects to libvirt on other hosts over TLS."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
module: migration_peers
short_description: connect to libvirt on other hosts over TLS
description:
  - Connects to libvirt on several hosts at once, as libvirt does to move a guest, and notes those that are not reached.
  - A host is reached if its certificate is valid for its address, and it accepts that of this host.
author:
  - The edpm-operators authors
options:
  peers:
    description: Names and addresses of the hosts.
    type: dict
    required: true
  own:
    description: Name of this host. At its own address libvirt has to show I(certificate).
    type: str
    required: true
  port:
    description: Port of libvirt.
    type: int
    default: 16514
  authority:
    description: File with the authorities.
    type: path
    required: true
  certificate:
    description: File with the certificate of this host.
    type: path
    required: true
  key:
    description: File with its key.
    type: path
    required: true
  patience:
    description: Seconds that a host is given to answer.
    type: int
    default: 5
attributes:
  check_mode:
    description: Changes nothing anyway.
    support: full
"""

EXAMPLES = """
- name: Reach for another compute
  edpm.operators.migration_peers:
    peers: {edpm-compute-1: 192.0.2.11}
    own: edpm-compute-0
    authority: /var/lib/libvirt/pki/CA/cacert.pem
    certificate: /var/lib/libvirt/pki/libvirt/clientcert.pem
    key: /var/lib/libvirt/pki/libvirt/private/clientkey.pem
"""

RETURN = """
unreached:
  description: Names of hosts that were not reached, and why.
  type: dict
  returned: always
edpm_note:
  description: The first of them in words, if there are any.
  type: str
  returned: always
"""

import socket
import ssl
from multiprocessing.pool import ThreadPool

from ansible.module_utils.basic import AnsibleModule

# As many are named: a note is short.
NAMED = 3
# Trust is in the authority itself, whoever signed it (X509_V_FLAG_PARTIAL_CHAIN of OpenSSL).
PARTIAL_CHAIN = 0x80000
# What libvirt sends once it has accepted the certificate of the other side.
ACCEPTED = b"\1"


def client(module):
    """Returns how this host connects."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= PARTIAL_CHAIN
    context.load_verify_locations(module.params["authority"])
    context.load_cert_chain(module.params["certificate"], module.params["key"])
    return context


def shown(context, address, port, patience):
    """Returns the certificate that libvirt shows at an address, and whether it accepts ours."""
    with socket.create_connection((address, port), patience) as connection:
        with context.wrap_socket(connection, server_hostname=address) as stream:
            return stream.getpeercert(True), stream.recv(1) == ACCEPTED


def problem(context, address, port, patience, own):
    """Returns why a host is not reached in a few words, and nothing if it is. own is the certificate that it has to show, if any."""
    try:
        certificate, accepted = shown(context, address, port, patience)
    except ssl.SSLCertVerificationError:
        return "its certificate is not valid"
    except ssl.SSLError:
        return "it refuses our certificate"
    except ConnectionRefusedError:
        return "it does not listen"
    except (socket.timeout, OSError):
        return "no answer"
    if not accepted:
        return "it refuses our certificate"
    return "it has not read its certificate" if own and certificate != own else ""


def note(unreached):
    """Returns what a person has to know."""
    if not unreached:
        return ""
    named = ["%s (%s)" % (name, unreached[name]) for name in sorted(unreached)[:NAMED]]
    more = len(unreached) - len(named)
    return "Not reached over TLS: " + ", ".join(named + (["%d more" % more] if more else []))


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        peers=dict(type="dict", required=True),
        own=dict(type="str", required=True),
        port=dict(type="int", default=16514),
        authority=dict(type="path", required=True),
        certificate=dict(type="path", required=True),
        key=dict(type="path", required=True),
        patience=dict(type="int", default=5),
    ))
    try:
        context = client(module)
        with open(module.params["certificate"]) as file:
            own = ssl.PEM_cert_to_DER_cert(file.read())
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="The certificate of the host cannot be read: %s" % error)
    peers = sorted(module.params["peers"].items())
    pool = ThreadPool(max(1, min(len(peers), 32)))
    answers = pool.map(lambda peer: problem(context, peer[1], module.params["port"], module.params["patience"],
                                            own if peer[0] == module.params["own"] else None), peers)
    pool.close()
    unreached = dict((name, why) for (name, address), why in zip(peers, answers) if why)
    module.exit_json(changed=False, unreached=unreached, edpm_note=note(unreached))


if __name__ == "__main__":
    main()
