"""What happens to a job: it waits, runs, ends, and leaves its output."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .output import Output
from .request import Request
from .tasks import Demux, Task, Tasks, session_members, signal_session

SERVER = "head"
OVER_WALLTIME = -29
LOST_A_HOST = -14
NEVER_RAN = "deleted before it ran"
LOOK = 0.05  # seconds between two looks at the processes of a job
HOSTS_TASKS = 0x40000000  # the second host's tasks are numbered from here


@dataclass(frozen=True)
class Delays:
    """Seconds, as they were seen; a test divides them by a factor."""

    qdel_kill: float = 20  # from SIGTERM to SIGKILL after qdel
    walltime_kill: float = 10  # the same after the walltime
    walltime_notice: float = 10  # the walltime is noticed that much late
    other_hosts: float = 2  # from a job's end on its first host to that on the others
    output: float = 0.1  # from a job's end to its output in place
    rerun: float = 3  # from qrerun to the second start
    host_lost: float = 400  # a host that fails is noticed that much later

    def divided_by(self, factor: float) -> Delays:
        return Delays(*(seconds / factor for seconds in vars(self).values()))


@dataclass
class Job:
    """One job, one member of an array (``index``), or an array (``members``)."""

    number: int
    request: Request
    submitted_from: Path
    submitter: dict[str, str]  # the environment of qsub
    domain: str = ""  # of the hosts in the node file, such as ".hpc.test"
    index: int | None = None
    members: list[Job] = field(default_factory=list)
    # Q queued, H held, R running, E exiting, B array begun, F finished
    state: str = "Q"
    hosts: list[str] = field(default_factory=list)  # of each chunk
    exit_status: int | None = None
    comment: str = ""
    output: str = ""  # what it printed, once it has finished
    error: str = ""
    run_count: int = 0
    has_ended: bool = False  # its exit status is known, its output may not be there
    earlier: tuple[str, str] = ("", "")  # what it printed before a qrerun
    output_path: Path | None = None
    error_path: Path | None = None
    running: RunningJob | None = None

    @property
    def id(self) -> str:
        index = "[]" if self.members else ""
        if self.index is not None:
            index = f"[{self.index}]"
        return f"{self.number}{index}.{SERVER}"

    @property
    def distinct_hosts(self) -> list[str]:
        return list(dict.fromkeys(self.hosts))

    @property
    def nodefile(self) -> str:
        """A line for each of a chunk's mpiprocs; lines of one host stay together."""
        lines = [
            host
            for wanted in self.distinct_hosts
            for host, chunk in zip(self.hosts, self.request.chunks, strict=True)
            if host == wanted
            for _ in range(chunk.mpiprocs)
        ]
        return "".join(f"{line}{self.domain}\n" for line in lines)


class Server(Protocol):
    """What a running job needs of the one that started it."""

    tasks: Tasks
    delays: Delays
    home: Path
    user: dict[str, str]
    lost: set[str]  # hosts that have failed
    changed: threading.Condition


