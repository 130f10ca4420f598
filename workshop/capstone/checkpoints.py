"""Whether the checkpoints of a run are those that the capstone asks for.

Judged by the names, sizes and hashes of their files, which the manifest records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from workshop.capstone.evidence import Run

FLOAT32 = 4  # bytes
STATE = 3 * FLOAT32  # of a parameter: itself, and the two moments of AdamW
MOST = 5  # times as many bytes: the names and shapes of shards need space, too


def good(runs: Iterable[Run]) -> str:
    """What is missing, in one sentence, or ""."""
    return next(filter(None, map(good_one, runs)), "")


def good_one(run: Run) -> str:
    save, planned = run.started["save"], run.started["plan"].get("save_every", 0)
    found = run.checkpoints
    if not found:
        return f"The {run.name} run has saved no checkpoint."
    if save.get("every") != planned:
        return (
            f"The plan saves every {planned} steps, and the {run.name} run saved every "
            f"{save.get('every')}."
        )
    if not save.get("background"):
        return f"The {run.name} run waited for each save: give it --async-save."
    if missing := sorted(due(run) - set(map(steps_of, found))):
        return f"The {run.name} run has no checkpoint-{missing[0]}, which it should."
    numel = run.attempts[0].memory.get("numel", 0)
    return next(filter(None, (whole(run, n, numel) for n in found)), "")


def due(run: Run) -> set[int]:
    """The steps after which the attempts that came to their end have saved."""
    every, steps = run.started["save"].get("every", 0), run.started["sizes"]["steps"]
    begun = run.attempts[-1].first if run.attempts[-1].end else steps
    return {step for step in range(every, steps + 1, every) if step > begun}


def whole(run: Run, name: str, numel: int) -> str:
    """Each number is in a checkpoint, with its moments, and once."""
    files = [
        tuple(file) for part, file in run.checkpoints[name].items() if part[0] != "."
    ]
    sizes, expected = [size for size, _ in files], STATE * numel
    if sum(sizes) < expected:
        return (
            f"{run.name}/{name} has {sum(sizes):,} bytes: parameters and optimizer "
            f"state of {numel:,} numbers need {expected:,}."
        )
    if len(files) > 1 and (
        len(set(files)) < len(files) or sum(sizes) > MOST * expected
    ):
        return (
            f"{run.name}/{name} has the same numbers in several files: every rank has "
            "saved the whole model, instead of its shard."
        )
    return ""


def steps_of(name: str) -> int:
    """The steps that had run when a checkpoint was saved."""
    return int("".join(re.findall(r"\d+", name)) or 0)
