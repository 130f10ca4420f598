"""The commands of PBS, as the server answers them."""

from __future__ import annotations

import getopt
import json
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .jobs import Job, RunningJob
from .placement import Refused
from .request import read_request
from .scheduler import Scheduler
from .tasks import Task, peer_pid

HELP = """{name}: a command of the rehearsal of PBS, not of OpenPBS itself.
It does what docs/lessons/10_pbs.rst shows; options that it does not know it refuses.
"""
EXIT_UNKNOWN_JOB = 153
EXIT_FINISHED = 35
NO_SUCH_PROGRAM = 254


class Answer(Exception):
    """How a command ends early: what it prints on stderr, and its exit status."""

    def __init__(self, text: str, status: int = 1):
        super().__init__(text)
        self.text, self.status = f"{text}\n", status


class Call:
    """One command that somebody has typed."""

    def __init__(
        self,
        pbs: Scheduler,
        connection: socket.socket,
        request: dict[str, Any],
        descriptors: list[int],
    ):
        self.pbs, self.connection, self.descriptors = pbs, connection, descriptors
        self.name: str = request["command"]
        self.argv: list[str] = request["argv"]
        self.cwd = Path(request["cwd"])
        self.env: dict[str, str] = request["env"]
        self.host: str = request["host"]

    def answer(self) -> None:
        """Do it, and tell whoever typed it how it went."""
        try:
            if self.argv == ["--help"]:
                self.send(out=HELP.format(name=self.name), status=0)
            else:
                self.send(status=COMMANDS[self.name](self))
        except Answer as error:
            self.send(err=error.text, status=error.status)

    def send(self, **answer: Any) -> None:
        # who asked may be gone, and SIGPIPE would end a process that does not ignore it
        message = json.dumps(answer).encode() + b"\n"
        self.connection.sendall(message, socket.MSG_NOSIGNAL)

    def stop(self, text: str, status: int = 1) -> Answer:
        return Answer(f"{self.name}: {text}", status)

    def options(self, letters: str) -> tuple[dict[str, str], list[str]]:
        """Options before and, as most commands of PBS allow, after the operands."""
        try:
            found, rest = getopt.gnu_getopt(self.argv, letters)
        except getopt.GetoptError as error:
            raise self.stop(f"invalid option -- {error.opt!r}", 2) from error
        return {option[1]: value for option, value in found}, rest

    def job(self, job_id: str) -> Job:
        try:
            return self.pbs.job(job_id)
        except KeyError:
            raise self.stop(f"Unknown Job Id {job_id}", EXIT_UNKNOWN_JOB) from None

    def own_job(self) -> RunningJob:
        """The job in which the command was typed."""
        job_id = self.env.get("PBS_JOBID")
        running = self.job(job_id).running if job_id else None
        if running is None:
            raise self.stop("not inside a job (PBS_JOBID is not set)")
        return running


# Jobs


def qsub(call: Call) -> int:
    try:
        request = read_request(
            call.argv,
            call.cwd,
            call.env,
            lambda: read_all(call.descriptors[0]),
            call.pbs.gpus,
        )
    except Refused as error:
        raise call.stop(str(error), error.status) from error
    env = call.env | {"HOSTNAME": call.host}
    with call.pbs.changed:
        job = call.pbs.submit(Job(call.pbs.next_number, request, call.cwd, env))
    call.send(out=f"{job.id}\n")
    if not request.block:
        return 0
    call.pbs.wait(job.id, timeout=threading.TIMEOUT_MAX)
    return (job.exit_status or 0) & 255


def read_all(descriptor: int) -> str:
    with open(os.dup(descriptor)) as file:
        return file.read()


def qstat(call: Call) -> int:
    options, job_ids = call.options("fxtanswH")
    with call.pbs.changed:
        jobs = [call.job(job_id) for job_id in job_ids] or list(call.pbs.jobs)
        history = "x" in options or "H" in options
        for job in jobs if job_ids and not history else ():
            if job.state == "F":
                raise call.stop(
                    f"{job.id} Job has finished, use -x or -H to obtain "
                    "historical job information",
                    EXIT_FINISHED,
                )
        jobs = [job for job in jobs if history or job.state != "F"]
        if not job_ids:
            jobs = [job for job in jobs if "t" in options or job.index is None]
        show = show_fully if "f" in options else show_line
        text = "".join(show(job, call.pbs.user["USER"]) for job in jobs)
    if text and show is show_line:
        text = TABLE_HEAD + text
    call.send(out=text)
    return 0


TABLE_HEAD = """\
Job id            Name             User              Time Use S Queue
----------------  ---------------- ----------------  -------- - -----
"""


def show_line(job: Job, user: str) -> str:
    name = job.request.name
    return f"{job.id:<17} {name:<16.16} {user:<16}         0 {job.state} workq\n"


def show_fully(job: Job, user: str) -> str:
    """`qstat -f`: the attributes that a script may want to read."""
    lines = {
        "Job_Name": job.request.name,
        "Job_Owner": f"{user}@{job.submitter['HOSTNAME']}",
        "job_state": job.state,
        "queue": "workq",
        "exec_host": "+".join(f"{host}/0" for host in job.hosts),
        "Output_Path": job.output_path or "",
        "comment": job.comment,
        "Exit_status": "" if job.exit_status is None else job.exit_status,
    }
    total = {"ncpus": 0, "ngpus": 0, "mpiprocs": 0}
    for chunk in job.request.chunks:
        total["ncpus"] += chunk.amount.ncpus
        total["ngpus"] += chunk.amount.ngpus
        total["mpiprocs"] += chunk.mpiprocs
    resources = {name: number for name, number in total.items() if number}
    resources |= job.request.shown_resources()
    lines |= {f"Resource_List.{name}": text for name, text in resources.items()}
    shown = "".join(f"    {k} = {v}\n" for k, v in lines.items() if v != "")
    return f"Job Id: {job.id}\n{shown}\n"


