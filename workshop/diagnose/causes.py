"""What may have caused it: rules of error texts, and how sure they are.

The rules are ``causes.toml`` beside this file, the failure gallery's entries, and the
error lines of ``mistakes.toml``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path

from workshop.common_mistakes import Mistake, load_mistakes, plain
from workshop.diagnose.first import CHAINED, is_consequence, is_own_error, lead, look
from workshop.diagnose.kinds import CODE, EXCEPTION, NOISE, PROGRESS, SURVIVED
from workshop.diagnose.lines import Line
from workshop.diagnose.logs import Log
from workshop.diagnose.quiet import numbers_show
from workshop.diagnose.ranks import First
from workshop.diagnose.waiting import shown_together

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

GALLERY = "gallery/catalog.toml"
PAGE = "docs/lessons/19_when_it_breaks/1_find.rst"
WHICH_RANK = "docs/lessons/19_when_it_breaks/2_which_rank.rst"
CARD = "docs/lessons/19_when_it_breaks/1_find.html#failure-"  # and a failure's name
ROW = "docs/lessons/19_when_it_breaks/1_find.html#cause-"  # and a cause's name
SURE, MAYBE, HINT = 3, 2, 1
# what an agent of torchrun says after another one, which held the store, has ended
LOST_STORE = re.compile(r"connection to the C10d store has failed|RendezvousConnection")
STEP_ENDED = re.compile(r"slurmstepd: error: \*\*\* STEP \S+ ON \S+ CANCELLED AT")
# in torchrun's summary: those that waited abort, too
ABORTED = re.compile(r"Signal 6 \(SIGABRT\) received by PID")
TIME_LIMIT = "time_limit"  # a cause
# what ranks and libraries print when they begin to find each other
STARTS = re.compile(
    r"[Ii]nitializing (?:distributed|torch|ddp|process group)|Init START|"
    r"\bGLOBAL_RANK: \d|NCCL INFO Bootstrap|[Rr]endezvous|init_process_group"
)
HANDLING = re.compile(r"^During handling of the above exception")


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
    confirm: str = ""  # what settles it
    unless: re.Pattern[str] | None = None  # near the message: somebody else speaks
    needs: re.Pattern[str] | None = None  # somewhere in the log: what must be there
    inside: re.Pattern[str] | None = None  # a traceback: who speaks


@dataclass(frozen=True)
class Found:
    """A cause, the lines that show it, and how sure that is."""

    cause: Cause
    lines: tuple[Line, ...]
    weight: int
    by_first: bool  # the rank that failed first wrote it
    quiet: bool = False  # it shows in numbers: no rank reports an error
    suspect: First | None = None  # the rank that these point at


@cache
def load(root: Path) -> tuple[Cause, ...]:
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
    rules += [from_a_lesson(one) for one in load_mistakes() if one.messages]
    return tuple(make_cause(rule) for rule in rules)


def from_gallery(entry: dict) -> dict:
    """Its messages prove a crash. What is slow or wrong has none: see quiet.py."""
    return entry | {"gallery": [entry["name"]], "ask": entry["question"]}


def from_a_lesson(mistake: Mistake) -> dict:
    """An error line that only a lesson's table of common mistakes has."""
    return {
        "name": mistake.row,
        "title": capital(plain(mistake.cause)),
        "cure": capital(plain(mistake.cure)),
        "read": mistake.address,
        "messages": mistake.messages,
        "weight": mistake.weight,
        "gallery": [],
    }


def capital(text: str) -> str:
    """With a large first letter, unless code begins there."""
    return text[:1].upper() + text[1:]


def address(rule: dict) -> str:
    """Where lesson 19 shows a cause that has no card."""
    return ROW + rule["name"].replace("_", "-") if "group" in rule else PAGE


