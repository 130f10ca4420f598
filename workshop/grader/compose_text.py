"""The text of a compose file as Docker Compose takes it: keys, variables, words.

Whatever Compose refuses is one sentence here, as in :mod:`workshop.grader.compose`.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator
from typing import Any

import yaml

from workshop.grader import expect

VARIABLE = re.compile(
    r"\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-?+])([^}]*))?\})"
)
SHELL = re.compile(r"(/bin/)?(ba)?sh (-[a-z]+ )*-[a-z]*c")
BEFORE_TORCHRUN = ("sleep", "echo", "date", "hostname", "set")
BETWEEN = (";", "&&")
# https://github.com/compose-spec/compose-spec/blob/main/schema/compose-spec.json
_KEYS = """
annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command
configs container_name cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period
cpu_rt_runtime cpu_shares cpus cpuset credential_spec depends_on deploy develop
device_cgroup_rules devices dns dns_opt dns_search domainname entrypoint env_file
environment expose extends external_links extra_hosts gpus group_add healthcheck
hostname image init ipc isolation label_file labels links logging mac_address
mem_limit mem_reservation mem_swappiness memswap_limit models network_mode networks
oom_kill_disable oom_score_adj pid pids_limit platform ports post_start pre_stop
privileged profiles provider pull_policy pull_refresh_after read_only restart runtime
scale secrets security_opt shm_size stdin_open stop_grace_period stop_signal
storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts volumes
volumes_from working_dir
"""
OF_A_SERVICE = frozenset(_KEYS.split())

LISTS = ("ports", "links", "expose", "volumes", "profiles")
LISTS_OR_MAPPINGS = ("environment", "depends_on", "extra_hosts", "networks")


def refused(sentence: str) -> expect.Mismatch:
    return expect.Mismatch("", sentence)


def load(text: str) -> Any:
    """What the text says, once no key is there twice."""
    try:
        for line, first, key in _twice(yaml.compose(text, yaml.SafeLoader), set()):
            raise refused(
                f"line {line} has the key {key}, which line {first} has already: "
                "Docker Compose refuses a key that is there twice"
            )
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or str(error)
        raise refused(f"this is not YAML{place}: {reason}") from None


def _twice(node: yaml.Node | None, known: set[int]) -> Iterator[tuple[int, int, str]]:
    """(line, the line before, key) of each key that a mapping has twice."""
    if id(node) in known or not isinstance(node, yaml.CollectionNode):
        return
    known.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _twice(item, known)
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if isinstance(key, yaml.ScalarNode) and key.value in lines:
            yield line, lines[key.value], key.value
        lines[str(key.value)] = line
        yield from _twice(value, known)


def check_keys(name: str, service: dict) -> None:
    """Refuse a key that Compose doesn't know, such as ``network``."""
    for key in map(str, service):
        if key in OF_A_SERVICE or key.startswith("x-"):
            continue
        near = difflib.get_close_matches(key, OF_A_SERVICE, n=1)
        meant = f": do you mean {near[0]}?" if near else ""
        raise refused(
            f"service {name} has the key {key}, which Docker Compose refuses{meant}"
        )


def check_forms(name: str, service: dict) -> None:
    """Refuse a single word where Compose takes a list only."""
    for key in (*LISTS, *LISTS_OR_MAPPINGS):
        given = service.get(key)
        if isinstance(given, (str, int)) or (key in LISTS and isinstance(given, dict)):
            raise refused(
                f"{key} of service {name} must be a list: write {key}: [{given}]"
            )


def interpolated(value: Any) -> Any:
    """``$NAME`` replaced by that of the user's shell, in which none is set."""
    if isinstance(value, dict):
        return {key: interpolated(item) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolated(item) for item in value]
    return VARIABLE.sub(_default, value) if isinstance(value, str) else value


def _default(found: re.Match[str]) -> str:
    escaped, _, name, how, word = found.groups()
    if how and how.endswith("?"):
        raise refused(f"${name} isn't set, and `?` makes Docker Compose refuse that")
    return "$" if escaped else word if how and how.endswith("-") else ""


def unset(value: Any) -> list[str]:
    """The variables that Compose replaces by nothing."""
    if isinstance(value, (dict, list)):
        items = value.values() if isinstance(value, dict) else value
        return [name for item in items for name in unset(item)]
    found = VARIABLE.finditer(value) if isinstance(value, str) else ()
    return [m[2] or m[3] for m in found if not m[1] and not m[4]]


def environment(name: str, variables: Any) -> dict[str, str]:
    """The variables of a service; those without a value are not set."""
    if isinstance(variables, list):
        for entry in variables:
            if not isinstance(entry, str):
                raise refused(
                    f"the list environment of {name} has {entry}, which must be a "
                    "string: write - NAME=VALUE, or NAME: VALUE without the dash"
                )
        pairs = (text.partition("=") for text in variables)
        return {key: value for key, equals, value in pairs if equals}
    return {str(k): str(v) for k, v in variables.items() if v is not None}


def words(name: str, command: Any) -> list[str]:
    """The words of a ``command`` or an ``entrypoint``."""
    if isinstance(command, str):
        try:
            return _no_backslash(name, shlex.split(command))
        except ValueError as error:
            raise refused(f"the command of {name}: {error}") from None
    for word in command or []:
        if not isinstance(word, str):
            raise refused(
                f"the command of {name} has {word}, which must be a string: "
                f'write "{word}" in a list'
            )
    return list(command or [])


def _no_backslash(name: str, split: list[str]) -> list[str]:
    if any(word[:1].isspace() for word in split):
        raise refused(
            f"the command of {name} has a `\\` at the end of a line: Docker Compose "
            "makes it part of an argument, so leave it out. YAML joins the lines"
        )
    return split


def without_shell(name: str, split: list[str], variables: dict[str, str]) -> list[str]:
    """The words of what ``bash -c`` starts, and of its last command if it may wait."""
    if len(split) < 3 or not SHELL.fullmatch(" ".join(split[:-1])):
        return split
    script = split[-1].replace("\\\n", " ").strip().replace("\n", " ; ")
    script = VARIABLE.sub(lambda m: _of_container(m, variables), script)
    lexer = shlex.shlex(script, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, ""
    inner = _no_backslash(name, list(lexer))
    while inner and inner[0] in BEFORE_TORCHRUN:
        ends = [place for place, word in enumerate(inner) if word in BETWEEN]
        if not ends:
            break
        inner = inner[ends[0] + 1 :]
    return inner[1:] if inner[:1] == ["exec"] else inner


def _of_container(found: re.Match[str], variables: dict[str, str]) -> str:
    _, plain, name, _, word = found.groups()
    return variables.get(plain or name or "", word or "")
