"""A job script: what is asked for it, how it ended, what it launched, its workers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from workshop.system.environment import OF_THE_RANKS

STILL_RUNNING, NEVER_STARTED = "STILL RUNNING", "NEVER STARTED"
# what the rank that runs a check has in its environment, and a user's shell has not
OF_THE_CHECK = re.compile(
    r"(LOCAL_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$|" + "|".join(OF_THE_RANKS)
)

# its warning about OMP_NUM_THREADS, between two lines of asterisks
OF_EVERY_TORCHRUN = re.compile(r"Setting OMP_NUM_THREADS|\*{9}$")

# what srun says of tasks that ended, after what they said themselves
OF_EVERY_SRUN = re.compile(
    r"(srun|slurmstepd).*(: tasks? \d|_step_signal|Force Terminated|\*\*\* STEP)"
)


class OpenTodo(NotImplementedError):
    """The script stopped at a hole that is not filled yet."""

    def __init__(self, todo: str, line: int):
        super().__init__(todo)
        self.line_of_script = line  # from 1


@dataclass(frozen=True)
class Asked:
    """One submission of a script, to Slurm, to PBS or on paper."""

    folder: Path  # it is submitted from there
    script: Path
    nodes: int
    limit: float  # seconds until a job that has not ended is cancelled
    gpus: int = 0  # per node; 0 asks for none
    options: tuple[str, ...] = ()  # more of them, for sbatch or qsub
    env: dict[str, str] = field(default_factory=dict)  # of the shell that submits
    number: int = 1  # of the job with PBS: each job of a check has another


@dataclass(frozen=True)
class Launch:
    """A program that the job started, as it was called, before it did anything."""

    program: str
    host: str
    args: tuple[str, ...]
    cwd: str
    job: str = ""  # the number that the scheduler gave

    def option(self, *names: str) -> str | None:
        """The value of ``--name VALUE`` or ``--name=VALUE``; ``_`` counts as ``-``.

        Of torchrun's options also that of ``PET_NAME`` in its environment.
        """
        wanted = {name.replace("_", "-") for name in names}
        for index, argument in enumerate(self.args):
            name, equals, value = argument.partition("=")
            if name.replace("_", "-") in wanted:
                following = self.args[index + 1 : index + 2]
                return value if equals else (following or ("",))[0]
        return None

    @property
    def nodes(self) -> str | None:
        """What ``--nnodes`` says: 3:3, from 3 to 3, is 3."""
        told = self.option("--nnodes")
        fewest, _, most = (told or "").partition(":")
        return fewest if told and fewest == most else told


@dataclass(frozen=True)
class Worker:
    """One process of the training script, with what its launcher told it.

    ``finished``: it reached the end of its work and was not ended before.
    """

    program: str
    host: str
    rank: int
    args: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    finished: bool = True

    @property
    def job(self) -> str:
        """The number that Slurm gave, or ""."""
        return self.env.get("SLURM_JOB_ID", "")


@dataclass(frozen=True)
class Record:
    """What the programs of a job have written down.

    Attributes:
        tools: how the scheduler's own commands were called, such as srun.
    """

    launches: list[Launch]
    workers: list[Worker]
    tools: list[Launch] = field(default_factory=list)

    def of_job(self, number: str) -> Record:
        """The launches and the workers of one of several Slurm jobs."""
        return Record(
            [launch for launch in self.launches if launch.job == number],
            [worker for worker in self.workers if worker.job == number],
        )


@dataclass(frozen=True)
class End:
    """How a submitted script ended.

    Attributes:
        state: COMPLETED, FAILED, TIMEOUT, CANCELLED, NODE_FAIL, REFUSED, or STILL
            RUNNING if it had not ended within the limit, NEVER STARTED if no nodes
            were free until then, or none will be (it is cancelled then).
        exit_code: of the script; None while it runs.
        output: what it printed, standard error included.
        nodes: the hosts it was given, in order.
    """

    id: str
    state: str
    exit_code: int | None
    output: str
    nodes: list[str]

    @classmethod
    def refused(cls, status: int, said: str) -> End:
        """The scheduler took no job, and its command ended with ``status``."""
        return cls("", "REFUSED", status, said, [])


@dataclass(frozen=True)
class Job(Record, End):
    """What became of a submitted script: its end, and its record."""

    def started(self, program: str) -> list[Launch]:
        """The launches of one program, in the order of their hosts."""
        calls = (*self.launches, *self.tools)
        return [launch for launch in calls if launch.program == program]

    def hosts(self, program: str) -> list[str]:
        """The hosts that started it, sorted, one entry for each launch."""
        return sorted(launch.host for launch in self.started(program))

    @property
    def complaint(self) -> str:
        """What a shell did not find or a command not know, else how the job ended."""
        words = "No such file", "not found", "too great", "syntax error"
        words += "unrecognized", "invalid option", "unknown option"
        lines = [line.strip() for line in self.output.splitlines()]
        found = (line for line in lines if any(word in line for word in words))
        return next(found, "")[-110:] or self.ending

    @property
    def ending(self) -> str:
        """One sentence: how it ended and what it said last, for messages."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        lines = [line for line in lines if not OF_EVERY_TORCHRUN.search(line)]
        lines = [line for line in lines if not OF_EVERY_SRUN.match(line)] or lines
        said = " / ".join(lines[-2:])[-110:] or "nothing"
        if self.state == NEVER_STARTED:
            return f"the job waited for nodes and never started: {said}"
        if self._waiting and "RendezvousTimeout" in self.output:
            return f"the job ended as {self.state} ({self.exit_code}){self._waiting}"
        if self.state == STILL_RUNNING:
            return f"the job did not end{self._waiting or f'; its last output: {said}'}"
        return f"the job ended as {self.state} ({self.exit_code}); last output: {said}"

    @property
    def _waiting(self) -> str:
        """For what torchrun waits if it was started on some of the nodes only."""
        started = sorted(set(self.hosts("torchrun")))
        nodes = [node.split(".")[0] for node in self.nodes]
        if not started or set(started) == set(nodes):
            return ""
        return (
            f": torchrun was started on {', '.join(started)} only, and waits for "
            f"{', '.join(nodes)}: start all before you wait for one"
        )
