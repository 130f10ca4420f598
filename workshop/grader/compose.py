"""What a check of a compose file asks for: who reaches whom, and do the nodes meet?

The file is read as Docker Compose reads it, and the start of ``torchrun`` is followed
through it on paper: what name stands for which container on which network, who listens
at the meeting point, who finds it there. No container is started, so that the answer
comes at once and without Docker. That real containers behave likewise is tried by
``tests/jobs/test_containers.py``::

    compose = read(exercise_path)
    for node in compose.nodes: ...
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workshop.cluster.jobs.job import OpenTodo
from workshop.grader import compose_text
from workshop.grader.compose_text import refused as _refused

HOST = "the host"  # the network of the machine itself
OPEN = re.compile(r"^\s*x-todo-\d+:\s*(TODO \d+ of \d+) is still open", re.MULTILINE)
AS_A_MODULE = re.compile(r"python3?(\.\d+)?( -u)? -m torch\.distributed\.run(?= |$)")
ONE_DASH = re.compile(r"-[a-z]{2}[-_a-z]*(=|$)")
DYNAMIC, STATIC = "c10d", "static"
FLAGS = ("standalone", "m", "no-python")  # options without a value


@dataclass(frozen=True)
class Node:
    """A service that starts torchrun, and where it is in the network."""

    name: str
    hostname: str | None  # None: Docker makes one up
    networks: frozenset[str]
    names: frozenset[str]  # under which others on its networks find it
    home: str  # the service whose network it uses: itself, or HOST
    pids: str  # the same for its process ids
    starts_after: dict[str, str]  # another service -> the condition
    has_healthcheck: bool
    ports: tuple[tuple[str, str], ...]
    options: dict[str, str] = field(repr=False)
    script: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)  # a name -> another service
    addresses: dict[str, str] = field(default_factory=dict)  # a name -> an address
    unset: tuple[str, ...] = ()  # variables that Compose has replaced by nothing

    @property
    def host_network(self) -> bool:
        return self.home == HOST

    def option(self, name: str, default: str = "") -> str:
        return self.options.get(name, default)

    @property
    def backend(self) -> str:
        return self.option("rdzv-backend", STATIC)

    @property
    def meeting_point(self) -> tuple[str, str]:
        """(host, port) as torchrun takes them from its options."""
        if endpoint := self.option("rdzv-endpoint"):
            host, _, port = endpoint.rpartition(":")
            return (host, port) if ":" in endpoint else (port, "29400")
        if self.backend == DYNAMIC:
            return "localhost", "29400"
        return self.option("master-addr", "127.0.0.1"), self.option(
            "master-port", "29500"
        )


@dataclass(frozen=True)
class Compose:
    """A compose file."""

    nodes: list[Node]

    def find(self, name: str, seeker: Node) -> Node | str | None:
        """What ``name`` stands for inside the container of ``seeker``.

        A node, HOST for the machine itself, or None if none has that name.
        """
        name = seeker.addresses.get(name, name)
        own = name == "localhost" or name.startswith("127.") or name == seeker.hostname
        if own or name in ("::1", "[::1]"):
            homes = (node for node in self.nodes if node.name == seeker.home)
            return HOST if seeker.host_network else next(homes, seeker)
        return next(iter(self.called(name, seeker)), None)

    def called(self, name: str, seeker: Node) -> list[Node]:
        """All that answer to ``name`` on a network of ``seeker``: Docker takes any."""
        linked = seeker.links.get(name)
        return [
            node
            for node in self.nodes
            if (name in node.names or node.name == linked)
            and node.networks & seeker.networks
        ]


def read(path: Path) -> Compose:
    """The compose file at ``path``.

    Raises:
        OpenTodo: a hole of the exercise is still there.
        expect.Mismatch: one sentence that says why Docker Compose would refuse it.
    """
    text = path.read_text(encoding="utf-8")
    if hole := OPEN.search(text):
        raise OpenTodo(hole[1], text.count("\n", 0, hole.start(1)) + 1)
    content = compose_text.load(text)
    if not isinstance(content, dict) or not isinstance(content.get("services"), dict):
        raise _refused("the file has no services")
    declared = content.get("networks") or {}
    nodes = []
    for name, service in content["services"].items():
        try:
            nodes.append(_node(name, service, declared))
        except (TypeError, AttributeError) as error:
            raise _refused(
                f"service {name} is not of the right form: {error}"
            ) from None
    return Compose([_at_home(node, nodes) for node in nodes])


def _at_home(node: Node, nodes: list[Node]) -> Node:
    """The node, on the networks of the service whose network it uses."""
    for other in nodes:
        if other.name == node.home != node.name:
            return replace(
                node, networks=other.networks, names=frozenset(), home=other.home
            )
    return node


def _node(name: str, service: Any, declared: dict) -> Node:
    """What a service of the file is, as its containers see it."""
    if not isinstance(service, dict):
        raise _refused(f"service {name} must be a mapping: image, command, ...")
    compose_text.check_keys(name, service)
    compose_text.check_forms(name, service)
    unset, service = compose_text.unset(service), compose_text.interpolated(service)
    _starts_once(name, service)
    _refuse_mode(name, service, declared)
    mode = _mode(service)
    networks = _networks(name, service, declared)
    variables = compose_text.environment(name, service.get("environment") or {})
    options, script = _torchrun(name, _command(name, service, variables))
    links = _links(service)
    hostname = str(service["hostname"]) if "hostname" in service else None
    waits_for_links = {other: "service_started" for other, _ in links}
    return Node(
        name=name,
        hostname=hostname,
        networks=frozenset(networks),
        names=_names(name, service, networks),
        home=_home(name, mode),
        pids=_home(name, str(service.get("pid", ""))),
        starts_after=waits_for_links | _conditions(service.get("depends_on") or {}),
        has_healthcheck="healthcheck" in service,
        ports=tuple(filter(None, map(_published, service.get("ports") or []))),
        options=_from_environment(variables) | options,
        script=script,
        links={known_as: other for other, known_as in links},
        addresses=_addresses(service.get("extra_hosts") or {}),
        unset=tuple(unset),
    )


def _mode(service: dict) -> str:
    return str(service.get("network_mode", ""))


def _refuse_mode(name: str, service: dict, declared: dict) -> None:
    """Refuse a network_mode in which the service meets none, or not the one meant."""
    mode = _mode(service)
    if mode in ("bridge", "default"):
        raise _refused(
            f"service {name} has network_mode: {mode}: on this network of Docker's "
            "own, no container finds another one by name"
        )
    if mode in declared:
        raise _refused(
            f"service {name} has network_mode: {mode}, which Docker takes for a "
            f"network that is not in this file: write networks: [{mode}]"
        )
    if mode and "networks" in service:
        raise _refused(
            f"service {name} has both network_mode and networks: Docker Compose "
            "takes only one of them"
        )


def _networks(name: str, service: dict, declared: dict) -> dict[str, dict | None]:
    """The networks that a service is on: name -> what is said of it there."""
    usual = {} if _mode(service) else {"default": None}
    given = service.get("networks", usual)
    if isinstance(given, list):
        given = dict.fromkeys(map(str, given))
    if not isinstance(given, dict):
        raise _refused(f"the networks of service {name} must be a list of names")
    for network in given:
        if network != "default" and network not in declared:
            raise _refused(
                f"service {name} is on the network {network}, which the file does not "
                "declare under networks"
            )
    return given


def _names(name: str, service: dict, networks: dict) -> frozenset[str]:
    """Under which names others on its networks find a service."""
    names = {name}
    for about in networks.values():
        names.update(map(str, (about or {}).get("aliases", [])))
    for key in ("container_name", "hostname"):
        if key in service:
            names.add(str(service[key]))
    return frozenset(names)


def _command(name: str, service: dict, variables: dict[str, str]) -> list[str]:
    """The words of what a service runs, without a shell around them."""
    words = compose_text.words(name, service.get("entrypoint"))
    words = [*words, *compose_text.words(name, service.get("command"))]
    return compose_text.without_shell(name, words, variables)


def _links(service: dict) -> list[tuple[str, str]]:
    """What ``links`` says: (another service, the name that it has here)."""
    links = [str(link).partition(":") for link in service.get("links") or []]
    return [(other, alias or other) for other, _, alias in links]


def _home(name: str, mode: str) -> str:
    """Whose network, or process ids, a service has."""
    return HOST if mode == "host" else mode.removeprefix("service:") or name


def _starts_once(name: str, service: dict) -> None:
    """Refuse a service that ``docker compose up`` starts never, or several times."""
    if service.get("profiles"):
        raise _refused(
            f"service {name} has profiles, so `docker compose up` does not start it"
        )
    replicas = (service.get("deploy") or {}).get("replicas", service.get("scale", 1))
    if str(replicas) != "1":
        raise _refused(f"service {name} would be {replicas} containers, not one")


def _addresses(hosts: Any) -> dict[str, str]:
    """What ``extra_hosts`` writes into /etc/hosts: a name -> an address."""
    if isinstance(hosts, list):
        pairs = (re.split("[:=]", str(entry), maxsplit=1) for entry in hosts)
        hosts = {pair[0]: pair[-1] for pair in pairs}
    return {str(name): str(address) for name, address in hosts.items()}


def _conditions(depends_on: Any) -> dict[str, str]:
    """What ``depends_on`` waits for: another service -> the condition."""
    if isinstance(depends_on, list):
        depends_on = dict.fromkeys(map(str, depends_on))
    return {
        name: (about or {}).get("condition", "service_started")
        for name, about in depends_on.items()
    }


def _published(port: Any) -> tuple[str, str] | None:
    """The machine's address ("" for all) and its port; None if Docker chooses it."""
    if isinstance(port, dict):
        number, address = str(port.get("published") or ""), str(port.get("host_ip", ""))
        protocol = port.get("protocol")
    else:
        text, _, protocol = str(port).partition("/")
        address, number = ["", "", *text.rsplit(":", 2)][-3:-1]
    address = "" if address in ("0.0.0.0", "[::]", "::") else address
    return (address, f"{number}/{protocol or 'tcp'}") if number else None


