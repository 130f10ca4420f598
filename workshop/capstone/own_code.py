"""Whether the runs used the learner's own code, as the manifest names it by its hash.

A run with the solution gets the points: the command says so, for instructors.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from workshop.capstone.evidence import Run
from workshop.skeleton import skeleton_text

EXERCISE = "exercises/20_capstone.py"
SOLUTION = "solutions/20_capstone.py"


def missing(runs: Iterable[Run], root: Path) -> str:
    """Why the runs don't count as the learner's own, in one sentence, or ""."""
    sentences = (missing_of(run, root) for run in runs)
    return next(filter(None, sentences), "")


def missing_of(run: Run, root: Path) -> str:
    for attempt in run.attempts:
        own = attempt.start["own"]
        if not own:
            return (
                f"The {run.name} run was laid out and saved by the program's own code: "
                f"give it --code {EXERCISE}."
            )
        name, seen = str(own["file"]), own["sha256"]
        path = (root / name).resolve()
        inside = path.is_relative_to(root.resolve()) and path.is_file()
        if not inside or digest(path.read_bytes()) != seen:
            return (
                f"The {run.name} run used another {name} than the one here: run both "
                "jobs with one version of your code."
            )
        if seen == digest(skeleton(root).encode()):
            return f"{name} is unchanged from the skeleton: write its three parts."
    return ""


def told(run: Run, root: Path) -> str:
    """Which file a run used, and how far it is from the skeleton; "" for none."""
    own = run.started["own"]
    if not own or missing_of(run, root):
        return ""
    text = (root / str(own["file"])).read_text(encoding="utf-8")
    what = f"{own['file']} ({own['sha256'][:12]})"
    if own["sha256"] == digest((root / SOLUTION).read_bytes()):
        return f"The code is {what}: the workshop's solution."
    lines = difflib.ndiff(skeleton(root).splitlines(), text.splitlines())
    new = sum(line.startswith("+ ") for line in lines)
    return f"The code is {what}: {new} lines differ from the skeleton."


def skeleton(root: Path) -> str:
    """The exercise as learners get it."""
    text = (root / SOLUTION).read_text(encoding="utf-8")
    return skeleton_text(text)


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()