def make_cause(rule: dict) -> Cause:
    cards = [CARD + name.replace("_", "-") for name in rule["gallery"]]
    page = cards[0] if cards else address(rule)
    return Cause(
        rule["name"],
        rule["title"].rstrip("."),
        rule["cure"],
        rule.get("read", page),
        tuple(re.compile(message) for message in rule.get("messages", [])),
        tuple(re.compile(message) for message in rule.get("maybe", [])),
        rule.get("weight", SURE),
        tuple(rule.get("explains", [])),
        tuple(rule["gallery"]),
        rule.get("ask", ""),
        rule.get("confirm", ""),
        pattern_of(rule, "unless"),
        pattern_of(rule, "needs"),
        pattern_of(rule, "inside"),
    )


def pattern_of(rule: dict, field: str) -> re.Pattern | None:
    return re.compile(rule[field]) if field in rule else None


def candidates(causes: Iterable[Cause], log: Log, first: First | None) -> list[Found]:
    """What the log shows, likeliest first; without what another one explains."""
    suspects = first.ranks if first else ()
    spoken = list(utterances(log))
    seen = look(log)
    shown = shown_together(log, seen.ranks)
    text = "\n".join(line.text for line in log.lines)
    causes = [cause for cause in causes if not cause.needs or cause.needs.search(text)]
    found = [
        Found(cause, shown[cause.name], cause.weight, True)
        for cause in causes
        if cause.name in shown
    ]
    if "tasks_see_one_gpu" in shown:
        causes = [cause for cause in causes if cause.name != "more_ranks_than_gpus"]
    left_over = [cause for cause in causes if cause.name not in shown]
    found += filter(None, (search(cause, spoken, suspects) for cause in left_over))
    found = [maybe_by_launcher(each, log) for each in found]
    found = [no_step_taken(each, log) for each in found]
    found = [spoken_inside(each, log) for each in found]
    found = [while_handling(each, log) for each in found if each.weight]
    left = not_explained(found)
    if any(map(is_own_error, log.lines)):
        left = [f for f in left if f.quiet or not only_survived(f)]
    if any(rank in seen.own for rank in suspects):
        left = [f for f in left if f.by_first or not only_consequences(f)]
        failed = min(log.lines.index(seen.own[r]) for r in suspects if r in seen.own)
        left = [f for f in left if not only_ended_step(f, log.lines[failed:])]
    if lead(seen):
        left = [f for f in left if f.quiet or not of_those_that_waited(f)]
    if seen.root is not None:  # of the agent that ended first
        left = [f for f in left if f.quiet or not only_lost_store(f)]
    if not left and not first:
        left = of_numbers(causes, log)
    return sorted(left, key=lambda f: (-f.weight, not f.by_first))


def maybe_by_launcher(found: Found, log: Log) -> Found:
    """Not sure, if it shows only in ranks that the launcher may have killed."""
    if not found.lines or not look(log).together.issuperset(found.lines):
        return found
    return replace(found, weight=min(found.weight, MAYBE))


def no_step_taken(found: Found, log: Log) -> Found:
    """Not sure, if the time ended before the first step: the run may have hung."""
    if found.cause.name != TIME_LIMIT or any(is_progress(row) for row in log.lines):
        return found
    started = any(STARTS.search(row.text) for row in log.lines)
    return replace(found, weight=MAYBE) if started else found


def is_progress(line: Line) -> bool:
    return bool(PROGRESS.search(line.text))


def spoken_inside(found: Found, log: Log) -> Found:
    """The same, surer or with no weight, if its cause asks who speaks."""
    inside = found.cause.inside
    if inside is None or not found.lines:
        return found
    frames = frames_above(found.lines[0], log)
    if not frames:
        return replace(found, weight=min(found.weight, MAYBE))
    if not any(inside.search(line.text) for line in frames):
        return replace(found, weight=0)
    line = found.lines[0]
    counts = line.kind != SURVIVED and (found.by_first or line.rank is None)
    return replace(found, weight=SURE) if counts else found


def while_handling(found: Found, log: Log) -> Found:
    """Not sure, if it was raised while another error, the cause, was handled."""
    shown = found.lines[0] if found.lines else None
    if shown is None or not is_own_error(shown):
        return found
    above = [line for line in log.lines if line.rank == shown.rank]
    before = above[: above.index(shown)] if shown in above else []
    chained = [n for n, line in enumerate(before) if HANDLING.search(line.text)]
    if not chained or any(line.kind == EXCEPTION for line in before[chained[-1] :]):
        return found
    raised = [row.text.partition(": ")[2] for row in before if row.kind == EXCEPTION]
    if any(said and said.strip("'\" ") in shown.text for said in raised):
        return found  # it tells the first one again
    return replace(found, weight=min(found.weight, MAYBE))


