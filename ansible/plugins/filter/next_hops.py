# -*- coding: utf-8 -*-
"""Filter that finds the next hops of a route."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = """
  name: next_hops
  short_description: find the next hops of the first route that leads somewhere
  description:
    - Takes routes as C(ip -json route show) prints them. A route with several next hops (ECMP) has several results.
    - Routes that only reject packets, such as C(unreachable default), are left out.
  options:
    _input:
      description: The routes, the best one first.
      type: list
      elements: dict
      required: true
"""

EXAMPLES = """
- name: Ping every gateway
  ansible.builtin.command: ping -c 1 {{ item.gateway }}
  loop: "{{ routes.stdout | from_json | edpm.operators.next_hops }}"
"""

RETURN = """
  _value:
    description:
      - The next hops, with the interface C(dev), and the address C(gateway), which is empty without a gateway. A link-local IPv6 address
        has its zone, without which it cannot be reached.
    type: list
    elements: dict
"""


def gateway(hop):
    """Returns the address of a gateway as ping takes it. An IPv4 route can have an IPv6 gateway (RFC 8950), which is under via."""
    address = hop.get("gateway") or hop.get("via", {}).get("host", "")
    link_local = ":" in address and address[:3].lower() in ("fe8", "fe9", "fea", "feb")
    return "%s%%%s" % (address, hop["dev"]) if link_local else address


def next_hops(routes):
    """Returns the next hops of the first route that leads somewhere."""
    for route in routes:
        hops = [hop for hop in route.get("nexthops") or [route] if hop.get("dev")]
        if hops and route.get("type", "unicast") == "unicast":
            return [{"dev": hop["dev"], "gateway": gateway(hop)} for hop in hops]
    return []


class FilterModule(object):
    def filters(self):
        return {"next_hops": next_hops}
