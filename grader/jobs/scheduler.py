"""What a check of a job script asks for: submit it, and see what it started where.

A check that has an argument ``scheduler`` gets a :class:`Scheduler`::

    @pytest.mark.ranks(1, init=False, limit=60)
    def test_one_torchrun_per_node(exercise_path, scheduler, seed):
        nodes = 1 + seed
        job = scheduler.submit(exercise_path, nodes=nodes)
        expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that ran torchrun")

The script is submitted, as it stands, to a practice cluster that the grader keeps
for its lifetime; a ``.pbs`` script goes through the PBS rehearsal there. The folder
it is submitted from looks like a clone of the workshop: ``job_scripts`` is the real
one, ``src`` holds stand-ins of the training scripts (:mod:`grader.jobs.stand_in`),
``.venv`` holds programs that write down how they were called and then are what they
stand for. Where no practice cluster can run, the script is read through once by
``bash`` with stand-ins for the scheduler's commands, too: ``scheduler.dry`` is true,
nothing runs on several nodes, and what was not checked is said.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

from grader.engine.forkserver import OF_THE_RANKS

RECORDED = ("torchrun", "python", "python3", "mpirun", "mpiexec")
STILL_RUNNING = "STILL RUNNING"
# what the rank that runs a check has in its environment, and a user's shell has not
OF_THE_CHECK = re.compile(
    r"(LOCAL_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$|" + "|".join(OF_THE_RANKS)
)
OPEN = re.compile(r"^(TODO \d+ of \d+) is still open$", re.MULTILINE)


class OpenTodo(NotImplementedError):
    """The script stopped at a hole that is not filled yet."""

    def __init__(self, todo: str, line: int):
        super().__init__(todo)
        self.line_of_script = line  # from 1


@dataclass(frozen=True)
class Launch:
    """A program that the job started, as it was called, before it did anything."""

    program: str
    host: str
    args: tuple[str, ...]
    cwd: str
    job: str = ""  # the number that the scheduler gave

    def option(self, *names: str) -> str | None:
        """The value of ``--name VALUE`` or ``--name=VALUE``; ``_`` counts as ``-``."""
        wanted = {name.replace("_", "-") for name in names}
        for index, argument in enumerate(self.args):
            name, equals, value = argument.partition("=")
            if name.replace("_", "-") in wanted:
                following = self.args[index + 1 : index + 2]
                return value if equals else (following or ("",))[0]
        return None


@dataclass(frozen=True)
class Worker:
    """One process of the training script, with what its launcher told it.

    ``finished``: it came to the end of its work, nobody ended it before.
    """

    program: str
    host: str
    rank: int
    args: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    finished: bool = True


@dataclass(frozen=True)
class Job:
    """What became of a submitted script.

    Attributes:
        state: COMPLETED, FAILED, TIMEOUT, CANCELLED, NODE_FAIL, REFUSED, or STILL
            RUNNING if it had not ended within the limit (it is cancelled then).
        exit_code: of the script; None while it runs.
        output: what it printed, standard error included.
        nodes: the hosts it was given, in order.
    """

    id: str
    state: str
    exit_code: int | None
    output: str
    nodes: list[str]
    launches: list[Launch]
    workers: list[Worker]

    def started(self, program: str) -> list[Launch]:
        """The launches of one program, in the order of their hosts."""
        return [launch for launch in self.launches if launch.program == program]

    def hosts(self, program: str) -> list[str]:
        """The hosts that started it, sorted, one entry for each launch."""
        return sorted(launch.host for launch in self.started(program))

    @property
    def ending(self) -> str:
        """One sentence: how it ended and what it said last, for messages."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        said = " / ".join(lines[-2:])[-110:] or "nothing"
        if self.state == STILL_RUNNING:
            return f"the job did not end; its last words: {said}"
        return f"the job ended as {self.state} ({self.exit_code}); last words: {said}"


