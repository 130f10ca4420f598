"""What a check of a job script asks for: submit it, and see what it started where.

A check that has an argument ``scheduler`` gets a :class:`Scheduler`::

    @pytest.mark.ranks(1, init=False, limit=60)
    def test_one_torchrun_per_node(exercise_path, scheduler, seed):
        nodes = 1 + seed
        job = scheduler.submit(exercise_path, nodes=nodes)
        expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that ran torchrun")

The script is submitted, as it stands, to a practice cluster that the grader keeps
for its lifetime; a ``.pbs`` script goes through the PBS rehearsal there. The folder
it is submitted from looks like a clone of the workshop (``clone.py``).
Where no practice cluster can run, the script is read through once by ``bash`` with
stand-ins for the scheduler's commands, too: ``scheduler.dry`` is true, nothing runs on
several nodes, and the verdict is at best "not fully checked", with what was not tried.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from workshop.cluster.jobs.clone import make_clone, record_tools, recorded
from workshop.cluster.jobs.job import Job, OpenTodo, Worker

OPEN = re.compile(r"^(TODO \d+ of \d+) is still open$", re.MULTILINE)


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
        self._untried: list[str] = []
        self._read_through = 0
        self.submitted = 0
        make_clone(folder, self.root, python)

    @property
    def dry(self) -> bool:
        """Whether scripts are only read through, not submitted."""
        return not self.state

    def not_checked(self, what: str) -> None:
        """In a dry run: tell the learner that ``what`` was not tried."""
        if self.dry:
            self._untried.append(what)

    @property
    def untried(self) -> list[str]:
        """What decides and could not be tried, for want of a practice cluster."""
        if self._read_through and not self._untried:
            return ["what a real scheduler makes of the script"]
        return self._untried

    @property
    def missing(self) -> list[str]:
        """What a practice cluster lacks here, with its cure."""
        return [self.why_dry] if self.dry else []

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
        failing_hosts: Sequence[str] = (),
        failing_first: bool = False,
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
                and end: for what a wrong script would wait for until it is killed.
            failing_hosts: with ``only_launch``, what is launched there fails.
            failing_first: it does so before the others end, and else after that.
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
        record = self._new_record(orders, only_launch, failing_hosts)
        if failing_first:
            (record / "failing_first").touch()
        self.submitted += 1
        record_tools(self.folder, script.suffix)
        if self.dry and not on_paper:
            self._read_through += 1
        if self.dry or on_paper:
            from workshop.cluster.jobs.on_paper import submit

            given = self._id_on_paper(script) | (env or {})
            ended = submit(self.folder, script, nodes, gpus, given, limit)
        else:
            from workshop.cluster.jobs.on_cluster import submit

            asked = options, nodes, gpus, env or {}, limit, self.submitted
            ended = submit(Path(self.state), self.folder, script, *asked)
        job = Job(*ended, *recorded(record))
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
        self.submitted += 2
        record_tools(self.folder, script.suffix)
        if self.dry:
            self._read_through += 2
            from workshop.cluster.jobs.on_paper import submit

            ended = [
                (number, *submit(self.folder, script, nodes, 0, env, limit)[1:])
                for number in ("48", "49")  # as on a new cluster
                for env in [{"SLURM_JOB_ID": number, "SLURM_JOBID": number}]
            ]
        else:
            from workshop.cluster.jobs.on_cluster import submit_together

            state = Path(self.state)
            ended = submit_together(state, self.folder, script, nodes, limit, times=2)
        launches, workers, _ = recorded(record)
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

    def _id_on_paper(self, script: Path) -> dict[str, str]:
        pbs = script.suffix == ".pbs"
        return {"PBS_JOBID": f"{4710 + self.submitted}.head"} if pbs else {}

    def _new_record(
        self, orders: dict, only_launch: bool, failing_hosts: Sequence[str] = ()
    ) -> Path:
        """An empty folder for what the programs of a job write down."""
        record = self.folder / "record"
        shutil.rmtree(record, ignore_errors=True)
        record.mkdir()
        (record / "orders.json").write_text(json.dumps(orders))
        if only_launch:
            (record / "only_launch").touch()
        for host in failing_hosts:
            (record / f"fails.{host}").touch()
        return record


def _job_of(worker: Worker) -> str:
    return worker.env.get("SLURM_JOB_ID", "")


def _refuse_open_todos(script: Path, job: Job) -> None:
    if open_todo := OPEN.search(job.output):
        lines = script.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            if open_todo[1] in line and "exit 64" in line:
                raise OpenTodo(open_todo[1], number)
