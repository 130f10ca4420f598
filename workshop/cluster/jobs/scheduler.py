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

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from workshop.cluster.jobs.clone import make_clone, record_tools, recorded
from workshop.cluster.jobs.job import Asked, End, Job, OpenTodo
from workshop.cluster.jobs.stand_in import Orders

OPEN = re.compile(r"^(TODO \d+ of \d+) is still open$", re.MULTILINE)
LAST_ON_PAPER = 4710  # the number of the PBS job before the first one of a dry run
FIRST_OF_SLURM = ("48", "49")  # jobs of a dry run, as on a new cluster


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
        orders = Orders(failing_rank, failing_status, work_seconds, working_rank)
        record = self._new_record(orders, only_launch, failing_hosts, failing_first)
        self.submitted += 1
        asked = Asked(
            folder=self.folder,
            script=script,
            nodes=nodes,
            limit=limit,
            gpus=gpus,
            options=options,
            env=env or {},
            number=self.submitted,
        )
        record_tools(self.folder, script.suffix)
        if self.dry and not on_paper:
            self._read_through += 1
        if self.dry or on_paper:
            ended = self._submit_on_paper(asked)
        else:
            ended = self._submit_on_cluster(asked)
        job = Job(**vars(ended), **vars(recorded(record)))
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
        record = self._new_record(Orders(work_seconds=work_seconds), only_launch)
        self.submitted += 2
        asked = Asked(self.folder, script, nodes, limit)
        record_tools(self.folder, script.suffix)
        if self.dry:
            self._read_through += 2
            ends = self._submit_twice_on_paper(asked)
        else:
            from workshop.cluster.jobs.on_cluster import submit_together

            ends = submit_together(Path(self.state), asked, times=2)
        both = recorded(record)
        one, other = (Job(**vars(end), **vars(both.of_job(end.id))) for end in ends)
        _refuse_open_todos(script, one)
        return one, other

    # Imported where they are used: the server of the grader needs neither, and
    # what it imports every rank has.

    def _submit_on_cluster(self, asked: Asked) -> End:
        from workshop.cluster.jobs.on_cluster import submit

        return submit(Path(self.state), asked)

    def _submit_on_paper(self, asked: Asked) -> End:
        from workshop.cluster.jobs.on_paper import submit

        given = {}
        if asked.script.suffix == ".pbs":
            given["PBS_JOBID"] = f"{LAST_ON_PAPER + asked.number}.head"
        return submit(replace(asked, env=given | asked.env))

    def _submit_twice_on_paper(self, asked: Asked) -> list[End]:
        ends = []
        for number in FIRST_OF_SLURM:
            env = {"SLURM_JOB_ID": number, "SLURM_JOBID": number}
            end = self._submit_on_paper(replace(asked, env=env))
            ends.append(replace(end, id=number))
        return ends

    def _new_record(
        self,
        orders: Orders,
        only_launch: bool,
        failing_hosts: Sequence[str] = (),
        failing_first: bool = False,
    ) -> Path:
        """An empty folder for what the programs of a job write down."""
        record = self.folder / "record"
        shutil.rmtree(record, ignore_errors=True)
        record.mkdir()
        orders.write(record)
        # the rest is for programs of bash: they ask whether a file is there
        if only_launch:
            (record / "only_launch").touch()
        if failing_first:
            (record / "failing_first").touch()
        for host in failing_hosts:
            (record / f"fails.{host}").touch()
        return record


def _refuse_open_todos(script: Path, job: Job) -> None:
    if open_todo := OPEN.search(job.output):
        lines = script.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            if open_todo[1] in line and "exit 64" in line:
                raise OpenTodo(open_todo[1], number)
