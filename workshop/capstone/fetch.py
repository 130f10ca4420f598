"""Ask the scheduler for the accounting that a run lacks, where there is a scheduler.

It is kept only if the job has ended and is called capstone: job 8 of another cluster
is another job.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from workshop.capstone.accounting import missing_of, parse_accounting
from workshop.capstone.evidence import ACCOUNTING, Broken, Run, read_runs
from workshop.errors import UserError

FIELDS = "--format=JobID,JobName,State,ExitCode,NNodes"
COMMANDS = (
    ["sacct", "--duplicates", "--parsable2", FIELDS, "--jobs"],
    ["scontrol", "show", "job"],
    ["qstat", "-xf"],
)
LONGEST = 20  # seconds to wait for an answer

Ask = Callable[[list[str]], str]  # the command's output; "" if it fails


def fetch_missing(folder: Path, askers: Iterable[Ask] | None = None) -> list[str]:
    """Write accounting.txt where it is missing; a sentence for each."""
    try:
        runs = read_runs(folder)
    except (Broken, UserError):
        return []  # the judge says so
    asks = list(askers or (on_practice_cluster, here))
    told = [fetch(run, asks) for run in runs.values() if not run.told.strip()]
    return [sentence for sentence in told if sentence]


def fetch(run: Run, askers: list[Ask]) -> str:
    """Ask until an answer tells how this job ended."""
    job = run.attempts[-1].start["job"]
    for ask in askers:
        for words in COMMANDS:
            text = ask([*words, job])
            account = parse_accounting(text, job)
            if "capstone" in text and not missing_of("", text, account, job):
                (run.folder / ACCOUNTING).write_text(text, encoding="utf-8")
                return f"{run.name}/{ACCOUNTING} is new: {words[0]}'s answer on {job}."
    return ""


def here(words: list[str]) -> str:
    """On this machine, such as the login node of a cluster."""
    if not shutil.which(words[0]):
        return ""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout


def on_practice_cluster(words: list[str]) -> str:
    """On the practice cluster, if it is up."""
    from workshop.cluster.nodes import Cluster, ClusterError

    try:
        done = Cluster().run(words, timeout=LONGEST)
    except (OSError, ClusterError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout
