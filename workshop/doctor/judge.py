"""What is wrong between the nodes of a job, from what each of them sees."""

from __future__ import annotations

from workshop.doctor.nodes import INTERFACES, Report, is_loopback


def judge(reports: list[Report], nnodes: int) -> list[str]:
    """One line for each thing that is wrong, with its cure."""
    reports = sorted(reports, key=lambda report: report.host)
    findings = [*_told(reports), *_place(reports, nnodes)]
    findings += [*_names(reports), *_interfaces(reports), *_same(reports)]
    if len(reports) < nnodes:
        seen = ", ".join(report.host for report in reports) or "none"
        findings.insert(
            0,
            f"only {len(reports)} of {nnodes} nodes answered ({seen}): is every node "
            "up, and do all share this folder?",
        )
    return findings


def by_value(values: dict[str, str]) -> str:
    """``1 on n1, n3; 2 on n2``"""
    groups: dict[str, list[str]] = {}
    for host, value in values.items():
        groups.setdefault(value, []).append(host)
    return "; ".join(
        f"{value or 'nothing'} on {', '.join(hosts)}" for value, hosts in groups.items()
    )


def _told(reports: list[Report]) -> list[str]:
    """Were all nodes told the same?"""
    findings = []
    for what, get, cure in (
        (
            "endpoint",
            lambda place: place.endpoint,
            "one host for all, found once, before the nodes are started",
        ),
        ("rendezvous id", lambda place: place.rdzv_id, "one for all: the job's number"),
        ("number of nodes", lambda place: str(place.nnodes or ""), "one for all"),
    ):
        values = {report.host: get(report.place) for report in reports}
        if len(set(values.values())) > 1:
            findings.append(f"the {what} differs, {by_value(values)}: give {cure}")
    return findings


def _place(reports: list[Report], nnodes: int) -> list[str]:
    """Is the endpoint on one node, and can all others reach its port?"""
    findings, unknown, loop = [], [], []
    for report in reports:
        there = report.addresses.get(report.place.host, [])
        if not there:
            unknown.append(report)
        elif nnodes > 1 and all(map(is_loopback, there)):
            loop.append(report)
    for report in unknown:
        findings.append(
            f"{report.host} can't resolve the endpoint's host {report.place.host!r}: "
            "give the first node's address instead of its name"
        )
    if loop:
        names = by_value({report.host: report.place.host for report in loop})
        findings.append(
            f"the endpoint is the node itself ({names}), so each node waits alone: use "
            "a name of the first node that the others can resolve"
        )
    usable = [report for report in reports if report not in unknown + loop]
    if usable and not any(report.owns for report in usable):
        findings.append(
            f"no node of this job has the address of {usable[0].place.host}: name one "
            "of its nodes, the agent there opens the port"
        )
        return findings
    taken = [report for report in usable if report.port == "taken"]
    # what the others then see at the port is no finding of its own
    return findings + [line for report in taken or usable for line in _port(report)]


def _port(report: Report) -> list[str]:
    where = f"{report.place.host}:{report.place.port}"
    said = {
        "taken": f"port {report.place.port} is taken on {report.host}: choose another, "
        "derived from the job's number",
        "other": f"another program answers {report.host} at {where}: choose another "
        "port, derived from the job's number",
        "refused": f"{report.host} is refused at {where}: the port is closed by a "
        "firewall, or taken on that address",
        "silent": f"{report.host} gets no answer from {where}: a firewall is between, "
        "or the address belongs to a network that this node cannot use; try another "
        "port, or the first node's name on another interface",
        "unreachable": f"{report.host} has no route to {where}: use an address in a "
        "network that all nodes share",
    }
    return [said[report.port]] if report.port in said else []


def _names(reports: list[Report]) -> list[str]:
    """Do the nodes know each other's names, and do not take themselves for 127.0.*?"""
    findings = []
    for report in reports:
        for name, addresses in report.addresses.items():
            if not addresses and name != report.place.host:
                findings.append(
                    f"{report.host} can't resolve the host {name}: torchrun gives "
                    "ranks the name of the first node; add it to DNS or /etc/hosts, or "
                    "start torchrun with --local-addr=ADDRESS"
                )
        chosen = report.settings.get("GLOO_SOCKET_IFNAME")
        own = report.addresses.get(report.host, [])
        if own and all(map(is_loopback, own)) and not chosen and len(reports) > 1:
            findings.append(
                f"{report.host} resolves its own name to {own[0]}, which no other node "
                "can reach, and gloo listens there: set GLOO_SOCKET_IFNAME"
            )
    return findings


def _interfaces(reports: list[Report]) -> list[str]:
    """Does the chosen interface exist, and does it lead to the others?"""
    findings = []
    for report in reports:
        for variable in INTERFACES:
            wrong = _wrong_interface(report, variable, alone=len(reports) == 1)
            if wrong:
                findings.append(wrong)
    return findings


def _wrong_interface(report: Report, variable: str, alone: bool) -> str:
    """What is wrong with the interfaces that ``variable`` names on a node, or ""."""
    chosen = report.settings.get(variable, "")
    # NCCL takes prefixes, =names and ^names; only what is surely wrong is said
    names = tuple(name for name in chosen.lstrip("=").split(",") if name)
    if not names or chosen.startswith("^"):
        return ""
    prefix = variable.startswith("NCCL") and not chosen.startswith("=")
    found = [
        address
        for there, address in report.interfaces.items()
        if there in names or (prefix and there.startswith(names))
    ]
    have = ", ".join(n for n, address in report.interfaces.items() if address != "")
    if not found:
        return f"{report.host} has no interface {chosen} ({variable}): it has {have}"
    if not any(found):
        return (
            f"the interface {chosen} of {report.host} ({variable}) has no "
            f"address: choose another; it has {have}"
        )
    if not alone and all(address and is_loopback(address) for address in found):
        return (
            f"{variable}={chosen} on {report.host} leads to the node itself: "
            f"choose one that leads to the others; it has {have}"
        )
    return ""


def _same(reports: list[Report]) -> list[str]:
    """Programs and settings that should not differ between the nodes."""
    findings = []
    for what in dict.fromkeys(name for report in reports for name in report.versions):
        values = {report.host: report.versions.get(what, "") for report in reports}
        if len(set(values.values())) > 1 or "missing" in values.values():
            findings.append(
                f"{what}: {by_value(values)}: activate the same environment on every "
                "node"
            )
    for what in dict.fromkeys(name for report in reports for name in report.settings):
        values = {report.host: report.settings.get(what, "") for report in reports}
        if len(set(values.values())) > 1 and what not in INTERFACES:
            findings.append(f"{what} differs, {by_value(values)}: set it on all nodes")
    return findings
