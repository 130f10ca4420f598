"""The evidence of the capstone, as it lies in a folder; no part is executed.

    capstone/undisturbed/    manifest.jsonl, log.txt, accounting.txt, checkpoint-STEPS
    capstone/disturbed/      the same of the run that loses a node

``src/common/manifest.py`` writes the manifest: each line has the hash of the line
before it. Checkpoints are pickles, which can run code: they are hashed, never loaded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from workshop.capstone.accounting import parse_accounting
from workshop.errors import UserError

RUNS = "undisturbed", "disturbed"
MANIFEST = "manifest.jsonl"
ACCOUNTING = "accounting.txt"
FIELDS: dict[str, dict[str, type]] = {
    "start": {
        "run": str,
        "job": str,
        "plan": dict,
        "hosts": list,
        "grid": dict,
        "save": dict,
        "sizes": dict,
        "code": dict,
        "own": dict,
        "first": int,
        "resumed": dict,
    },
    "memory": {"held": list, "numel": int, "dtypes": list},
    "steps": {"first": int, "losses": list, "data": list},
    "checkpoint": {"name": str, "files": dict},
    "end": {"steps": int, "test_loss": float},
}


class Broken(Exception):
    """What shows that evidence is not what the program wrote, in one sentence."""


@dataclass
class Attempt:
    """What one start of a job did."""

    start: dict
    memory: dict = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    data: dict[int, int] = field(default_factory=dict)
    checkpoints: dict[str, dict] = field(default_factory=dict)
    end: dict = field(default_factory=dict)

    @property
    def first(self) -> int:
        return self.start["first"]

    @property
    def hosts(self) -> list[str]:
        """The nodes, in the order of their first ranks."""
        return list(dict.fromkeys(map(str, self.start["hosts"])))

    @property
    def grid(self) -> dict[str, int]:
        return self.start["grid"]

    @property
    def layout(self) -> str:
        return " x ".join(f"{axis} {ranks}" for axis, ranks in self.grid.items())


@dataclass
class Run:
    """One of the two runs, with all starts of its job."""

    name: str
    folder: Path
    lines: list[bytes]
    attempts: list[Attempt]
    log: str
    told: str  # by the scheduler
    accounting: dict[str, str]  # what is read from it

    @property
    def started(self) -> dict:
        """How the first attempt began: with which plan and which code."""
        return self.attempts[0].start

    def history(self, what: str) -> dict[int, float]:
        """``losses`` or ``data`` of each step that counts in the end."""
        found: dict[int, float] = {}
        for attempt in self.attempts:
            kept = {step: x for step, x in found.items() if step < attempt.first}
            found = kept | getattr(attempt, what)
        return found

    @property
    def checkpoints(self) -> dict[str, dict]:
        """Name -> file -> [bytes, hash], of all attempts."""
        return {
            k: v for attempt in self.attempts for k, v in attempt.checkpoints.items()
        }


def read_runs(folder: Path) -> dict[str, Run]:
    """The runs that have left a manifest, by name.

    Raises:
        UserError: there is none.
        Broken: a manifest is not what the program writes.
    """
    found = [name for name in RUNS if (folder / name / MANIFEST).is_file()]
    if not found:
        raise UserError(
            f"{folder} has no {RUNS[0]}/{MANIFEST} and no {RUNS[1]}/{MANIFEST}: name "
            "the folder in which the jobs of the capstone left their evidence"
        )
    return {name: read_run(folder / name) for name in found}


def read_run(folder: Path) -> Run:
    """One run, whose lines are in order and follow each other."""
    lines = (folder / MANIFEST).read_bytes().splitlines()
    events = [read_line(folder.name, n, line) for n, line in enumerate(lines, 1)]
    check_chain(folder.name, lines, events)
    attempts, told = attempts_of(events), read_text(folder / ACCOUNTING)
    account = parse_accounting(told, attempts[-1].start["job"])
    log = read_text(folder / "log.txt")
    return Run(folder.name, folder, lines, attempts, log, told, account)


def read_text(path: Path) -> str:
    """The text of a file; "" where there is none."""
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def read_line(run: str, number: int, line: bytes) -> dict:
    """An event, with all fields that its kind has."""
    event = {}
    try:
        event = json.loads(line)
        fields = FIELDS[event["kind"]]
        good = all(isinstance(event[name], kind) for name, kind in fields.items())
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise Broken(
            f"Line {number} of {run}/{MANIFEST} is not a line that the program writes."
        )
    return event


def check_chain(run: str, lines: list[bytes], events: list[dict]) -> None:
    """Each line must have the hash of the line before it."""
    before = ""
    for number, (line, event) in enumerate(zip(lines, events, strict=True), 1):
        if event.get("previous") != before:
            raise Broken(
                f"Line {number - 1} of {run}/{MANIFEST} was changed after the run, or "
                f"lines are missing before line {number}: its hash is another."
            )
        before = sha256(line).hexdigest()
    if not events or events[0]["kind"] != "start":
        raise Broken(f"{run}/{MANIFEST} doesn't begin with the start of a run.")


def attempts_of(events: list[dict]) -> list[Attempt]:
    """The events of each start of the job."""
    attempts: list[Attempt] = []
    for event in events:
        kind = event["kind"]
        if kind == "start":
            attempts.append(Attempt(event))
        elif kind == "steps":
            steps = range(event["first"], event["first"] + len(event["losses"]))
            attempts[-1].losses |= dict(zip(steps, event["losses"], strict=False))
            attempts[-1].data |= dict(zip(steps, event["data"], strict=False))
        elif kind == "checkpoint":
            attempts[-1].checkpoints[event["name"]] = event["files"]
        else:
            setattr(attempts[-1], kind, event)
    return attempts
