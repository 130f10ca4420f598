"""The server of the rehearsal: it takes commands, and runs jobs on hosts."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from .commands import COMMANDS, Call
from .jobs import NEVER_RAN, SERVER, Delays, Job, RunningJob
from .placement import Amount, fit, why_not
from .tasks import Closed, Tasks

COMMAND = Path(__file__).with_name("command.py")


class PbsError(Exception):
    """A command of the rehearsal failed; what it printed."""

    def __init__(self, done: subprocess.CompletedProcess[str]):
        super().__init__(done.stderr.strip() or f"exit status {done.returncode}")
        self.status = done.returncode


class Rehearsal:
    """A server and the hosts ``hosts`` of a cluster; use it in a ``with`` statement.

    Each host offers ``ncpus``, ``ngpus`` (0: the resource is unknown, as in OpenPBS as
    it comes) and ``mem_mb``, whatever the machine really has. ``home`` is the home of
    the user, in which jobs start. With ``ssh``, hosts can be reached by an `ssh` that
    runs commands as an sshd does.
    """

    def __init__(
        self,
        cluster,
        *,
        hosts: Iterable[str] | None = None,
        ncpus: int = 8,
        ngpus: int = 0,
        mem_mb: int = 16 * 1024,
        home: Path | None = None,
        delays: Delays | None = None,
        ssh: bool = False,
    ):
        self.cluster = cluster
        self.hosts = list(hosts or cluster.hosts)
        self.capacity = {host: Amount(ncpus, ngpus, mem_mb) for host in self.hosts}
        self.gpus = ngpus > 0
        self.home = home or Path.home()
        self.delays = delays or Delays()
        self.ssh = ssh
        self.jobs: list[Job] = []
        self.threads: list[threading.Thread] = []
        self.changed = threading.Condition(threading.RLock())
        name = getpass.getuser()
        self.user = {
            "HOME": str(self.home),
            "LOGNAME": name,
            "USER": name,
            "SHELL": "/bin/bash",
        }

    # Begin and end

    def __enter__(self) -> Rehearsal:
        self.state = Path(tempfile.mkdtemp(prefix="pbs.", dir="/tmp"))
        self.socket_path = self.state / "socket"
        self.tasks = Tasks(self.cluster, self.socket_path, self.state)
        self.write_commands()
        self.addresses = self.find_addresses()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket_path))
        self.listener.listen(64)
        self.closing, self.wake = os.pipe()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_error) -> None:
        with self.changed:
            for job in self.jobs:
                if job.state in "QH":
                    self.delete(job)
        os.close(self.wake)
        self.thread.join()
        os.close(self.closing)
        self.listener.close()
        self.tasks.kill_all()
        for thread in self.threads:
            thread.join(10)
        shutil.rmtree(self.state, ignore_errors=True)

    def find_addresses(self) -> dict[str, str]:
        """The address of each host, by its name."""
        done = self.cluster.run(["getent", "hosts", *self.hosts])
        found = [line.split() for line in done.stdout.splitlines()]
        return {name: address for address, *names in found for name in names}

    def write_commands(self) -> None:
        """A folder for PATH, and the /etc/profile that puts it there."""
        names = [name for name in COMMANDS if name != "ssh"]
        profile = Path("/etc/profile").read_text()
        profile += f"\nPATH=$PATH:{self.write_folder('bin', names)}\n"
        if self.ssh:  # before the real one, which finds no sshd here
            profile += f"PATH={self.write_folder('ssh', ['ssh'])}:$PATH\n"
        (self.state / "profile").write_text(profile)

    def write_folder(self, folder: str, names: list[str]) -> Path:
        place = self.state / folder
        place.mkdir()
        start = shlex.join(
            [sys.executable, "-I", "-S", str(COMMAND), str(self.socket_path)]
        )
        for name in names:
            (place / name).write_text(f'#!/bin/sh\nexec {start} {name} "$@"\n')
            (place / name).chmod(0o755)
        return place

    # What tests call

    def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        timeout: float | None = 60,
    ) -> subprocess.CompletedProcess[str]:
        """A command as the user types it on the login host."""
        command = [*self.clean_environment(env or {}), *argv]
        return self.cluster.run(command, cwd=cwd or Path.cwd(), timeout=timeout)

    def clean_environment(self, more: dict[str, str]) -> list[str]:
        """The start of a command line: only what a fresh login has, and ``more``."""
        found = self.user | {"PATH": f"{self.state}/bin:/usr/bin:/bin"} | more
        return ["env", "-i", *(f"{name}={value}" for name, value in found.items())]

    def shell(self, command: list[str]) -> int:
        """Run a command on the login host, in this terminal; its exit status."""
        more = {"TERM": os.environ.get("TERM", "dumb")}
        start = self.clean_environment(more)
        return self.cluster.popen([*start, *command], cwd=Path.cwd()).wait()

    def qsub(self, *argv: str, cwd: Path | None = None, env=None) -> str:
        """The id of the new job.

        Raises:
            PbsError: the job was refused.
        """
        done = self.run("qsub", *argv, cwd=cwd, env=env)
        if done.returncode:
            raise PbsError(done)
        return done.stdout.strip()

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

    # Jobs

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

    @property
    def next_number(self) -> int:
        return max((job.number for job in self.jobs), default=0) + 1

    def schedule(self) -> None:
        """Start what can start, in the order of submission; ``changed`` is held."""
        for job in self.jobs:
            if job.state in "QH" and not job.members:
                self.consider(job)
        for array in (job for job in self.jobs if job.members and job.state != "F"):
            states = {member.state for member in array.members}
            array.state = "F" if states == {"F"} else "Q" if states == {"Q"} else "B"
            if array.state == "F":
                statuses = [member.exit_status for member in array.members]
                array.exit_status = 0 if not any(statuses) else 1
        self.changed.notify_all()

    def consider(self, job: Job) -> None:
        verdict = self.judge_dependencies(job)
        job.state = "H" if verdict == "wait" else "Q"
        if verdict == "delete":
            return self.delete(job, "Job deleted as result of dependency")
        chunks, place = job.request.chunks, job.request.place
        if verdict == "run" and (hosts := fit(chunks, place, self.free())):
            job.hosts, job.state = hosts, "R"
            job.comment = "Job run"
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
                    left[host] -= chunk.amount
        return left

    def run_job(self, job: Job) -> None:
        assert job.running is not None
        try:
            job.running.run()
        except Closed:
            job.comment = "the rehearsal is over"
        except Exception as error:
            job.exit_status, job.comment = -1, f"the rehearsal failed: {error!r}"
            raise
        finally:
            with self.changed:
                job.state = "F"
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

    # Commands

    def serve(self) -> None:
        """Take connections until the end, each in a thread of its own."""
        while (
            self.closing not in select.select([self.listener, self.closing], [], [])[0]
        ):
            connection, _ = self.listener.accept()
            threading.Thread(
                target=self.answer, args=(connection,), daemon=True
            ).start()

    def answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            request, descriptors = receive(connection)
            if "task" in request:
                self.tasks.hand_over(int(request["task"]), connection)
            elif "command" in request:  # else it was killed before it could ask
                Call(self, connection, request, descriptors).answer()
            for descriptor in descriptors:
                os.close(descriptor)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A line of JSON, and the file descriptors that came with it."""
    text, descriptors = b"", []
    while not text.endswith(b"\n"):
        part, more, _, _ = socket.recv_fds(connection, 2**16, 3)
        if not part:
            return {}, descriptors
        text += part
        descriptors += more
    return json.loads(text.splitlines()[0]), descriptors
