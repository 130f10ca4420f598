"""What may have caused it: rules of error texts, and how sure they are.

The rules are ``causes.toml`` beside this file, and the failure gallery's entries.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from workshop.diagnose.first import First, is_consequence, is_own_error, look
from workshop.diagnose.logs import Line, Log
from workshop.diagnose.quiet import numbers_show
from workshop.diagnose.waiting import shown_together

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

GALLERY = "gallery/catalog.toml"
PAGE = "docs/lessons/19_when_it_breaks.rst"
CARD = "docs/lessons/19_when_it_breaks.html#failure-"  # and the name of a failure
SURE, MAYBE, HINT = 3, 2, 1
CHAINED = re.compile(r"During handling of the above|was the direct cause of the follow")
# Warnings that healthy runs print, too: they prove nothing
WARNING = re.compile(
    r"^\s*\[W[\d\s:.]|^W\d{4} |Warning: |^WARNING|NCCL INFO |^Setting OMP_NUM"
)


@dataclass(frozen=True)
class Cause:
    """A rule: these messages, this cause."""

    name: str
    title: str
    cure: str
    read: str
    messages: tuple[re.Pattern[str], ...]
    maybe: tuple[re.Pattern[str], ...] = ()  # messages that have other causes, too
    weight: int = SURE
    explains: tuple[str, ...] = ()
    gallery: tuple[str, ...] = ()  # entries that show it
    ask: str = ""  # what tells it from the others


@dataclass(frozen=True)
class Found:
    """A cause, the lines that show it, and how sure that is."""

    cause: Cause
    lines: tuple[Line, ...]
    weight: int
    by_first: bool  # the rank that failed first wrote it
    quiet: bool = False  # it shows in numbers: no rank reports an error
    suspect: First | None = None  # the rank that these point at


def load(root: Path) -> list[Cause]:
    """The rules of causes.toml, then the gallery's entries that have no rule there."""
    own = (Path(__file__).parent / "causes.toml").read_text(encoding="utf-8")
    rules = tomllib.loads(own)["cause"]
    shown = {name for rule in rules for name in rule.get("gallery", [])}
    catalog = root / GALLERY
    text = catalog.read_text(encoding="utf-8") if catalog.is_file() else ""
    entries = tomllib.loads(text).get("failure", [])
    asked = {entry["name"]: entry["question"] for entry in entries}
    for rule in rules:
        rule["gallery"] = [name for name in rule.get("gallery", []) if name in asked]
        rule.setdefault("ask", " ".join(asked[name] for name in rule["gallery"][:1]))
    named = {rule["name"] for rule in rules}
    for entry in entries:
        if entry["name"] not in (shown if entry.get("messages") else named):
            rules.append(from_gallery(entry))
    return [make_cause(rule) for rule in rules]


def from_gallery(entry: dict) -> dict:
    """Its messages prove a crash. What is slow or wrong has none: see quiet.py."""
    return entry | {"gallery": [entry["name"]], "ask": entry["question"]}


def make_cause(rule: dict) -> Cause:
    cards = [CARD + name.replace("_", "-") for name in rule["gallery"]]
    return Cause(
        rule["name"],
        rule["title"].rstrip("."),
        rule["cure"],
        rule.get("read", cards[0] if cards else PAGE),
        tuple(re.compile(message) for message in rule.get("messages", [])),
        tuple(re.compile(message) for message in rule.get("maybe", [])),
        rule.get("weight", SURE),
        tuple(rule.get("explains", [])),
        tuple(rule["gallery"]),
        rule.get("ask", ""),
    )


def candidates(causes: list[Cause], log: Log, first: First | None) -> list[Found]:
    """What the log shows, likeliest first; without what another one explains."""
    suspects = first.ranks if first else ()
    spoken = list(utterances(log))
    shown = shown_together(log, look(log).ranks)
    found = [
        Found(cause, shown[cause.name], cause.weight, True)
        for cause in causes
        if cause.name in shown
    ]
    found += [f for cause in causes if (f := search(cause, spoken, suspects))]
    explained = {name for f in found for name in f.cause.explains}
    left = [f for f in found if f.cause.name not in explained]
    if not left and not first:
        left = of_numbers(causes, log)
    return sorted(left, key=lambda f: (-f.weight, not f.by_first))


def of_numbers(causes: list[Cause], log: Log) -> list[Found]:
    """What the numbers of a run without an error show, likeliest first."""
    named = {cause.name: cause for cause in causes}
    return [
        Found(named[name], shown.lines, weight, True, True, shown.suspect)
        for name, shown in numbers_show(log).items()
        for weight in [SURE if shown.sure else MAYBE]
    ]


def utterances(log: Log):
    """(its lines, one text of them) of each rank and of what no rank is known for."""
    by_rank: dict[int | None, list[Line]] = {}
    for line in log.lines:
        if not WARNING.search(line.text):
            by_rank.setdefault(line.rank, []).append(line)
    for file in log.error_files:
        rows = file.message.splitlines() or [""]
        by_rank.setdefault(file.rank, []).extend(
            Line(file.place, file.rank, row) for row in rows
        )
    for lines in by_rank.values():
        yield lines, "\n".join(line.text for line in lines)


def search(cause: Cause, spoken: list, suspects: tuple[int, ...]) -> Found | None:
    """Where the cause shows, best in what a suspect wrote."""
    rules = [(message, cause.weight) for message in cause.messages]
    rules += [(message, MAYBE) for message in cause.maybe]
    found = []
    for lines, text in spoken:
        for message, weight in rules:
            if match := message.search(text):
                line = lines[text.count("\n", 0, match.start())]
                if cause.gallery and is_consequence(line.text):
                    weight = HINT
                if overtaken(cause, line, lines):
                    weight = min(weight, MAYBE)
                if suspects and line.rank not in (None, *suspects):
                    weight = min(weight, MAYBE)  # a rank that failed later, or never
                found.append(Found(cause, (line,), weight, line.rank in suspects))
    return max(found, key=lambda f: (f.weight, f.by_first), default=None)


def overtaken(cause: Cause, shown: Line, lines: list[Line]) -> bool:
    """Whether the rank survived this error, and then failed by another one."""
    if shown.rank is None or not is_own_error(shown.text):
        return False
    for line in lines[lines.index(shown) + 1 :]:
        if CHAINED.search(line.text):
            return False
        if is_own_error(line.text):
            return not any(message.search(line.text) for message in cause.messages)
    return False
