"""Submit the job that proves a cluster, wait for it, and read what it has left.

``workshop doctor --job --submit``, at the site that ``workshop site`` has chosen.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workshop.cluster.jobs import sites
from workshop.diagnose.logs import read_logs
from workshop.diagnose.report import diagnose
from workshop.doctor.proof import judge
from workshop.errors import UserError

SCRIPT = "job_scripts/prove_cluster"  # .sbatch or .pbs
ASK_EVERY = 1.0  # seconds
QUESTION_LIMIT = 60.0  # seconds for squeue or qstat to answer
LATE_FILES = 10.0  # seconds: a shared file system may show them later here
# The program's last line. What follows is written by ranks and agents that end.
LAST_OF_THE_PAGE = " s after the submission"


@dataclass(frozen=True)
class Submitted:
    """A job, and where it leaves its log and its report."""

    scheduler: str  # "slurm" or "pbs"
    number: str
    log: Path
    report: Path


@dataclass(frozen=True)
class Proof:
    """What the job printed, as far as it is worth reading, and what is wrong."""

    log: str
    findings: list[str]


def find_scheduler(root: Path) -> str:
    """That of the chosen site, else the one whose command is here.

    Raises:
        UserError: there is none.
    """
    name = sites.chosen(root)
    if name:
        text = (root / "job_scripts" / "sites" / f"{name}.sh").read_text()
        found = re.search(r"^SITE_SCHEDULER=(\w+)", text, re.M)
        if found:
            return found[1]
    for scheduler, command in sites.COMMANDS.items():
        if shutil.which(command):
            return scheduler
    raise UserError(
        "doctor --job --submit: no sbatch and no qsub on PATH: run it on a login "
        "node, or on the practice cluster: workshop cluster run workshop doctor --job "
        "--submit"
    )


def submit(root: Path, options: Sequence[str]) -> Submitted:
    """Submit the job with these options of the scheduler, after those of the site.

    Raises:
        UserError: no scheduler is here, or it refuses the job.
    """
    scheduler = find_scheduler(root)
    now = time.time()
    milliseconds = now * 1000  # a job may be refused at once, and submitted again
    folder = root / ".workshop" / f"prove_cluster-{milliseconds:.0f}"
    folder.mkdir(parents=True)
    log, report = folder / "log.txt", folder / "report.json"
    arguments = ("--report", str(report.relative_to(root)), "--submitted", f"{now:.1f}")
    if scheduler == "slurm":
        given = ("--parsable", f"--output={log}", *options)
        planned = sites.plan(root, f"{root / SCRIPT}.sbatch", given)
        told = sites.submit_and_read(root, planned, arguments)
    else:
        # qsub has no arguments for scripts
        given = ("-o", str(log), *with_variable("ARGS", " ".join(arguments), options))
        planned = sites.plan(root, f"{root / SCRIPT}.pbs", given)
        told = sites.submit_and_read(root, planned)
    number = told.splitlines()[-1].partition(";")[0]
    return Submitted(scheduler, number, log, report)


def with_variable(name: str, value: str, options: Sequence[str]) -> list[str]:
    """Options of qsub that also give the job a variable: of several -v, one counts."""
    given, rest = [f"{name}={value}"], []
    words = iter(options)
    for word in words:
        if word == "-v":
            given.append(next(words, ""))
        elif word.startswith("-v"):
            given.append(word.removeprefix("-v"))
        else:
            rest.append(word)
    return ["-v", ",".join(given), *rest]


def state(job: Submitted) -> str:
    """The scheduler's word for the job's state, and why; "" once it has ended."""
    command = ["qstat", "-f", job.number]
    if job.scheduler == "slurm":
        command = ["squeue", "--noheader", f"--job={job.number}", "--format=%T %r"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=QUESTION_LIMIT
    )
    if done.returncode:
        return ""
    if job.scheduler == "slurm":
        return done.stdout.strip().removesuffix(" None")
    found = re.search(r"job_state = (\w)", done.stdout)
    return "" if found is None or found[1] in "FX" else found[1]


def wait(job: Submitted, say: Callable[[str], None]) -> None:
    """Return when the job has ended; say each state that it comes to."""
    before = ""
    while now := state(job):
        if now != before:
            say(f"job {job.number}: {now}")
        before = now
        time.sleep(ASK_EVERY)


def read(job: Submitted, root: Path) -> Proof:
    """What the ended job has left.

    Without a report, the findings are those of the doctor inside the job, else what
    ``workshop diagnose`` says of the log.

    Raises:
        UserError: it has left nothing.
    """
    end = time.monotonic() + LATE_FILES
    while not job.log.exists() and time.monotonic() < end:
        time.sleep(ASK_EVERY)
    if not job.log.exists():
        raise UserError(
            f"job {job.number} has left no log in {job.log}: did it start, and do its "
            "nodes share this folder?"
        )
    log = job.log.read_text(encoding="utf-8", errors="replace")
    if job.report.exists():
        report = json.loads(job.report.read_text(encoding="utf-8"))
        page, end, _ = log.partition(LAST_OF_THE_PAGE)
        return Proof(page + end, judge(report))
    findings = re.findall(r"^- (.+)$", log, re.M)  # of the doctor inside the job
    if findings:
        return Proof("", findings)
    told, _ = diagnose(read_logs((str(job.log),)), root)
    return Proof("\n".join(told), ["the job has measured nothing: see its log"])