class RunningJob:
    """A job from its start on the first host to the copies of its output."""

    def __init__(self, pbs: Server, job: Job):
        self.pbs, self.job = pbs, job
        self.demux = Demux()
        self.tasks: list[Task] = []  # of pbsdsh and pbs_tmrsh
        self.attached: list[int] = []  # sessions that pbs_attach brought in
        self.kill_at: float | None = None  # set as soon as the job is told to end
        self.over_walltime = False
        self.again = False  # it is to run again
        self.lost_at: float | None = None  # when one of its hosts failed
        self.lock = threading.Lock()
        self.shell: Task | None = None
        self.first = job.distinct_hosts[0]
        self.output = Output(job, pbs.tasks.folder(self.first), pbs.home)
        self.files = self.output.files
        self.base = self.make_environment()

    # Start

    def run(self) -> None:
        """Everything, in a thread of its own."""
        self.prepare_hosts()
        started = time.monotonic()
        self.shell = shell = self.start_shell()
        status = self.watch(shell, started)
        with self.pbs.changed:
            self.job.state = "E"
        self.remove_tasks(shell)
        self.demux.finish()
        if self.again:
            self.prepare_rerun()
        else:
            self.end(status)
        for host in self.job.distinct_hosts:
            shutil.rmtree(self.pbs.tasks.folder(host) / "tmp" / self.folder_name)

    def prepare_rerun(self) -> None:
        """The output of a qrerun is kept; that of a job which lost a host is not."""
        if self.lost_at is not None:
            return self.output.discard()
        self.job.earlier = self.output.read()
        return time.sleep(self.pbs.delays.rerun)

    def end(self, status: int) -> None:
        """First the exit status, then the output."""
        with self.pbs.changed:
            self.job.exit_status, self.job.has_ended = self.judge(status), True
            self.pbs.changed.notify_all()
        time.sleep(self.pbs.delays.output)
        self.output.deliver()

    @property
    def folder_name(self) -> str:
        return f"pbs.{self.job.id}"

    def prepare_hosts(self) -> None:
        """The job's own temporary folder and its node file, on every host."""
        for host in self.job.distinct_hosts:
            folder = self.pbs.tasks.folder(host)
            (folder / "tmp" / self.folder_name).mkdir()
            aux = folder / "spool/pbs/aux" / self.job.id
            aux.write_text(self.job.nodefile)

    def start_shell(self) -> Task:
        """A login shell, which reads the name of the script from its stdin."""
        spool = self.pbs.tasks.folder(self.first) / "spool/pbs/mom_priv/jobs"
        script = spool / f"{self.job.id}.SC"
        script.write_bytes(self.job.request.script.encode(errors="surrogateescape"))
        script.chmod(0o700)
        name = spool / f"{self.job.id}.stdin"
        # quoted: the id of a member of an array would be a pattern
        name.write_text(f"'/var/spool/pbs/mom_priv/jobs/{script.name}'\n")
        nodefile = f"/var/spool/pbs/aux/{self.job.id}"
        env = self.base | {
            "PBS_NODENUM": "0",
            "PBS_TASKNUM": "1",
            "PBS_NODEFILE": nodefile,
        }
        self.output.begin()
        with (
            open(name, "rb") as stdin,
            open(self.files[0], "ab") as out,
            open(self.files[1], "ab") as err,
        ):
            fds = [stdin.fileno(), out.fileno(), err.fileno()]
            return self.start_on(self.first, ["login:-bash"], env, fds)

    def start_on(self, host: str, argv: list[str], env: dict, fds: list[int]) -> Task:
        umask = self.job.request.umask
        return self.pbs.tasks.start(host, argv, env, self.pbs.home, fds, umask)

    def make_environment(self) -> dict[str, str]:
        """What every process that PBS starts for the job finds set."""
        job, submitter = self.job, self.job.submitter
        threads = str(job.request.chunks[0].ompthreads)
        told = ("HOME", "PATH", "LOGNAME", "SHELL")
        of_submitter = {f"PBS_O_{name}": submitter.get(name, "") for name in told}
        of_job = {
            "PBS_O_WORKDIR": str(job.submitted_from),
            "PBS_O_HOST": submitter.get("HOSTNAME", SERVER),
            "PBS_O_SYSTEM": "Linux",
            "ENVIRONMENT": "BATCH",
            "PBS_O_QUEUE": "workq",
            "PBS_QUEUE": "workq",
            "PBS_JOBID": job.id,
            "PBS_JOBNAME": job.request.name,
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_JOBCOOKIE": secrets.token_hex(16).upper(),
            "PBS_MOMPORT": "15003",
            "PBS_JOBDIR": str(self.pbs.home),
            "NCPUS": threads,
            "OMP_NUM_THREADS": threads,
            "TMPDIR": f"/var/tmp/{self.folder_name}",
        }
        asked_for = {"PATH": "/bin:/usr/bin"} | job.request.variables
        env = self.pbs.user | asked_for | of_submitter | of_job
        if job.index is not None:
            env["PBS_ARRAY_INDEX"] = str(job.index)
            env["PBS_ARRAY_ID"] = f"{job.number}[].{SERVER}"
        return env

    def start_task(self, host: str, argv: list[str]) -> Task:
        """A task of pbsdsh or pbs_tmrsh: a bare environment, and home as its folder."""
        index = self.job.distinct_hosts.index(host)
        before = sum(task.host == host for task in [self.shell, *self.tasks] if task)
        env = self.base | {
            "PBS_NODENUM": str(index),
            "PBS_TASKNUM": f"{HOSTS_TASKS * index + before + 1:08X}",
        }
        if host != self.first:
            env["PBS_NODEFILE"] = f"/var/spool/pbs/aux/{self.job.id}"
        out, err = (self.demux.pipe_to(path) for path in self.files)
        stdin = os.open(os.devnull, os.O_RDONLY)
        try:
            task = self.start_on(host, argv, env, [stdin, out, err])
        finally:
            for descriptor in (stdin, out, err):
                os.close(descriptor)
        self.tasks.append(task)
        return task

    # End

    def watch(self, shell: Task, started: float) -> int:
        """The status of the login shell, once nothing is to be waited for."""
        while not self.is_over(shell):
            used = time.monotonic() - started
            if self.kill_at is None and self.is_late(used):
                self.end_by_walltime(used)
            time.sleep(LOOK)
        return shell.wait()

    def is_over(self, shell: Task) -> bool:
        """Whether the job has ended, or ends now because its time is up."""
        ended = not shell.running and self.first not in self.pbs.lost
        if self.again or self.lost_for(self.pbs.delays.host_lost):
            self.again = self.job.request.rerunnable
            self.signal(signal.SIGKILL)
            return True
        if self.kill_at is None:
            return ended
        if ended and not session_members(shell.session):
            return True
        if time.monotonic() > self.kill_at:
            self.signal(signal.SIGKILL)
            return True
        return False

    def is_late(self, used: float) -> bool:
        """Whether so many seconds exceed the walltime, and PBS notices it."""
        limit = self.job.request.walltime  # qalter may change it
        return limit is not None and used - limit > self.pbs.delays.walltime_notice

    def lost_for(self, seconds: float) -> bool:
        """Whether one of its hosts failed that long ago."""
        if self.lost_at is None and self.pbs.lost.intersection(self.job.hosts):
            self.lost_at = time.monotonic()
        return self.lost_at is not None and time.monotonic() - self.lost_at > seconds

    def end_by_walltime(self, used: float) -> None:
        limit = self.job.request.walltime or 0
        with open(self.files[1], "a") as file:
            file.write(
                f"=>> PBS: job killed: walltime {used:.0f} exceeded limit {limit:.0f}\n"
            )
        self.over_walltime = True
        self.terminate(self.pbs.delays.walltime_kill)

    def terminate(self, patience: float) -> None:
        """SIGTERM, on the first host only; SIGKILL follows."""
        with self.lock:
            if self.kill_at is not None:
                return
            self.kill_at = time.monotonic() + patience
        self.demux.die()
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Signal every process of the job on its first host, and on no other."""
        for task in [*self.tasks, self.shell]:
            if task is not None and task.host == self.first:
                task.signal(number)

    def remove_tasks(self, shell: Task) -> None:
        """Whatever is left of the job, on every host."""
        left = [task for task in self.tasks if task.running]
        if left and self.kill_at is not None:
            time.sleep(self.pbs.delays.other_hosts)
        for task in [shell, *self.tasks]:
            task.signal(signal.SIGKILL)
        for session in self.attached:
            signal_session(session, signal.SIGKILL)
        while left := [task for task in self.tasks if task.running]:
            for task in left:  # one that was about to start, too
                task.signal(signal.SIGKILL)
            time.sleep(LOOK)

    def judge(self, status: int) -> int:
        """The Exit_status: of the script, or 256 + signal, or PBS's own below 0."""
        if self.over_walltime:
            return OVER_WALLTIME
        if self.lost_for(self.pbs.delays.host_lost):
            return LOST_A_HOST
        return 256 - status if status < 0 else status
