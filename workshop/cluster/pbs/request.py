"""What a user asks of qsub: the command line, and the ``#PBS`` lines of the script."""

from __future__ import annotations

import getopt
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .placement import (
    EXIT_ILLEGAL_VALUE,
    EXIT_UNKNOWN_RESOURCE,
    ILLEGAL,
    Chunk,
    Refused,
    parse_request,
    read_place,
)

OPTIONS = "a:A:c:C:e:fhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz"
CHUNK_RESOURCES = {"ncpus", "mem", "mpiprocs", "ompthreads", "host"}
JOB_RESOURCES = {"walltime", "select", "place", "nodes"}
EXIT_UNKNOWN_QUEUE = 170


@dataclass
class Request:
    """A job as it was asked for."""

    name: str
    script: str
    chunks: list[Chunk]
    place: str
    whole: bool  # each host is for this job alone
    walltime: float | None  # seconds
    variables: dict[str, str]  # given by -v and -V
    block: bool
    depend: list[tuple[str, list[str]]]  # [("afterok", ["12", "13.head"])]
    join: str  # "oe", "eo" or "n"
    keep: str  # of -k: any of o, e, d; "n" for nothing
    output: str | None
    error: str | None
    indices: list[int] | None  # of a job array
    project: str
    rerunnable: bool
    umask: int
    resources: dict[str, str] = field(default_factory=dict)  # as given by -l

    def shown_resources(self) -> dict[str, str]:
        """What qstat -f shows of ``resources``: older forms as a select."""
        shown = {k: v for k, v in self.resources.items() if k in JOB_RESOURCES}
        chunk = {k: v for k, v in self.resources.items() if k not in JOB_RESOURCES}
        if nodes := shown.pop("nodes", None):
            chunk = {}
            shown["select"] = re.sub(r"ppn=([0-9]+)", r"ncpus=\1:mpiprocs=\1", nodes)
        if chunk:
            shown["select"] = ":".join(["1", *(f"{k}={v}" for k, v in chunk.items())])
        return {"select": "1:ncpus=1", "place": self.place, **shown}


def read_request(
    argv: list[str],
    cwd: Path,
    environ: dict[str, str],
    read_stdin: Callable[[], str],
    gpus: bool,
) -> Request:
    """The request that ``qsub ARGV`` makes in the folder ``cwd``.

    Raises:
        Refused: with the words of qsub.
    """
    try:
        options, operands = getopt.getopt(argv, OPTIONS)
    except getopt.GetoptError as error:
        raise Refused(f"{error}\nusage: qsub [options] [script]", 2) from error
    if operands and operands[0] != "-":
        path = cwd / operands[0]
        name, script = path.name, read_script(path, operands[0])
    else:
        name, script = "STDIN", read_stdin()
    if "\r\n" in script:
        raise Refused("script contains cr, lf")
    # an option of the command line comes first, so it wins
    given = Given(options + read_directives(script))
    known = CHUNK_RESOURCES | ({"ngpus"} if gpus else set())
    resources = given.resources(known)
    chunks, place = parse_request(resources, known)
    attributes = given.attributes()
    return Request(
        name=check_name(given.one("N") or name),
        script=script,
        chunks=chunks,
        place=place,
        whole=read_place(resources.get("place", "free"))[1],
        walltime=seconds(resources.get("walltime")),
        variables=given.variables(environ),
        block=attributes.get("block") == "true",
        depend=read_depend(attributes.get("depend", "")),
        join=given.one("j") or "n",
        keep=given.one("k") or "n",
        output=given.one("o"),
        error=given.one("e"),
        indices=read_indices(given.one("J")),
        project=given.one("P") or "_pbs_project_default",
        rerunnable=given.one("r") != "n",
        umask=read_umask(attributes.get("umask", "077")),
        resources=resources,
    )


def read_script(path: Path, given: str) -> str:
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError as error:
        raise Refused(f"script file:: {error.strerror}: {given}") from error


