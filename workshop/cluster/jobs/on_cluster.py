"""A job script submitted for a check: to Slurm, or to the PBS rehearsal beside it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

from workshop.cluster.jobs.job import (
    NEVER_STARTED,
    OF_THE_CHECK,
    STILL_RUNNING,
    Asked,
    End,
)
from workshop.cluster.nodes import Cluster
from workshop.cluster.pbs import Delays, PbsError, Rehearsal
from workshop.cluster.pbs import Job as PbsJob
from workshop.system.processes import with_variable
from workshop.system.stopwatch import Stopwatch

IMPOSSIBLE = "PartitionConfig"  # why a job waits that no nodes can ever run
POLL_SECONDS = 0.1
FASTER = 20  # than real PBS, are the delays of the rehearsal
LOOK_SECONDS = 1.0  # between two looks at all processes of the machine
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY")


def submit(state: Path, asked: Asked) -> End:
    """Submit a script to the cluster whose files are in ``state``, and wait."""
    cluster = Cluster(state)
    if asked.script.suffix == ".pbs":
        return _through_rehearsal(cluster, asked)
    output = asked.folder / "record" / "output"
    options = [f"--nodes={asked.nodes}"]
    if asked.gpus:
        options.append(f"--gres=gpu:{asked.gpus}")
    done = _sbatch(cluster, asked, output, [*options, *asked.options])
    return _end_of(cluster, asked, done, output, Stopwatch(every=LOOK_SECONDS))


def submit_together(state: Path, asked: Asked, times: int) -> list[End]:
    """Submit a script several times to the same nodes, then wait for all."""
    cluster = Cluster(state)
    hosts = ",".join(cluster.hosts[: asked.nodes])
    options = [f"--nodes={asked.nodes}", f"--nodelist={hosts}"]
    record = asked.folder / "record"
    outputs = [record / f"output.{number}" for number in range(times)]
    submitted = [_sbatch(cluster, asked, output, options) for output in outputs]
    watch = Stopwatch(every=LOOK_SECONDS)  # the limit is that of all together
    return [
        _end_of(cluster, asked, done, output, watch)
        for done, output in zip(submitted, outputs, strict=True)
    ]


def _sbatch(
    cluster: Cluster, asked: Asked, output: Path, options: list[str]
) -> subprocess.CompletedProcess[str]:
    foreign = [name for name in os.environ if OF_THE_CHECK.match(name)]
    command = ["env", *(f"--unset={name}" for name in foreign)]  # sbatch passes all on
    command += ["sbatch", "--parsable", f"--output={output}", *options]
    command.append(str(asked.script))
    return cluster.run(command, cwd=asked.folder, env=asked.env, timeout=asked.limit)


def _end_of(
    cluster: Cluster,
    asked: Asked,
    sbatch: subprocess.CompletedProcess[str],
    output: Path,
    watch: Stopwatch,
) -> End:
    """Wait for the job that ``sbatch`` submitted, if it did, until the limit."""
    if sbatch.returncode:
        return End.refused(sbatch.returncode, sbatch.stdout + sbatch.stderr)
    number = sbatch.stdout.strip().split(";")[0]
    found = _wait(cluster, number, watch, asked.limit)
    state = found["JobState"]
    text = output.read_text(errors="replace") if output.exists() else ""
    if state == NEVER_STARTED:
        reason = found.get("Reason")
        text = f"Slurm's reason is {reason}"
        if reason == IMPOSSIBLE:
            text += ": it asks for more nodes, or for more on a node, than there are"
    if state in (STILL_RUNNING, NEVER_STARTED):
        cluster.run(["scancel", number])  # not before its output is read
    # bash names Slurm's copy of the script
    text = re.sub(r"\S*/slurm_script\b", asked.script.name, text)
    hosts = _hosts(found.get("NodeList", ""))
    return End(number, state, _status(found["ExitCode"]), text, hosts)


def _wait(
    cluster: Cluster, number: str, watch: Stopwatch, limit: float
) -> dict[str, str]:
    """What Slurm says of a job at its end, or at the limit."""
    found = _look(cluster, number)
    while found["JobState"] not in ENDED:
        never = found.get("Reason") == IMPOSSIBLE
        if never or watch.passed(limit, with_variable(f"SLURM_JOB_ID={number}")):
            state = NEVER_STARTED if found["JobState"] == "PENDING" else STILL_RUNNING
            return {**found, "JobState": state, "ExitCode": ""}
        time.sleep(POLL_SECONDS)
        found = _look(cluster, number)
    return found


def _status(exit_code: str) -> int | None:
    """``3:0`` is an exit status, ``0:9`` a signal; "" is that of no end."""
    code, _, signal = exit_code.partition(":")
    if not code:
        return None
    return int(code) or int(signal or 0)


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


def _through_rehearsal(cluster: Cluster, asked: Asked) -> End:
    """The same for PBS; the hosts let their users in by ssh, as often."""
    rehearsal = _OneJob(
        cluster,
        hosts=cluster.hosts[: asked.nodes],
        ngpus=asked.gpus,
        home=asked.folder.parent,
        delays=Delays().divided_by(FASTER),
        ssh=True,
    )
    rehearsal.number = asked.number
    with rehearsal as pbs:
        command = [*asked.options, str(asked.script)]
        try:
            job_id = pbs.qsub(*command, cwd=asked.folder, env=asked.env)
        except PbsError as error:
            return End.refused(error.status, str(error))
        job = pbs.job(job_id)
        in_time = _wait_for_rehearsal(pbs, job, asked.limit)
        state = "COMPLETED" if job.exit_status == 0 else "FAILED"
        if not in_time:
            state = STILL_RUNNING
            pbs.run("qdel", job_id)
        hosts = list(dict.fromkeys(job.hosts))
        return End(job_id, state, job.exit_status, job.output + job.error, hosts)


def _wait_for_rehearsal(pbs: Rehearsal, job: PbsJob, limit: float) -> bool:
    """Whether the job finishes within the limit."""
    watch = Stopwatch(every=LOOK_SECONDS)
    while job.state != "F":
        if watch.passed(limit, with_variable(f"PBS_JOBID={job.id}")):
            return False
        with contextlib.suppress(TimeoutError):
            pbs.wait(job.id, POLL_SECONDS)
    return True