class Scheduler:
    """Submits scripts for a check; see the module's text.

    Args:
        folder: of the check; becomes the folder that scripts are submitted from.
        root: the workshop's folder.
        python: what programs of a job called python or torchrun are run by.
        state: folder of the practice cluster's state, "" for a dry run.
        why_dry: what is missing for a practice cluster.
    """

    def __init__(
        self,
        folder: Path,
        root: str,
        python: str = sys.executable,
        state: str = "",
        why_dry: str = "",
    ):
        self.folder, self.root = folder, Path(root)
        self.state, self.why_dry = state, why_dry
        self.notes: list[str] = []
        _make_clone(folder, self.root, python)

    @property
    def dry(self) -> bool:
        """Whether scripts are only read through, not submitted."""
        return not self.state

    def not_checked(self, what: str) -> None:
        """In a dry run: tell the learner that ``what`` was not checked."""
        if self.dry:
            self.notes.append(f"not checked, {self.why_dry}: {what}")

    def submit(
        self,
        script: Path,
        *options: str,
        nodes: int = 2,
        gpus: int = 0,
        limit: float = 30.0,
        failing_rank: int | None = None,
        failing_status: int = 3,
        work_seconds: float = 0.0,
        working_rank: int | None = None,
        only_launch: bool = False,
        on_paper: bool = False,
        env: dict[str, str] | None = None,
    ) -> Job:
        """Submit ``script`` to ``nodes`` nodes and wait for its end.

        Args:
            options: more options for ``sbatch`` or ``qsub``.
            gpus: per node; 0 asks for none.
            limit: seconds until a job that has not ended is cancelled.
            failing_rank: this rank of the training ends with ``failing_status``; the
                others begin to work when it has.
            work_seconds: how long each rank of the training works.
            working_rank: only this one works so long, the others are done at once.
            only_launch: torchrun, mpirun and python write down how they were called
                and end: for what a wrong script would wait for in vain.
            on_paper: only read the script through, as where no cluster can run; then
                ``env`` may set what the scheduler else sets, such as SLURM_JOB_ID.
            env: variables of the shell that submits.

        Raises:
            OpenTodo: the script stopped at a hole.
        """
        orders = {
            "failing_rank": failing_rank,
            "failing_status": failing_status,
            "work_seconds": work_seconds,
            "working_rank": working_rank,
        }
        record = self._new_record(orders, only_launch)
        if self.dry or on_paper:
            from grader.jobs.on_paper import submit

            ended = submit(self.folder, script, nodes, gpus, env or {}, limit)
        else:
            from grader.jobs.on_cluster import submit

            state = Path(self.state)
            ended = submit(
                state, self.folder, script, options, nodes, gpus, env or {}, limit
            )
        job = Job(*ended, *_recorded(record))
        _refuse_open_todos(script, job)
        return job

    def submit_twice(
        self,
        script: Path,
        *,
        nodes: int = 2,
        limit: float = 30.0,
        work_seconds: float = 0.0,
        only_launch: bool = False,
    ) -> tuple[Job, Job]:
        """Submit a ``.sbatch`` script two times, to the same nodes at the same time.

        Raises:
            OpenTodo: the script stopped at a hole.
        """
        record = self._new_record({"work_seconds": work_seconds}, only_launch)
        if self.dry:
            from grader.jobs.on_paper import submit

            ended = [
                (number, *submit(self.folder, script, nodes, 0, env, limit)[1:])
                for number in ("4711", "4712")
                for env in [{"SLURM_JOB_ID": number, "SLURM_JOBID": number}]
            ]
        else:
            from grader.jobs.on_cluster import submit_together

            state = Path(self.state)
            ended = submit_together(state, self.folder, script, nodes, limit, times=2)
        launches, workers = _recorded(record)
        one, other = (
            Job(
                *end,
                [launch for launch in launches if launch.job == end[0]],
                [worker for worker in workers if _job_of(worker) == end[0]],
            )
            for end in ended
        )
        _refuse_open_todos(script, one)
        return one, other

    def _new_record(self, orders: dict, only_launch: bool) -> Path:
        """An empty folder for what the programs of a job write down."""
        record = self.folder / "record"
        shutil.rmtree(record, ignore_errors=True)
        record.mkdir()
        (record / "orders.json").write_text(json.dumps(orders))
        if only_launch:
            (record / "only_launch").touch()
        return record


def _job_of(worker: Worker) -> str:
    return worker.env.get("SLURM_JOB_ID", "")


def _make_clone(folder: Path, root: Path, python: str) -> None:
    """What a script finds in the folder it is submitted from."""
    shutil.copytree(root / "job_scripts", folder / "job_scripts", dirs_exist_ok=True)
    (folder / "job_scripts" / "site.sh").unlink(missing_ok=True)  # the learner's own
    (folder / "src").mkdir()
    stand_in = Path(__file__).with_name("stand_in.py")
    for script in (root / "src").glob("*.py"):
        shutil.copy(stand_in, folder / "src" / script.name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in RECORDED:
        write_program(programs / name, _recorder(folder, name, python))
    (programs / "activate").write_text(f'export PATH="{programs}:$PATH"\n')


def _recorder(folder: Path, name: str, python: str) -> str:
    """A shell script that writes down how it was called, then is ``name``."""
    if name == "torchrun":
        real = f'exec "{python}" -m torch.distributed.run "$@"'
    elif name.startswith("python"):
        real = f'exec "{python}" "$@"'
    else:
        real = (
            f'PATH="${{PATH//"{folder}/.venv/bin:"/}}"\n'
            f'exec {name} "$@"'  # the machine's own
        )
    return f"""#!/bin/bash
host=${{PAPER_HOST:-$(hostname)}}
file="{folder}/record/launch.{name}.$host.$$"
printf '%s\\0' "${{SLURM_JOB_ID:-$PBS_JOBID}}" "$host" "$PWD" "$@" > "$file.new"
mv "$file.new" "$file"
if [[ -e "{folder}/record/only_launch" && "$1" != -c ]]; then exit 0; fi
{real}
"""


def write_program(path: Path, text: str) -> None:
    """Write a script that everybody may run."""
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _recorded(record: Path) -> tuple[list[Launch], list[Worker]]:
    launches, workers = [], []
    for path in sorted(record.iterdir()):
        if path.suffix in (".new", ".finished"):
            continue
        if path.name.startswith("launch."):
            job, host, cwd, *args = path.read_text(errors="replace").split("\0")[:-1]
            program, host = path.name.split(".")[1], host.split(".")[0]
            launches.append(Launch(program, host, tuple(args), cwd, job))
        elif path.name.startswith("worker."):
            found = json.loads(path.read_text())
            workers.append(
                Worker(
                    found["program"],
                    found["host"],
                    found["rank"],
                    tuple(found["args"]),
                    found["env"],
                    Path(f"{path}.finished").exists(),
                )
            )
    workers.sort(key=lambda worker: worker.rank)
    return launches, workers


def _refuse_open_todos(script: Path, job: Job) -> None:
    if open_todo := OPEN.search(job.output):
        lines = script.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            if open_todo[1] in line and "exit 64" in line:
                raise OpenTodo(open_todo[1], number)
