"""Choose an address and interfaces that all nodes share, from what the nodes report.

Every node has several network interfaces, and reports them with their addresses::

    Report("n1", {"lo": "127.0.0.1/8", "eth0": "10.1.0.11/16", "br0": "172.17.0.1/16"})
    Report("n2", {"lo": "127.0.0.1/8", "ens3": "10.1.0.12/16", "br0": "172.17.0.1/16"})

Not all of them lead to the other nodes. ``lo`` is the node itself. An address that
begins with 169.254 is one that the node gave itself while it waits for a network. An
interface with ``0.0.0.0/0`` has no address yet. And every node has the same
``172.17.0.1``: that's a network for containers *inside* the node.

A meeting point is an address of the first node, in a network in which every node has an
address of its own. GLOO_SOCKET_IFNAME must name the interface of that network, and its
name may differ from node to node.

Check your answer with: workshop check 08_meeting_point

The page is docs/lessons/08_many_nodes/3_connect.rst
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

Network = ipaddress.IPv4Network


@dataclass(frozen=True)
class Report:
    """A node, and each interface's address with its prefix length."""

    host: str
    interfaces: dict[str, str]


def usable(text: str) -> bool:
    """Whether this kind of address, such as 10.1.0.11/16, can reach other nodes.

    True for 172.17.0.1/16, too: only comparing the nodes shows that it is a local one.
    """
    # TODO 1 of 3: ipaddress.ip_interface(text).ip says what kind of address it is.
    # [start answer 1]
    address = ipaddress.ip_interface(text).ip
    return not (address.is_loopback or address.is_link_local or address.is_unspecified)
    # [end answer 1]


def find_in(report: Report, network: Network) -> tuple[str, str] | None:
    """(interface, address) of a node in a network; None if the node isn't in it."""
    for name, text in report.interfaces.items():
        if ipaddress.ip_interface(text).network == network:
            return name, str(ipaddress.ip_interface(text).ip)
    return None


def common_networks(reports: list[Report]) -> list[Network]:
    """The usable networks in which every node has an address of its own.

    An address counts only if no other node has it. The networks are in the order of the
    first node's interfaces. Don't change the reports.
    """
    # TODO 2 of 3: try the network of each usable interface of the first node. Which
    # addresses do the nodes have in it?
    # [start answer 2]
    found = []
    for text in filter(usable, reports[0].interfaces.values()):
        network = ipaddress.ip_interface(text).network
        matches = [find_in(report, network) for report in reports]
        addresses = {match[1] for match in matches if match is not None}
        if len(addresses) == len(reports):
            found.append(network)
    return found
    # [end answer 2]


def meeting_point(reports: list[Report]) -> tuple[str, dict[str, str]]:
    """(address of the first node, interface of each host) in a common network.

    Raises:
        ValueError: there is no common network; the message names every host.
    """
    # TODO 3 of 3: take the first common network.
    # [start answer 3]
    networks = common_networks(reports)
    if not networks:
        hosts = ", ".join(report.host for report in reports)
        raise ValueError(f"{hosts} have no network in common")
    matches = {report.host: find_in(report, networks[0]) for report in reports}
    address = matches[reports[0].host][1]
    return address, {host: match[0] for host, match in matches.items()}
    # [end answer 3]