def read_directives(script: str) -> list[tuple[str, str]]:
    """The options in ``#PBS`` lines; they end at the first command."""
    options = []
    for line in script.splitlines():
        if line.startswith("#PBS"):
            text = line.removeprefix("#PBS").strip()
            try:
                found, rest = getopt.getopt(shlex.split(text), OPTIONS)
            except (getopt.GetoptError, ValueError):
                rest, found = [text], []
            if rest:
                raise Refused(f"directive error: {text}")
            options += found
        elif line.strip() and not line.lstrip().startswith(("#", ":")):
            break
    return options


class Given:
    """Options in the order of their weight: of several, the first is taken."""

    def __init__(self, options: list[tuple[str, str]]):
        self.options = [(option[1], value) for option, value in options]
        letters = {letter for letter, _ in self.options}
        if "I" in letters:
            raise Refused("the rehearsal has no interactive jobs (-I)")
        if self.one("S") not in (None, "/bin/bash"):
            raise Refused("the rehearsal knows no shell but -S /bin/bash")
        queue = (self.one("q") or "workq").split("@")[0]
        if queue not in ("workq", ""):
            raise Refused("Unknown queue", EXIT_UNKNOWN_QUEUE)

    def all(self, letter: str) -> list[str]:
        return [value for found, value in self.options if found == letter]

    def one(self, letter: str) -> str | None:
        return next(iter(self.all(letter)), None)

    def resources(self, known: set[str]) -> dict[str, str]:
        """All of ``-l``; ``-l select=2,walltime=60`` gives two of them.

        Raises:
            Refused: one is neither ``known`` nor of a whole job.
        """
        found: dict[str, str] = {}
        items = [item for text in self.all("l") for item in text.split(",")]
        for item in items:
            name, _, value = item.strip().partition("=")
            if name not in known | JOB_RESOURCES:
                said = f"Unknown resource Resource_List.{name}"
                raise Refused(said, EXIT_UNKNOWN_RESOURCE)
            found.setdefault(name, value)
        return found

    def attributes(self) -> dict[str, str]:
        """All of ``-W``: ``depend=afterok:1,afterany:2,block=true`` gives two."""
        found: dict[str, str] = {}
        for text in self.all("W"):
            for item in re.split(r",(?=\w+=)", text):
                name, _, value = item.partition("=")
                if name not in ("block", "depend", "umask", "sandbox", "group_list"):
                    raise Refused(f"the rehearsal does not know -W {name}")
                found.setdefault(name, value)
        return found

    def variables(self, environ: dict[str, str]) -> dict[str, str]:
        """What ``-V`` (everything) and ``-v A=1,B`` take along."""
        found = dict(environ) if self.all("V") else {}
        items = [item for text in self.all("v") for item in split_commas(text)]
        for item in items:
            name, equals, value = item.partition("=")
            found[name.strip()] = value if equals else environ.get(name, "")
        return found


def split_commas(text: str) -> list[str]:
    r"""``A=1,B='2,3'`` and ``A=1,B=2\,3`` are two parts each."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = ",", True, ""
    return list(lexer)


def check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][^\s]{0,229}", name):
        raise Refused("illegal -N value", 2)
    return name


def seconds(text: str | None) -> float | None:
    """``01:30:00``, ``90:00`` and ``5400`` are the same."""
    if text is None:
        return None
    total = 0.0
    for part in text.split(":"):
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", part):
            raise Refused(f"{ILLEGAL}.walltime", EXIT_ILLEGAL_VALUE)
        total = total * 60 + float(part)
    return total


def read_umask(text: str) -> int:
    if not re.fullmatch("[0-7]{1,4}", text):
        raise Refused("Illegal attribute or resource value umask", EXIT_ILLEGAL_VALUE)
    return int(text, 8)


def read_depend(text: str) -> list[tuple[str, list[str]]]:
    """``afterok:12.head:13,afterany:14`` as pairs of kind and job ids."""
    depend = []
    for item in filter(None, text.split(",")):
        kind, *parents = item.split(":")
        if kind not in ("afterok", "afternotok", "afterany") or not parents:
            raise Refused(f"the rehearsal does not know depend={item}")
        depend.append((kind, parents))
    return depend


def read_indices(text: str | None) -> list[int] | None:
    """``0-3`` and ``0-8:2``, the indices of a job array."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+)-([0-9]+)(?::([0-9]+))?", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise Refused("illegal -J value", 2)
    return list(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))
