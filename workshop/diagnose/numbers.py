"""What the ranks of a run print of numbers: rank, epoch, step, values and lists.

Every trainer prints them in a form of its own, so a number is known by the words
around it: ``step 3``, ``step=3``, ``"step": 3``, ``[rank1]: Epoch [1/10]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from workshop.diagnose.lines import Line
from workshop.diagnose.logs import Log
from workshop.diagnose.ranks import First

MOST = 20_000  # lines with numbers that are read: half of them the first, half the last
NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
    r"(?!\d|[.:]\d|[A-Za-z]+\d)|(?<!\w)-?(?:nan|inf)\b",
    re.IGNORECASE,
)
LIST = re.compile(r"\[\s*([-+\d.eE]+(?:[,\s]+[-+\d.eE]+)+)\s*\]")
BARE = re.compile(r"[:=]\s*(\d+(?:(?:, ?| )\d+){2,})\s*$")  # a list without brackets
TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?|"
    r"\b\d{4}-\d\d-\d\d\b"
)
RANK = re.compile(r"\brank\W{0,3}(\d+)", re.IGNORECASE)
WORKER = re.compile(r"\bworker\W{0,3}(?:id\W{1,2})?(\d+)", re.IGNORECASE)
EPOCH = re.compile(r"\bepoch\W{0,3}(\d+)", re.IGNORECASE)
STEP = re.compile(
    r"\b(?:global[ _])?(?:step|iter(?:ation)?|it|batch(?:_idx)?)\W{0,3}(\d+)|"
    r"(?<=\])\[ *(\d+)/\d+\]",  # Epoch: [0][ 10/500]
    re.IGNORECASE,
)
SIZE = re.compile(
    r"\b(\d+|one) (?:ranks?|process(?:es)?|gpus?)\b|"
    r"\b(?:world[ _]?size|ranks|n?gpus|nproc[-_]per[-_]node)\W{1,3}(\d+)|"
    r"\brank \d+(?: of |/)(\d+)",
    re.IGNORECASE,
)
WORLD_SIZE = re.compile(
    r"(?:world[_ ]?size|nproc[-_]per[-_]node)\W{1,3}(\d+)", re.IGNORECASE
)
RESUMED = re.compile(
    r"\bresum|\brestart|\brestor|\breload|"
    r"\bload(?:ed|ing) .{0,30}(?:checkpoint|snapshot)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Number:
    """A number, with the words before it and the word behind it."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Said:
    """A line with numbers, and whose it is."""

    line: Line
    rank: int | None
    worker: int | None
    epoch: int | None
    step: int | None
    size: int | None  # ranks of the run that it belongs to, if the log names them
    metrics: tuple[Number, ...]
    lists: tuple[tuple[float, ...], ...]
    form: str  # the text with # for each number

    @property
    def text(self) -> str:
        return self.line.text

    def values(self, name: re.Pattern[str]) -> list[Number]:
        return [number for number in self.metrics if name.search(number.name)]


@dataclass(frozen=True)
class Shown:
    """The lines that show a cause, whether they prove it, and which rank it is."""

    lines: tuple[Line, ...]
    sure: bool
    suspect: First | None = None


Rule = Callable[[list[Said], int], "Shown | None"]  # given the number of ranks


def read_numbers(log: Log) -> list[Said]:
    """The lines that hold numbers or report a resume; no command that was typed."""
    sizes: dict[str, int] = {}  # of the run that a file is of
    told: list[tuple[Line, int | None]] = []
    for line in log.lines:
        file = line.place.rpartition(":")[0]
        if size := whole(WORLD_SIZE, line.text):
            sizes.setdefault(file, size)
        says = re.search(r"\d|nan", line.text) or RESUMED.search(line.text)
        if says and not line.text.startswith("$ "):
            told.append((line, sizes.get(file)))
    if len(told) > MOST:
        told = told[: MOST // 2] + told[-MOST // 2 :]
    return [read_line(line, size) for line, size in told]


def read_line(line: Line, size: int | None = None) -> Said:
    text = TIME.sub("", line.text)
    rank = whole(RANK, text)
    if rank is None:
        rank = line.rank
    return Said(
        line,
        rank,
        whole(WORKER, text),
        whole(EPOCH, text),
        whole(STEP, text),
        whole(SIZE, text) or size,
        tuple(numbers_of(text)),
        tuple(lists_of(text)),
        NUMBER.sub("#", text),
    )


def whole(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    said = next(filter(None, found.groups()), None) if found else None
    return 1 if said == "one" else int(said) if said else None


def numbers_of(text: str) -> Iterable[Number]:
    """Each number with its words; those of a list count as no numbers."""
    text = BARE.sub("", LIST.sub("", text))
    end = 0
    for match in NUMBER.finditer(text):
        words = re.split(r"[,;|\])(]\s", text[end : match.start()])[-1]
        name = re.sub(r"[^a-z/%-]+", " ", words.lower().replace("_", " ")).strip()
        unit = re.match(r"\s?(%|[A-Za-z]+(?:/[A-Za-z]+)*)?", text[match.end() :])
        value = float(match[0].replace(",", ""))
        shown = (unit[1] or "").lower() if unit else ""
        yield Number(name, value, shown)
        end = match.end()


def lists_of(text: str) -> Iterable[tuple[float, ...]]:
    for match in [*LIST.finditer(text), *BARE.finditer(text)]:
        try:
            yield tuple(float(each) for each in re.split(r"[,\s]+", match[1]))
        except ValueError:
            continue


Key = tuple[object, ...]


def grouped(said: Iterable[Said], key: Callable[[Said], Key]) -> dict[Key, list[Said]]:
    """The lines with equal keys together, in the order of the log."""
    groups: dict[Key, list[Said]] = {}
    for each in said:
        groups.setdefault(key(each), []).append(each)
    return groups


def side_by_side(said: Iterable[Said]) -> list[dict[int, Said]]:
    """What the ranks print at the same place of the program: {rank: line}."""
    groups = grouped(said, lambda each: (each.epoch, each.step, each.form))
    found = [
        {each.rank: each for each in reversed(lines) if each.rank is not None}
        for lines in groups.values()
    ]
    return [by_rank for by_rank in found if len(by_rank) > 1]


def far_above(values: dict[int, float], times: float) -> int | None:
    """The key whose value is that many times the median of the others."""
    top = max(values, key=lambda key: values[key])
    others = [value for key, value in values.items() if key != top]
    middle = median(others) if others else 0
    return top if middle > 0 and values[top] >= times * middle else None


def lines(said: Iterable[Said], most: int = 2) -> tuple[Line, ...]:
    return tuple(each.line for each in said)[:most]