def frames_above(shown: Line, log: Log) -> list[Line]:
    """The frames of the traceback that ends in this line, the last one first."""
    above = [line for line in log.lines if line.rank == shown.rank]
    if shown not in above:
        return []
    before = reversed(above[: above.index(shown)])
    return list(takewhile(lambda line: line.kind == CODE, before))


def of_those_that_waited(found: Found) -> bool:
    """Whether all of its lines are of ranks, which only waited."""
    marked = bool(found.lines) and all(row.rank is not None for row in found.lines)
    return marked or only_consequences(found)


def only_consequences(found: Found) -> bool:
    """Whether it shows only in what ranks say that waited for another one."""
    told = (is_consequence(row.text) or ABORTED.search(row.text) for row in found.lines)
    return bool(found.lines) and all(told)


def only_survived(found: Found) -> bool:
    """Whether it shows only in what the run survived."""
    return bool(found.lines) and all(row.kind == SURVIVED for row in found.lines)


def only_ended_step(found: Found, later: list[Line]) -> bool:
    """Whether it shows only in what Slurm says when it ends a step after a failure."""
    ended = [row for row in later if STEP_ENDED.search(row.text)]
    return bool(found.lines) and all(row in ended for row in found.lines)


def only_lost_store(found: Found) -> bool:
    """Whether it shows only in what the other agents of torchrun say afterwards."""
    return all(LOST_STORE.search(line.text) for line in found.lines)


def of_numbers(causes: Iterable[Cause], log: Log) -> list[Found]:
    """What the numbers of a run without an error show, likeliest first."""
    named = {cause.name: cause for cause in causes}
    found = [
        Found(named[name], shown.lines, weight, True, True, shown.suspect)
        for name, shown in numbers_show(log).items()
        for weight in [SURE if shown.sure else MAYBE]
    ]
    return not_explained(found)


def not_explained(found: list[Found]) -> list[Found]:
    """Those that no other one explains."""
    explained = {name for each in found for name in each.cause.explains}
    return [each for each in found if each.cause.name not in explained]


def utterances(log: Log):
    """(its lines, one text of them) of each rank and of what no rank is known for."""
    by_rank: dict[int | None, list[Line]] = {}
    cleaned = look(log).cleaned
    for line in log.lines:
        if line.kind not in (CODE, NOISE) and line not in cleaned:
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
    several = len(spoken) > 1  # ranks, or also lines of none
    for lines, text in spoken:
        for message, weight in rules:
            for match in message.finditer(text):
                number = text.count("\n", 0, match.start())
                line = lines[number]
                if cause.unless and near(cause.unless, lines, number):
                    continue
                if cause.gallery and is_consequence(line.text):
                    weight = HINT
                if line.kind == SURVIVED or overtaken(cause, line, lines):
                    weight = min(weight, MAYBE)
                if suspects and several and line.rank not in (None, *suspects):
                    weight = min(weight, MAYBE)  # a rank that failed later, or never
                found.append(Found(cause, (line,), weight, line.rank in suspects))
                break
    return max(found, key=lambda f: (f.weight, f.by_first), default=None)


def near(pattern: re.Pattern[str], lines: list[Line], number: int) -> bool:
    """Whether it is in this line, or in one of the lines before it."""
    return any(
        pattern.search(line.text) for line in lines[max(0, number - 2) : number + 1]
    )


def overtaken(cause: Cause, shown: Line, lines: list[Line]) -> bool:
    """Whether the rank survived this error, and then failed by another one."""
    if shown.rank is None or not is_own_error(shown):
        return False
    for line in lines[lines.index(shown) + 1 :]:
        if CHAINED.search(line.text):
            return False
        if is_own_error(line):
            return not any(message.search(line.text) for message in cause.messages)
    return False
