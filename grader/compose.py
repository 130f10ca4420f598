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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from grader import expect
from grader.jobs.job import OpenTodo

HOST = "the host"  # the network of the machine itself
OPEN = re.compile(r"^\s*x-todo-\d+:\s*(TODO \d+ of \d+) is still open", re.MULTILINE)
VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
SHELL = re.compile(r"(/bin/)?(ba)?sh -l?c")
DYNAMIC, STATIC = "c10d", "static"
FLAGS = ("standalone", "m", "no-python")  # options without a value


@dataclass(frozen=True)
class Node:
    """A service that starts torchrun, and where it is in the network."""

    name: str
    hostname: str | None  # None: Docker makes one up
    networks: frozenset[str]
    names: frozenset[str]  # under which others on its networks find it
    host_network: bool
    host_pids: bool
    starts_after: dict[str, str]  # another service -> the condition
    has_healthcheck: bool
    ports: tuple[tuple[str, str], ...]
    options: dict[str, str] = field(repr=False)
    script: tuple[str, ...] = ()

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
            return (host, port) if host else (port, "29400")
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
        if name == "localhost" or name.startswith("127.") or name in ("::1", "[::1]"):
            return HOST if seeker.host_network else seeker
        if name == seeker.hostname:
            return HOST if seeker.host_network else seeker
        return next(iter(self.called(name, seeker)), None)

    def called(self, name: str, seeker: Node) -> list[Node]:
        """All that answer to ``name`` on a network of ``seeker``: Docker takes any."""
        return [
            node
            for node in self.nodes
            if name in node.names and node.networks & seeker.networks
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
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or str(error)
        raise _refused(f"this is not YAML{place}: {reason}") from None
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
    return Compose(nodes)


def _refused(sentence: str) -> expect.Mismatch:
    return expect.Mismatch("", sentence)


def _node(name: str, service: Any, declared: dict) -> Node:
    if not isinstance(service, dict):
        raise _refused(f"service {name} must be a mapping: image, command, ...")
    mode = str(service.get("network_mode", ""))
    if mode and "networks" in service:
        raise _refused(
            f"service {name} has both network_mode and networks: Docker Compose "
            "takes only one of them"
        )
    given = service.get("networks", {} if mode else {"default": None})
    if isinstance(given, list):
        given = dict.fromkeys(map(str, given))
    if not isinstance(given, dict):
        raise _refused(f"the networks of service {name} must be a list of names")
    if unknown := [n for n in given if n != "default" and n not in declared]:
        raise _refused(
            f"service {name} is on the network {unknown[0]}, which the file does not "
            "declare under networks"
        )
    aliases = [a for about in given.values() for a in (about or {}).get("aliases", [])]
    more = [str(service[k]) for k in ("container_name", "hostname") if k in service]
    words = [_words(name, service.get(key)) for key in ("entrypoint", "command")]
    options, script = _torchrun(name, [*words[0], *words[1]])
    return Node(
        name=name,
        hostname=str(service["hostname"]) if "hostname" in service else None,
        networks=frozenset(given),
        names=frozenset([name, *map(str, aliases), *more]),
        host_network=mode == "host",
        host_pids=service.get("pid") == "host",
        starts_after=_conditions(service.get("depends_on") or {}),
        has_healthcheck="healthcheck" in service,
        ports=tuple(filter(None, map(_published, service.get("ports") or []))),
        options=_from_environment(service.get("environment") or {}) | options,
        script=script,
    )


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


def _from_environment(variables: Any) -> dict[str, str]:
    """The options that torchrun takes from PET_NNODES and the like."""
    if isinstance(variables, list):
        parts = (str(text).partition("=") for text in variables)
        variables = {name: value for name, _, value in parts}
    return {
        name[len("PET_") :].lower().replace("_", "-"): str(value)
        for name, value in variables.items()
        if str(name).startswith("PET_")
    }


def _words(name: str, command: Any) -> list[str]:
    """The words of a ``command`` or an ``entrypoint``."""
    if isinstance(command, str):
        try:
            command = shlex.split(VARIABLE.sub(lambda m: m[2] or "", command))
        except ValueError as error:
            raise _refused(f"the command of {name}: {error}") from None
    return [str(word) for word in command or []]


def _torchrun(name: str, words: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The options of torchrun by their names, and the script with its arguments."""
    if SHELL.fullmatch(" ".join(words[:2])) and len(words) == 3:
        words = shlex.split(words[2].removeprefix("exec "))
    if words[:3] == ["python", "-m", "torch.distributed.run"]:
        words = ["torchrun", *words[3:]]
    if not words or words[0] != "torchrun":
        said = shlex.join(words[:4]) or "nothing"
        raise _refused(f"service {name} must start torchrun, but its command is {said}")
    options: dict[str, str] = {}
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).lstrip("-").partition("=")
        option = option.replace("_", "-")
        if not equals and option not in FLAGS:
            value = rest.pop(0) if rest else ""
        options[option] = value
    return options, tuple(rest)
