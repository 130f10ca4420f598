"""What PyTorch's flight recorder kept: the first collective in which ranks differ.

Its files are pickles: a dictionary of the last collectives of one rank. They are read
without torch, and without running anything: only containers, text and numbers are
accepted.
"""

from __future__ import annotations

import io
import pickle
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workshop.diagnose.ranks import First, listed

NUMBER = re.compile(r"(\d+)(?:\.pickle|\.pkl)?$")
LIBRARY = re.compile(r"(?:site|dist)-packages/|/lib/python|^<|(?:^|/)torch/")
# ranks may pass tensors of different sizes to these
UNEVEN = re.compile(
    r"all_?to_?all|send|recv|coalesced|gather_v|scatter_v", re.IGNORECASE
)
MOST_RANKS = 65_536


class Plain(pickle.Unpickler):
    """Builds containers, text and numbers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


@dataclass(frozen=True)
class Call:
    """A collective of one rank."""

    name: str
    sizes: str
    dtypes: str
    where: str  # file:line of the program

    def __str__(self) -> str:
        of = f" of {self.sizes} {self.dtypes}" if self.sizes != "[]" else ""
        at = f" at {self.where}" if self.where else ""
        return f"{self.name}{of}{at}"


@dataclass
class Record:
    """What one rank kept: group -> number of the collective -> call."""

    calls: dict[str, dict[int, Call]] = field(default_factory=dict)
    members: dict[str, list[int]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """The first collective of a group in which its ranks differ."""

    cause: str  # the name of a rule of causes.toml
    first: First
    lines: tuple[str, ...]


def read_record(content: bytes) -> Record | None:
    """The record in a file; None if it holds something else."""
    try:
        said = Plain(io.BytesIO(content)).load()
        return of_dump(said)
    except (pickle.UnpicklingError, ValueError, EOFError, IndexError):
        return None
    except (AttributeError, KeyError, TypeError, UnicodeDecodeError, OverflowError):
        return None


def of_dump(said: dict[str, Any]) -> Record:
    record = Record()
    for entry in said["entries"]:
        if entry.get("is_p2p"):
            continue
        group, title = (str(part) for part in tuple(entry["process_group"])[:2])
        call = Call(
            str(entry["profiling_name"]),
            str(entry.get("input_sizes", [])).replace("'", ""),
            " ".join(map(str, entry.get("input_dtypes") or [])),
            program_line(entry.get("frames") or []),
        )
        record.calls.setdefault(group, {})[int(entry["collective_seq_id"])] = call
        record.titles[group] = title
    for group, config in (said.get("pg_config") or {}).items():
        ranks = re.findall(r"\d+", str(config.get("ranks", "")))
        record.members[str(group)] = [int(rank) for rank in ranks]
    return record


def program_line(frames: list[dict[str, Any]]) -> str:
    """The innermost line that isn't torch's or Python's own."""
    for frame in frames:
        if not LIBRARY.search(str(frame.get("filename", ""))):
            return f"{frame['filename']}:{frame['line']}"
    return ""


def rank_of(path: Path, known: dict[int, Record]) -> int:
    """By the number at the end of the file's name, otherwise the next one."""
    match = NUMBER.search(path.name)
    number = int(match[1]) if match else len(known)
    return number if number < MOST_RANKS else len(known)


def compare(records: dict[int, Record]) -> Difference | None:
    """The first difference, in the group with the most ranks first."""
    groups = {group for record in records.values() for group in record.calls}
    found = [compare_group(records, group) for group in groups]
    differences = [each for each in found if each]
    return max(differences, key=lambda each: each[0], default=(0, None))[1]


def compare_group(
    records: dict[int, Record], group: str
) -> tuple[int, Difference] | None:
    """(number of its ranks, the difference) of one group."""
    told = [record.members.get(group, []) for record in records.values()]
    members = set(max(told, key=len)) or {
        rank for rank, record in records.items() if group in record.calls
    }
    kept = {
        rank: records[rank].calls.get(group, {}) for rank in members if rank in records
    }
    having = {rank: calls for rank, calls in kept.items() if calls}
    if not having:
        return None
    title = next(r.titles[group] for r in records.values() if group in r.titles)
    name = f"group {group} ({title})"
    begin = max(min(calls) for calls in having.values())  # the ring's oldest
    for number in range(begin, max(max(calls) for calls in having.values()) + 1):
        calls = {rank: kept[rank].get(number) for rank in sorted(kept)}
        found = differ(calls, number, name)
        if found:
            return len(members), found
    return None


def differ(calls: dict[int, Call | None], number: int, group: str) -> Difference | None:
    """How the ranks' calls of one number differ."""
    made = {rank: call for rank, call in calls.items() if call}
    absent = tuple(rank for rank, call in calls.items() if not call)
    lines = tuple(
        f"collective {number} of {group}: {listed(ranks)} called {call}"
        for call, ranks in by_call(made)
    )
    if len({call.name for call in made.values()}) > 1:
        why = f"as collective {number} of {group}, the ranks called different ones"
        return Difference("collective_mismatch", First((), why), lines)
    if absent:
        why = f"it never called collective {number} of {group}, others did"
        absence = f"collective {number} of {group}: {listed(absent)} never called it"
        return Difference("absent_rank", First(absent, why), (*lines, absence))
    one = next(iter(made.values()))
    sizes = {call.sizes for call in made.values()}
    dtypes = {call.dtypes for call in made.values()}
    if len(dtypes) > 1 or (len(sizes) > 1 and not UNEVEN.search(one.name)):
        what = "dtypes" if len(dtypes) > 1 else "sizes"
        why = f"the ranks passed different {what} to collective {number} of {group}"
        return Difference("other_sizes", First((), why), lines)
    return None


def by_call(made: dict[int, Call]) -> list[tuple[Call, list[int]]]:
    """Equal calls together, with their ranks."""
    groups: dict[Call, list[int]] = {}
    for rank, call in made.items():
        groups.setdefault(call, []).append(rank)
    return list(groups.items())


def without_file(records: dict[int, Record]) -> list[int]:
    """Ranks that belong to a group, but whose file isn't there."""
    members = {
        rank
        for record in records.values()
        for ranks in record.members.values()
        for rank in ranks
    }
    return sorted(members - set(records))
