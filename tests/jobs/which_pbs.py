"""Which PBS the tests submit to: the rehearsal, or the one of this cluster.

    WORKSHOP_PBS=real pytest tests/jobs -k pbs

takes ``qsub`` from PATH and hosts from ``pbsnodes``. Files of the tests then lie in the
workshop's folder, which all hosts must see. Submit nothing else meanwhile: the tests
count on the next job's number.
"""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.needs import needs as needs_here
from tests.needs import skip_without
from workshop.cluster.pbs import PbsError, Rehearsal

REAL = os.environ.get("WORKSHOP_PBS") == "real"
POLL = 0.3  # seconds between two looks at a job


def why_not() -> str:
    """Why the PBS of this cluster cannot be used; empty if it can."""
    absent = [name for name in ("qsub", "qstat", "pbsnodes") if not shutil.which(name)]
    if absent:
        return f"WORKSHOP_PBS=real, but no {', '.join(absent)} on PATH"
    free = len(RealPbs().hosts)
    return "" if free >= 2 else f"WORKSHOP_PBS=real, but pbsnodes has {free} free hosts"


def needs(*programs: str) -> pytest.MarkDecorator:
    """tests.needs.needs(), but the hosts of a real PBS have programs of their own."""
    return needs_here(*(() if REAL else programs))


class Played(Rehearsal):
    """The rehearsal, and what tests look at beside it."""

    real = False

    def processes(self, host: str) -> str:
        """The commands that run on a host."""
        skip_without("ps")
        return self.cluster.run(["ps", "-eo", "args"], node=host).stdout


class RealJob(NamedTuple):
    """What ``qstat -xf`` says of a job, and what it printed, once it has finished."""

    id: str
    state: str
    exit_status: int | None
    hosts: list[str]  # of each chunk
    comment: str
    output: str = ""
    error: str = ""

    @property
    def distinct_hosts(self) -> list[str]:
        return list(dict.fromkeys(self.hosts))


class RealPbs:
    """The PBS on PATH, used as the tests use a :class:`Rehearsal`."""

    real = True
    home = Path.home()

    def __init__(self) -> None:
        text = self.run("pbsnodes", "-a").stdout
        nodes = dict(re.findall(r"(?m)^(\S+)\n((?:[ \t]+.*\n)*)", text + "\n"))
        free = [name for name, facts in nodes.items() if "state = free\n" in facts]
        self.hosts = sorted(free)
        self.gpus = "resources_available.ngpus" in text

    def __enter__(self) -> "RealPbs":
        return self

    def __exit__(self, *error) -> None:
        pass

    def run(self, *argv: str, cwd: Path | None = None, **options):
        """A command of a user; variables of the test run do not reach it."""
        foreign = re.compile("PBS_|PYTEST_|RANK$|WORLD_SIZE|MASTER_|SLURM|VIRTUAL_ENV")
        env = {k: v for k, v in os.environ.items() if not foreign.match(k)}
        return subprocess.run(
            argv, cwd=cwd, env=env, capture_output=True, text=True, **options
        )

    def qsub(self, *argv: str, cwd: Path | None = None) -> str:
        done = self.run("qsub", *argv, cwd=cwd)
        if done.returncode:
            raise PbsError(done)
        return done.stdout.strip()

    def job(self, job_id: str) -> RealJob:
        """
        Raises:
            KeyError: no such job.
        """
        done = self.run("qstat", "-xf", job_id)
        if done.returncode:
            raise KeyError(job_id)
        text = done.stdout.replace("\n\t", "")
        fact = dict(re.findall(r"(?m)^    (\w+) = (.*)$", text))
        status = fact.get("Exit_status")
        job = RealJob(
            id=text.split("\n")[0].removeprefix("Job Id: "),
            state=fact["job_state"],
            exit_status=None if status is None else int(status),
            hosts=re.findall(r"(?:^|\+)([^/+]+)/", fact.get("exec_host", "")),
            comment=fact.get("comment", ""),
        )
        return job if job.state != "F" else job._replace(**self.printed(fact))

    def printed(self, fact: dict[str, str]) -> dict[str, str]:
        """The output, for which a moment is waited: it comes after the end."""
        names = {"output": "Output_Path", "error": "Error_Path"}
        if fact.get("Join_Path") == "oe":
            del names["error"]
        index = fact.get("array_index", "")
        places = {k: fact.get(n, "").split(":", 1)[-1] for k, n in names.items()}
        paths = {k: Path(p.replace("^array_index^", index)) for k, p in places.items()}
        end = time.monotonic() + 10
        while fact.get("exec_host") and time.monotonic() < end:
            if all(path.exists() for path in paths.values()):
                break
            time.sleep(POLL)
        return {k: p.read_text() for k, p in paths.items() if p.is_file()}

    def wait(self, job_id: str, timeout: float = 120, state: str = "F") -> RealJob:
        """
        Raises:
            TimeoutError: it was in another state for ``timeout`` seconds.
        """
        end = time.monotonic() + timeout
        while (job := self.job(job_id)).state != state:
            if time.monotonic() > end:
                self.run("qdel", job_id)
                raise TimeoutError(f"job {job.id} is {job.state}: {job.comment}")
            time.sleep(POLL)
        return job

    def expire(self, job_id: str) -> None:
        """Let the walltime of a running job be over soon."""
        self.run("qalter", "-l", "walltime=00:00:01", job_id, check=True)

    def processes(self, host: str) -> str:
        script = Path.cwd() / ".workshop" / "processes.pbs"
        script.parent.mkdir(exist_ok=True)
        script.write_text("#PBS -j oe\nps -eo args\n")
        where = f"select=1:ncpus=1:host={host}"
        return self.wait(self.qsub("-l", where, str(script), cwd=script.parent)).output
