"""One command that somebody has typed: what it was given, and its answer."""

from __future__ import annotations

import getopt
import select
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .command import Reply, Typed
from .jobs import SERVER, Job, RunningJob
from .scheduler import Scheduler

HELP = """{name}: a command of the rehearsal of PBS, not of OpenPBS itself.
It does what docs/lessons/10_pbs shows; options that it does not know it refuses.
"""
EXIT_UNKNOWN_JOB = 153


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
        typed: Typed,
        descriptors: list[int],
    ):
        self.pbs, self.connection, self.descriptors = pbs, connection, descriptors
        self.name, self.argv = typed.command, typed.argv
        self.cwd, self.env, self.host = Path(typed.cwd), typed.env, typed.host

    def answer(self, command: Callable[[Call], int]) -> None:
        """Do it, and print how it went where it was typed."""
        try:
            if self.argv == ["--help"]:
                self.send(Reply(out=HELP.format(name=self.name), status=0))
            else:
                self.send(Reply(status=command(self)))
        except Answer as error:
            self.send(Reply(err=error.text, status=error.status))

    def send(self, reply: Reply) -> None:
        # who asked may be gone, and SIGPIPE would end a process that does not ignore it
        self.connection.sendall(reply.as_line(), socket.MSG_NOSIGNAL)

    def stop(self, text: str, status: int = 1) -> Answer:
        return Answer(f"{self.name}: {text}", status)

    def never_answer(self) -> NoReturn:
        """As a command that waits for a host which has failed, until it is killed."""
        select.select([self.connection], [], [])
        raise Answer("killed")

    def options(
        self, letters: str, status: int = 2
    ) -> tuple[dict[str, str], list[str]]:
        """Options before and, as most commands of PBS allow, after the operands."""
        try:
            found, rest = getopt.gnu_getopt(self.argv, letters)
        except getopt.GetoptError as error:
            raise self.stop(f"invalid option -- {error.opt!r}", status) from error
        return {option[1]: value for option, value in found}, rest

    def job(self, job_id: str) -> Job:
        try:
            return self.pbs.job(job_id)
        except KeyError:
            full = job_id if "." in job_id else f"{job_id}.{SERVER}"
            raise self.stop(f"Unknown Job Id {full}", EXIT_UNKNOWN_JOB) from None

    def own_job(self) -> RunningJob:
        """The job in which the command was typed."""
        job_id = self.env.get("PBS_JOBID")
        running = self.job(job_id).running if job_id else None
        if running is None:
            raise self.stop("not inside a job (PBS_JOBID is not set)")
        return running
