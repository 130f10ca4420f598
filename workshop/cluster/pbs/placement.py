"""Which host gets which part of a job: ``select``, ``place`` and the older forms.

A request is a list of chunks, pieces of work that each fit on one host. ``place``
says how chunks are laid on hosts: ``scatter`` puts each on a host of its own, ``pack``
puts all on one, and ``free``, the default, takes what comes first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

PLACES = ("free", "pack", "scatter")
SHARING = ("shared", "excl", "exclhost")
ILLEGAL = "Illegal attribute or resource value Resource_List"
EXIT_ILLEGAL_VALUE, EXIT_UNKNOWN_RESOURCE = 166, 187
UNITS_MB = {"": 2**-20, "b": 2**-20, "kb": 2**-10, "mb": 1, "gb": 2**10, "tb": 2**20}


class Refused(Exception):
    """What qsub prints, and the exit status it then ends with."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Amount:
    """What a host has, or what a chunk asks for."""

    ncpus: int = 0
    ngpus: int = 0
    mem_mb: float = 0

    def __sub__(self, other: Amount) -> Amount:
        return Amount(*(a - b for a, b in self.pairs(other)))

    def pairs(self, other: Amount) -> list[tuple]:
        names = ("ncpus", "ngpus", "mem_mb")
        return [(getattr(self, name), getattr(other, name)) for name in names]

    def covers(self, other: Amount) -> bool:
        return all(a >= b for a, b in self.pairs(other))


@dataclass(frozen=True)
class Chunk:
    """One piece of a job, on one host."""

    amount: Amount
    mpiprocs: int  # lines of the node file
    ompthreads: int
    host: str | None = None  # where it must be

    @classmethod
    def parse(cls, text: str, known: set[str]) -> list[Chunk]:
        """``2:ncpus=4:mpiprocs=2`` is twice the same chunk."""
        count, *parts = text.split(":")
        if not count.isdigit():
            count, parts = "1", [count, *parts]
        given = dict(read_resource(part, known) for part in parts)
        ncpus = int(given.get("ncpus", 1))
        amount = Amount(ncpus, int(given.get("ngpus", 0)), megabytes(given.get("mem")))
        mpiprocs = int(given.get("mpiprocs", 1))
        threads = int(given.get("ompthreads", ncpus))
        chunk = cls(amount, mpiprocs, threads, given.get("host"))
        return [chunk] * int(count)


def read_resource(part: str, known: set[str]) -> tuple[str, str]:
    """``ncpus=4`` as name and value.

    Raises:
        Refused: the server does not know the resource, or the value is missing.
    """
    name, _, value = part.partition("=")
    if name not in known:
        raise Refused(f"Unknown resource Resource_List.{name}", EXIT_UNKNOWN_RESOURCE)
    if name not in ("mem", "host") and not value.isdigit():
        raise Refused(f"{ILLEGAL}.{name}", EXIT_ILLEGAL_VALUE)
    return name, value


def megabytes(text: str | None) -> float:
    """``2gb`` is 2048; nothing asked for is 0, because nothing is enforced."""
    if text is None:
        return 0
    match = re.fullmatch(r"([0-9]+)([a-z]*)", text.lower())
    if match is None or match[2] not in UNITS_MB:
        raise Refused(f"{ILLEGAL}.mem", EXIT_ILLEGAL_VALUE)
    return int(match[1]) * UNITS_MB[match[2]]


def parse_request(
    resources: dict[str, str], known: set[str]
) -> tuple[list[Chunk], str]:
    """The chunks of a job and how to place them, from its ``-l`` options."""
    chunkwise = {k: v for k, v in resources.items() if k in known}
    if "nodes" in resources:
        if "select" in resources or "place" in resources:
            raise Refused("Cannot be used with select or place: nodes", 6)
        if chunkwise:
            name = next(iter(chunkwise))
            raise Refused(f"the rehearsal knows no -l {name} beside -l nodes")
        return parse_nodes(resources["nodes"], known), "scatter"
    if chunkwise and ("select" in resources or "place" in resources):
        said = '"-lresource=" cannot be used with "select" or "place", resource is: '
        raise Refused(said + next(iter(chunkwise)), 5)
    place = read_place(resources.get("place", "free"))[0]
    if "select" in resources:
        texts = resources["select"].split("+")
        return [chunk for text in texts for chunk in Chunk.parse(text, known)], place
    if chunkwise:  # the job-wide form: all of it on one host
        text = ":".join(f"{name}={value}" for name, value in chunkwise.items())
        return Chunk.parse(text, known), "pack"
    return Chunk.parse("1", known), place


def read_place(text: str) -> tuple[str, bool]:
    """``scatter:excl`` is "scatter", and the job has its hosts for itself."""
    parts = text.split(":")
    sharing = parts.pop() if parts[-1] in SHARING else "shared"
    place = ":".join(parts) or "free"
    if place not in PLACES:
        known = f"{'|'.join(PLACES)}, then :{'|:'.join(SHARING)}"
        raise Refused(f"the rehearsal knows place={known}, not {text}")
    return place, sharing != "shared"


def parse_nodes(text: str, known: set[str]) -> list[Chunk]:
    """Torque's ``2:ppn=4``, which stands for ``2:ncpus=4:mpiprocs=4``."""
    chunks: list[Chunk] = []
    for part in text.split("+"):
        match = re.fullmatch(r"([0-9]+)(?::ppn=([0-9]+))?", part)
        if match is None:
            raise Refused("node(s) specification error")
        ppn = match[2] or "1"
        chunks += Chunk.parse(f"{match[1]}:ncpus={ppn}:mpiprocs={ppn}", known)
    return chunks


def fit(chunks: list[Chunk], place: str, free: dict[str, Amount]) -> list[str] | None:
    """The host of each chunk; None if there is no room."""
    if place == "pack":
        total = Amount(
            sum(chunk.amount.ncpus for chunk in chunks),
            sum(chunk.amount.ngpus for chunk in chunks),
            sum(chunk.amount.mem_mb for chunk in chunks),
        )
        named = {chunk.host for chunk in chunks if chunk.host}
        fitting = [h for h, amount in free.items() if amount.covers(total)]
        host = next((h for h in fitting if named <= {h}), None)
        return None if host is None else [host] * len(chunks)
    left, hosts = dict(free), []
    for chunk in chunks:
        fitting = [h for h in left if left[h].covers(chunk.amount)]
        host = next((h for h in fitting if chunk.host in (None, h)), None)
        if host is None:
            return None
        hosts.append(host)
        if place == "scatter":
            del left[host]
        else:
            left[host] -= chunk.amount
    return hosts


def why_not(chunks: list[Chunk], place: str, hosts: dict[str, Amount]) -> str:
    """The comment of a job that waits, given what the hosts have in all."""
    if place == "scatter" and len(chunks) > len(hosts):
        return "Can Never Run: Not enough total nodes available"
    # measured without GPUs: is it the cores that are short, or the GPUs?
    without = [replace(chunk, amount=Amount(chunk.amount.ncpus)) for chunk in chunks]
    gpus = fit(without, place, hosts) and not fit(chunks, place, hosts)
    short = "ngpus" if gpus else "ncpus"
    return f"Not Running: Insufficient amount of resource: {short}"
