"""The jobs of a server: which there are, which may start, and where."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from pathlib import Path

from .jobs import NEVER_RAN, SERVER, Delays, Job, RunningJob
from .placement import Amount, fit, why_not
from .tasks import Closed, Tasks


class Scheduler:
    """First come, first served, on the hosts of ``capacity``.

    ``changed`` is held by what reads or changes the jobs.
    """

    tasks: Tasks  # set when the server begins

    def __init__(
        self,
        capacity: dict[str, Amount],
        home: Path,
        delays: Delays,
        user: dict[str, str],
    ):
        self.capacity, self.home, self.delays, self.user = capacity, home, delays, user
        self.hosts = list(capacity)
        self.gpus = any(amount.ngpus for amount in capacity.values())
        self.addresses: dict[str, str] = {}  # of each host, by its name
        self.lost: set[str] = set()  # hosts that have failed
        self.domain = ""  # what follows a host's name in the node file
        self.number_file: Path | None = None  # file with the number of the last job
        self.jobs: list[Job] = []
        self.threads: list[threading.Thread] = []
        self.changed = threading.Condition(threading.RLock())

    def job(self, job_id: str) -> Job:
        """The job of an id such as ``12.head``, ``12``, ``12[2].head`` or ``12[]``."""
        wanted = job_id.removesuffix(f".{SERVER}")
        with self.changed:
            for job in self.jobs:
                if wanted == job.id.removesuffix(f".{SERVER}"):
                    return job
        raise KeyError(job_id)

    def wait(self, job_id: str, timeout: float = 120, state: str = "F") -> Job:
        """The job, as soon as it has finished (or is in another ``state``).

        Raises:
            TimeoutError: it has not, within ``timeout`` seconds.
        """
        job = self.job(job_id)
        with self.changed:
            if not self.changed.wait_for(lambda: job.state == state, timeout):
                raise TimeoutError(f"job {job.id} is in state {job.state}")
        return job

    def expire(self, job_id: str) -> None:
        """Let the walltime of a running job be over now."""
        running = self.job(job_id).running
        if running is not None:
            running.end_by_walltime(running.job.request.walltime or 0)

    def rerun(self, job_id: str) -> None:
        """What an operator's qrerun does: end a running job, and start it again.

        Raises:
            ValueError: it does not run, or was submitted with -r n.
        """
        job = self.job(job_id)
        if job.running is None or job.state != "R" or not job.request.rerunnable:
            raise ValueError(f"job {job.id} cannot be run again")
        job.running.again = True

    def submit(self, job: Job) -> Job:
        with self.changed:
            self.jobs.append(job)
            if job.request.indices is not None:
                job.members = [
                    replace(job, index=index, members=[])
                    for index in job.request.indices
                ]
                self.jobs += job.members
            self.schedule()
        return job

    def take_number(self) -> int:
        """The number of a new job: one more than the last, also of earlier servers."""
        last = max((job.number for job in self.jobs), default=0)
        if self.number_file is None:
            return last + 1
        with contextlib.suppress(OSError, ValueError):
            last = max(last, int(self.number_file.read_text()))
        with contextlib.suppress(OSError):
            self.number_file.parent.mkdir(exist_ok=True)
            self.number_file.write_text(f"{last + 1}\n")
        return last + 1

    def schedule(self) -> None:
        """Start what can start, in the order of submission; ``changed`` is held."""
        for job in self.jobs:
            if job.state in "QH" and not job.members:
                self.consider(job)
        for job in self.jobs:
            if job.members and job.state != "F":
                self.look_at_members(job)
        self.changed.notify_all()

    def look_at_members(self, array: Job) -> None:
        """Queued until a member begins, finished when all are."""
        states = {member.state for member in array.members}
        array.state = "B"
        if states == {"Q"}:
            array.state = "Q"
        elif states == {"F"}:
            array.state = "F"
            failed = any(member.exit_status for member in array.members)
            array.exit_status = int(failed)

    def consider(self, job: Job) -> None:
        verdict = self.judge_dependencies(job)
        job.state = "H" if verdict == "wait" else "Q"
        if verdict == "delete":
            return self.delete(job, "Job deleted as result of dependency")
        chunks, place = job.request.chunks, job.request.place
        free = self.free()
        if job.request.whole:  # place=excl
            free = {h: left for h, left in free.items() if left == self.capacity[h]}
        hosts = fit(chunks, place, free) if verdict == "run" else []
        if hosts:
            job.hosts, job.state = hosts, "R"
            job.comment = "Job run"
            job.run_count += 1
            job.running = RunningJob(self, job)
            thread = threading.Thread(target=self.run_job, args=(job,), daemon=True)
            self.threads.append(thread)
            thread.start()
        elif verdict == "run":
            job.comment = why_not(chunks, place, self.capacity)

    def free(self) -> dict[str, Amount]:
        left = dict(self.capacity)
        for job in self.jobs:
            if job.state in "RE":
                for host, chunk in zip(job.hosts, job.request.chunks, strict=True):
                    whole = job.request.whole
                    left[host] -= self.capacity[host] if whole else chunk.amount
        return {host: amount for host, amount in left.items() if host not in self.lost}

    def run_job(self, job: Job) -> None:
        assert job.running is not None
        try:
            job.running.run()
        except Closed:
            job.comment = "the rehearsal is over"
            job.running.again = False
        except Exception as error:
            job.exit_status, job.comment = -1, f"the rehearsal failed: {error!r}"
            job.running.again = False
            raise
        finally:
            with self.changed:
                job.state = "Q" if job.running.again else "F"
                self.schedule()

    def judge_dependencies(self, job: Job) -> str:
        """Whether to "run" a job, to "wait", or to "delete" it."""
        verdict = "run"
        for kind, parents in job.request.depend:
            for name in parents:
                try:
                    parent = self.job(name)
                except KeyError:
                    return "delete"
                if parent.state != "F" or parent.comment == NEVER_RAN:
                    verdict = "wait"
                elif kind == ("afterok" if parent.exit_status else "afternotok"):
                    return "delete"
        return verdict

    def delete(self, job: Job, why: str = NEVER_RAN) -> None:
        """What qdel does; a job that runs ends by signals."""
        for member in job.members:
            self.delete(member)
        if job.running is not None and job.state == "R":
            job.running.terminate(self.delays.qdel_kill)
        elif job.state in "QH" and not job.members:
            job.state, job.comment = "F", why
            self.changed.notify_all()
