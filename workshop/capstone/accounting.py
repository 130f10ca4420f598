"""What the scheduler has recorded of a job, as its commands print it.

sacct --jobs=JOB --duplicates --parsable2 --format=JobID,State,ExitCode,NNodes
scontrol show job JOB
qstat -xf JOB
tracejob JOB
"""

from __future__ import annotations

import re

PATTERNS = {
    "job": r"JobId=(\d+)|Job Id: *(\S+)|^Job: *(\S+)",
    "state": r"JobState=(\w+)|job_state = (\w)",
    "status": r"ExitCode=(\d+:\d+)|Exit_status ?= ?(-?\d+)",
    "restarts": r"Restarts=(\d+)|run_count ?= ?(\d+)",
    "nodes": r"NumNodes=(\d+)\s",
}
NEEDED = {"JobID", "State", "ExitCode"}
UNFINISHED_IN_SLURM = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"}
UNFINISHED_LATER = {"REQUEUED", "REQUEUE_HOLD", "STAGE_OUT"}  # of Slurm, too
UNFINISHED_IN_PBS = set("BEHMQRSTUW")
UNFINISHED = UNFINISHED_IN_SLURM | UNFINISHED_LATER | UNFINISHED_IN_PBS


def parse_accounting(text: str, job: str) -> dict[str, str]:
    """Job, state, status, restarts and nodes, as far as the text has them.

    ``job`` is the one to look for, where the text has several.
    """
    first, *rest = text.strip().splitlines() or [""]
    if set(first.split("|")) >= NEEDED:
        return of_records([line.split("|") for line in [first, *rest]], job)
    found = {name: re.search(pat, text, re.M) for name, pat in PATTERNS.items()}
    values = {n: next(filter(None, m.groups()), "") for n, m in found.items() if m}
    if "run_count" in text and "restarts" in values:
        values["restarts"] = str(int(values["restarts"]) - 1)  # PBS counts all starts
    if "status" in values:
        values.setdefault("state", "F")  # tracejob tells the status, when there is one
    return values


def of_records(rows: list[list[str]], job: str) -> dict[str, str]:
    """The last record of the job; each earlier one was ended by a return to the queue.

    A record of a step, such as 7.batch or 7.0, has a dot in its id.
    """
    names = rows[0]
    records = [dict(zip(names, row, strict=False)) for row in rows[1:]]
    jobs = [each for each in records if "." not in each["JobID"]]
    own = [each for each in jobs if each["JobID"] == job] or jobs[-1:]
    if not own:
        return {}
    last = own[-1]
    return {
        "job": last["JobID"],
        "state": (last.get("State", "").split() or [""])[0],  # "CANCELLED by 1000"
        "status": last.get("ExitCode", ""),
        "restarts": str(len(own) - 1),
        "nodes": last.get("NNodes", ""),
    }


def missing_of(where: str, text: str, account: dict[str, str], job: str) -> str:
    """Why the accounting tells nothing of this job, in one sentence, or ""."""
    if not text.strip():
        return f"{where} is missing or empty: ask the scheduler for it."
    if text.startswith("JobID|") and not account:
        return f"{where} has no record of job {job}: sacct found none."
    if not account.get("job"):
        return (
            f"{where} is not what sacct --parsable2, scontrol show job, qstat -xf or "
            "tracejob prints: ask again."
        )
    if account["job"].partition(".")[0] != job.partition(".")[0]:
        return f"{where} is of another job than {job}."
    state = account.get("state", "unknown")
    if state in UNFINISHED or "status" not in account:
        return f"{where} says that the job is {state}: ask at its end."
    return ""
