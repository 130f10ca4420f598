"""Whether evidence is as the runs left it: how far a change is noticed.

A changed line, a swapped or missing checkpoint, a manifest of another run and another
program are. A folder that somebody else's runs have filled is not.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from workshop.capstone.evidence import MANIFEST, Broken, Run


def check_unbroken(runs: dict[str, Run]) -> None:
    """Raises Broken, with what is wrong first."""
    for run in runs.values():
        check_one_run(run)
        check_seal(run)
        check_resumed(run)
        check_files(run)
    both = list(runs.values())
    if len(both) == 2 and both[0].started["run"] == both[1].started["run"]:
        raise Broken(
            "The two folders hold the same run, one of them copied: submit the job "
            "twice, each time with another name."
        )


def check_one_run(run: Run) -> None:
    if len({attempt.start["run"] for attempt in run.attempts}) > 1:
        raise Broken(f"{run.name}/{MANIFEST} is put together from different runs.")


def check_seal(run: Run) -> None:
    """The last line, which no other line follows, is in the log."""
    seal = sha256(run.lines[-1]).hexdigest()
    if run.attempts[-1].end and seal not in run.log:
        raise Broken(
            f"{run.name}/log.txt doesn't have the hash of the last line of {MANIFEST}: "
            "one of the two is from another run, or was changed."
        )


def check_resumed(run: Run) -> None:
    """What an attempt resumed from is what an earlier one has saved."""
    for attempt in run.attempts:
        name = f"checkpoint-{attempt.first}"
        saved = run.checkpoints.get(name)
        if attempt.first and saved and saved != attempt.start["resumed"]:
            raise Broken(
                f"{run.name} resumed from a {name} with other files than it had saved."
            )


def check_files(run: Run) -> None:
    """Every file of every checkpoint is there, with its hash."""
    recorded = {f"checkpoint-{a.first}": a.start["resumed"] for a in run.attempts}
    recorded.pop("checkpoint-0", None)
    for name, files in (recorded | run.checkpoints).items():
        folder = run.folder / Path(name).name  # never outside the run's folder
        for file, (_, expected) in files.items():
            path = folder / Path(file).name
            if not path.is_file():
                raise Broken(f"{run.name} has no {name}/{file} any more: keep it.")
            if hash_of(path) != expected:
                raise Broken(
                    f"{run.name}/{name}/{file} is not the file that the run has saved."
                )


def hash_of(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()