def qdel(call: Call) -> int:
    _, job_ids = call.options("xW:")
    for job_id in job_ids:
        job = call.job(job_id)
        if job.state == "F":
            raise call.stop(f"Job has finished {job.id}", EXIT_FINISHED)
        with call.pbs.changed:
            call.pbs.delete(job)
    return 0


def qsig(call: Call) -> int:
    options, job_ids = call.options("s:")
    name = options.get("s", "TERM").removeprefix("SIG")
    for job_id in job_ids:
        running = call.job(job_id).running
        number = int(name) if name.isdigit() else getattr(signal, f"SIG{name}", None)
        if number is None:
            raise call.stop(f"unknown signal {name}")
        if running is None:
            raise call.stop(f"Request invalid for state of job {job_id}")
        running.signal(number)
    return 0


# Tasks of a job


def pbsdsh(call: Call) -> int:
    """One task for each line of the node file; the exit status says nothing."""
    options, argv = call.options("cn:h:svo")
    if not argv:
        raise call.stop("no program given", 2)
    running = call.own_job()
    lines = running.job.nodefile.split()
    if "n" in options:
        lines = lines[int(options["n"]) :][:1]
    if "h" in options:
        lines = [line for line in lines if line == options["h"]]
    if not lines:
        raise call.stop("no such node")
    tasks = [running.start_task(host, argv) for host in lines]
    watch_for_signals(call, tasks)
    for task in tasks:
        if (status := exit_status(task)) or "v" in options:
            number = int(task.order["env"]["PBS_TASKNUM"], 16)
            call.send(err=f"pbsdsh: task 0x{number:08x} exit status {status}\n")
    return 0


def watch_for_signals(call: Call, tasks: list[Task]) -> None:
    """Pass a SIGTERM of pbsdsh on to its tasks, on all hosts."""

    def watch() -> None:
        try:
            ready, _, _ = select.select([call.connection], [], [], None)
            if ready and b"signal" in call.connection.recv(100):
                for task in tasks:
                    task.signal(signal.SIGTERM)
        except (OSError, ValueError):
            pass  # the command has ended

    threading.Thread(target=watch, daemon=True).start()


def exit_status(task: Task) -> int:
    """The status of a task as PBS reports it: of a signal, its number."""
    return abs(task.wait())


def pbs_tmrsh(call: Call) -> int:
    """A program on a host of the job; ends with the exit status of the program."""
    argv = call.argv
    while argv and argv[0] in ("-n", "-l"):
        argv = argv[1:] if argv[0] == "-n" else argv[2:]
    if len(argv) < 2:
        raise Answer(
            "usage: pbs_tmrsh [-n][-l username] host [-n][-l username] command"
        )
    running = call.own_job()
    hosts = {call.pbs.addresses[host]: host for host in running.job.distinct_hosts}
    host = hosts.get(argv[0], argv[0])
    if host not in running.job.distinct_hosts:
        raise call.stop(f"host {argv[0]} is not a host of this job")
    return exit_status(running.start_task(host, argv[1:]))


def pbs_attach(call: Call) -> int:
    """Make what follows a part of the job; it is removed with it."""
    if call.argv[:1] != ["-j"] or len(call.argv) < 3:
        raise Answer("usage: pbs_attach -j jobid command")
    running = call.job(call.argv[1]).running
    if running is None:
        raise call.stop(f"Unknown Job Id {call.argv[1]}", EXIT_UNKNOWN_JOB)
    running.attached.append(os.getsid(peer_pid(call.connection)))
    call.send(exec=call.argv[3 if call.argv[2] == "--" else 2 :])
    return 0


# Another host, as a user reaches it


SSH_USAGE = "usage: ssh [-nqtTx] [-o option] [-l user] [-p port] host command"


def ssh(call: Call) -> int:
    """A command in the bare environment that sshd gives; nothing of a job."""
    try:
        _, rest = getopt.getopt(call.argv, "46aAnNqtTvxXYo:l:p:i:F:")
    except getopt.GetoptError as error:
        raise Answer(SSH_USAGE, 255) from error
    if len(rest) < 2:
        raise Answer(SSH_USAGE, 255)
    name = rest[0].rpartition("@")[2]
    hosts = {call.pbs.addresses[host]: host for host in call.pbs.hosts}
    host = hosts.get(name, name)
    if host not in call.pbs.hosts:
        raise call.stop(f"Could not resolve hostname {name}", 255)
    env = call.pbs.user | {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games",
        "SSH_CLIENT": "10.77.0.1 40000 22",
        "SSH_CONNECTION": f"10.77.0.1 40000 {call.pbs.addresses[host]} 22",
    }
    shell = ["/bin/bash", "-c", " ".join(rest[1:])]
    task = call.pbs.tasks.start(host, shell, env, call.pbs.home, call.descriptors)
    status = task.wait()
    return 255 if status < 0 else status


COMMANDS: dict[str, Callable[[Call], int]] = {
    "qsub": qsub,
    "qstat": qstat,
    "qdel": qdel,
    "qsig": qsig,
    "pbsdsh": pbsdsh,
    "pbs_tmrsh": pbs_tmrsh,
    "pbs_attach": pbs_attach,
    "ssh": ssh,
}