def _from_environment(variables: dict[str, str]) -> dict[str, str]:
    """The options that torchrun takes from PET_NNODES and the like."""
    return {
        name[len("PET_") :].lower().replace("_", "-"): value
        for name, value in variables.items()
        if name.startswith("PET_")
    }


def _torchrun(name: str, words: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The options of torchrun by their names, and the script with its arguments."""
    if found := AS_A_MODULE.match(" ".join(words)):
        words = ["torchrun", *words[len(found[0].split()) :]]
    if not words or words[0] != "torchrun":
        said = shlex.join(words[:4]) or "nothing"
        if words and words[0].startswith("torchrun "):
            raise _refused(
                f"the command of {name} is a list with all words in one: Docker looks "
                "for a program of that name. Write each word apart, or a string "
                "without the brackets"
            )
        raise _refused(f"service {name} must start torchrun, but its command is {said}")
    options: dict[str, str] = {}
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        if ONE_DASH.match(rest[0]):
            word = rest[0].partition("=")[0]
            raise _refused(f"torchrun of {name} doesn't know {word}: write -{word}")
        option, equals, value = rest.pop(0).lstrip("-").partition("=")
        option = option.replace("_", "-")
        if not equals and option not in FLAGS:
            value = rest.pop(0) if rest else ""
        options[option] = value
    return options, tuple(rest)
