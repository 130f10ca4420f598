"""A job script submitted for a check: to Slurm, or to the PBS rehearsal beside it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

from workshop.cluster.jobs.job import NEVER_STARTED, OF_THE_CHECK, STILL_RUNNING
from workshop.cluster.nodes import Cluster
from workshop.cluster.pbs import Delays, PbsError, Rehearsal
from workshop.system.processes import with_variable
from workshop.system.stopwatch import Stopwatch

POLL_SECONDS = 0.1
LOOK_SECONDS = 1.0  # between two looks at all processes of the machine
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY")


def submit(
    state: Path,
    folder: Path,
    script: Path,
    options: tuple[str, ...],
    nodes: int,
    gpus: int,
    env: dict[str, str],
    limit: float,
    number: int = 1,
) -> tuple[str, str, int | None, str, list[str]]:
    """Submit ``script`` and wait; (id, state, exit code, output, nodes).

    ``number`` is that of the job with PBS: each job of a check has another.
    """
    cluster = Cluster(state)
    if script.suffix == ".pbs":
        return _through_rehearsal(
            cluster, folder, script, options, nodes, gpus, env, limit, number
        )
    asked = [f"--nodes={nodes}", *([f"--gres=gpu:{gpus}"] if gpus else []), *options]
    output = folder / "record" / "output"
    done = _sbatch(cluster, folder, script, output, asked, env, limit)
    if done.returncode:
        return "", "REFUSED", done.returncode, done.stdout + done.stderr, []
    job_id = done.stdout.strip().split(";")[0]
    watch = Stopwatch(every=LOOK_SECONDS)
    return _end_of(cluster, job_id, script, output, watch, limit)


def submit_together(
    state: Path, folder: Path, script: Path, nodes: int, limit: float, times: int
) -> list[tuple[str, str, int | None, str, list[str]]]:
    """Submit ``script`` several times to the same nodes, then wait for all."""
    cluster = Cluster(state)
    asked = [f"--nodes={nodes}", f"--nodelist={','.join(cluster.hosts[:nodes])}"]
    outputs = [folder / "record" / f"output.{number}" for number in range(times)]
    submitted = [
        _sbatch(cluster, folder, script, output, asked, {}, limit) for output in outputs
    ]
    ended, watch = [], Stopwatch(every=LOOK_SECONDS)
    for done, output in zip(submitted, outputs, strict=True):
        if done.returncode:
            said = done.stdout + done.stderr
            ended.append(("", "REFUSED", done.returncode, said, []))
            continue
        number = done.stdout.strip().split(";")[0]
        ended.append(_end_of(cluster, number, script, output, watch, limit))
    return ended


def _sbatch(
    cluster: Cluster,
    folder: Path,
    script: Path,
    output: Path,
    options: list[str],
    env: dict[str, str],
    limit: float,
) -> subprocess.CompletedProcess[str]:
    foreign = [name for name in os.environ if OF_THE_CHECK.match(name)]
    command = ["env", *(f"--unset={name}" for name in foreign)]  # sbatch passes all on
    command += ["sbatch", "--parsable", f"--output={output}", *options, str(script)]
    return cluster.run(command, cwd=folder, env=env, timeout=limit)


def _end_of(
    cluster: Cluster,
    number: str,
    script: Path,
    output: Path,
    watch: Stopwatch,
    limit: float,
) -> tuple[str, str, int | None, str, list[str]]:
    """Wait for a job, at most ``limit``; what :func:`submit` returns of it."""
    found = _look(cluster, number)
    while found["JobState"] not in ENDED:
        never = found.get("Reason") == "PartitionConfig"  # no node is large enough
        if never or watch.passed(limit, with_variable(f"SLURM_JOB_ID={number}")):
            state = NEVER_STARTED if found["JobState"] == "PENDING" else STILL_RUNNING
            found["JobState"], found["ExitCode"] = state, ""
            break
        time.sleep(POLL_SECONDS)
        found = _look(cluster, number)
    text = output.read_text(errors="replace") if output.exists() else ""
    if found["JobState"] == NEVER_STARTED:
        text = f"Slurm's reason is {found.get('Reason')}"
    if found["JobState"] in (STILL_RUNNING, NEVER_STARTED):
        cluster.run(["scancel", number])
    text = re.sub(r"\S*/slurm_script\b", script.name, text)  # bash names Slurm's copy
    code, _, signal = found["ExitCode"].partition(":")
    status = (int(code) or int(signal or 0)) if code else None
    return number, found["JobState"], status, text, _hosts(found.get("NodeList", ""))


def _look(cluster: Cluster, number: str) -> dict[str, str]:
    """The fields of ``scontrol show job``."""
    text = cluster.run(["scontrol", "--oneliner", "show", "job", number]).stdout
    fields = dict(re.findall(r"(\S+?)=(\S*)", text))
    return {"JobState": "CANCELLED", "ExitCode": "0:0", **fields}


def _hosts(node_list: str) -> list[str]:
    """``n[1-2,4]`` as a list of names."""
    found = re.fullmatch(r"([a-z]+)\[([\d,-]+)\]", node_list)
    if not found:
        return [] if node_list in ("", "(null)") else [node_list]
    indices: list[int] = []
    for part in found[2].split(","):
        first, _, last = part.partition("-")
        indices += range(int(first), int(last or first) + 1)
    return [f"{found[1]}{index}" for index in indices]


class _OneJob(Rehearsal):
    """A server that has given numbers to other jobs before."""

    number = 1

    def take_number(self) -> int:
        return self.number


def _through_rehearsal(
    cluster: Cluster,
    folder: Path,
    script: Path,
    options: tuple[str, ...],
    nodes: int,
    gpus: int,
    env: dict[str, str],
    limit: float,
    number: int,
) -> tuple[str, str, int | None, str, list[str]]:
    """The same for PBS; the hosts let their users in by ssh, as often."""
    rehearsal = _OneJob(
        cluster,
        hosts=cluster.hosts[:nodes],
        ngpus=gpus,
        home=folder.parent,
        delays=Delays().divided_by(20),
        ssh=True,
    )
    rehearsal.number = number
    with rehearsal as pbs:
        try:
            job_id = pbs.qsub(*options, str(script), cwd=folder, env=env)
        except PbsError as error:
            return "", "REFUSED", error.status, str(error), []
        job, watch = pbs.job(job_id), Stopwatch(every=LOOK_SECONDS)
        while job.state != "F":
            if watch.passed(limit, with_variable(f"PBS_JOBID={job.id}")):
                state = STILL_RUNNING
                pbs.run("qdel", job_id)
                break
            with contextlib.suppress(TimeoutError):
                pbs.wait(job_id, POLL_SECONDS)
        else:
            state = "COMPLETED" if job.exit_status == 0 else "FAILED"
        hosts = list(dict.fromkeys(job.hosts))
        return job_id, state, job.exit_status, job.output + job.error, hosts
