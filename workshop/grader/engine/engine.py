"""Grades exercises: reads the learner's file, runs its checks, makes verdicts.

::

    with Engine() as engine:
        engine.warm()                     # imports torch in the background
        result = engine.grade(exercise)   # as often as wanted, from any thread
        print(result.verdict.message)
"""

from __future__ import annotations

import ast
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workshop.catalog import CHECKS, Exercise, find_root
from workshop.cluster.jobs.refused import refusal
from workshop.cluster.jobs.sites import SUFFIXES as JOB_SCRIPTS
from workshop.errors import UserError
from workshop.grader.checks import SEEDS, Check, checks_in
from workshop.grader.engine.channel import receive_line
from workshop.grader.engine.forkserver import ForkServer
from workshop.grader.engine.look_ahead import (
    Cancelled,
    Ticket,
    in_order,
    may_overlap,
)
from workshop.grader.engine.reach import reaches_in
from workshop.grader.verdicts.diagnosis import diagnose
from workshop.grader.verdicts.outcome import Job, Outcome
from workshop.grader.verdicts.verdict import NOTHING_WRONG, Kind, Result, Verdict
from workshop.grader.verdicts.wording import cut
from workshop.skeleton import read_solution, same_code, skeleton_text
from workshop.system import temporary
from workshop.versions import problem_with_torch, require_torch

if TYPE_CHECKING:
    from workshop.cluster.jobs.cluster_of_checks import ClusterOfChecks

MEMORY_BYTES = 2_000_000_000
OUTPUT_BYTES = 10_000_000
FILE_BYTES = 256_000_000
SOURCE_BYTES = 1_000_000


KILLED = (
    "the grading process was killed twice while your code was running",
    "signal only processes that you started (or is the machine out of memory?)",
)


class Engine:
    """Owns the warm server; safe to use from several threads.

    Args:
        hidden: folders that a learner's code must not see, such as other learners'.
        overlap: whether :meth:`grade` may begin the next check while one still runs.
    """

    def __init__(
        self,
        seeds: tuple[int, ...] = SEEDS,
        hidden: Iterable[Path] = (),
        overlap: bool = False,
    ):
        self.seeds = seeds
        self.overlap = overlap
        self.hidden = [os.path.abspath(path) for path in hidden]
        self._server: ForkServer | None = None
        self._lock = threading.Lock()
        self._running: set[socket.socket] = set()
        self._cancelled: set[socket.socket] = set()
        self._generation = 0  # counts the calls of cancel()
        self._cluster: ClusterOfChecks | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def warm(self) -> None:
        """Begin to import torch in the server; returns at once.

        Raises:
            UserError: torch is missing or too old.
        """
        with self._lock:
            if self._server is None or not self._server.alive:
                require_torch()
                self._server = ForkServer()

    @property
    def exposed(self) -> str:
        """Why a learner's code can reach this machine's files; "" if it cannot."""
        info = self._server and self._server.info
        return info["exposed"] if info else ""

    def cancel(self) -> None:
        """End what is graded now; the :meth:`grade` of it raises Cancelled."""
        with self._lock:
            self._generation += 1
            for client in self._running:
                self._cancelled.add(client)
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the server and every rank."""
        self.cancel()
        with self._lock:
            server, self._server = self._server, None
            cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()
        if server is not None:
            server.close()

    # -- grading -----------------------------------------------------------------
    def grade(
        self,
        exercise: Exercise,
        path: Path | None = None,
        checks: list[Check] | None = None,
        stop_at_first: bool = True,
        on_check: Callable[[Check, Verdict], None] | None = None,
    ) -> Result:
        """Run the checks of ``exercise`` on the file at ``path``.

        Args:
            path: default ``exercise.path``.
            checks: default all of the exercise.
            stop_at_first: end at the first check that is not right.
            on_check: called after each check.

        Raises:
            UserError: the set-up is broken (no torch, no checks), exit status 3.
            Cancelled: :meth:`cancel` was called.
        """
        started = time.monotonic()
        path = path or exercise.path
        if checks is None:
            checks = checks_in(exercise.checks, self.seeds)
        source, early = self.read(exercise, path)
        verdicts: list[Verdict] = []
        if early is not None:
            verdicts = [early]
        else:
            generation = self._generation

            def run(check: Check, ticket: Ticket) -> Verdict:
                if self._generation != generation:
                    raise Cancelled
                return self.run_check(check, source, path, exercise.page, ticket)

            in_turn = in_order(checks, run, self._overlaps(checks))
            with contextlib.closing(in_turn):
                for check, verdict in in_turn:
                    verdicts.append(verdict)
                    if on_check is not None:
                        on_check(check, verdict)
                    if stop_at_first and verdict.kind not in NOTHING_WRONG:
                        break
        seconds = time.monotonic() - started
        return Result(exercise.name, verdicts, seconds, planned=len(checks))

    def read(self, exercise: Exercise, path: Path) -> tuple[str, Verdict | None]:
        """(the file's text, a verdict if it need not be run at all)."""
        skeleton = skeleton_text(read_solution(exercise.solution), exercise.suffix)
        read = _read_source(path, exercise)
        source = read.text
        if read.problem:
            first, *more = read.problem
            lines = [f"{Kind.NOT_LOADED.value}: {first}", *more]
            return source, Verdict(Kind.NOT_LOADED, lines)
        if same_code(source, skeleton, exercise.suffix):
            lines = [
                f"not started: {exercise.file} is unchanged",
                f"read: {exercise.page}",
            ]
            return source, Verdict(Kind.NOT_STARTED, lines, page=exercise.page)
        inside = reaches_in(source)
        if inside is not None:
            return source, _reaching(source, *inside, exercise.page)
        if exercise.torch:
            problem = problem_with_torch(exercise.torch, exercise.name)
            if problem:
                lines = [f"{Kind.ENVIRONMENT.value}: {problem}"]
                return source, Verdict(Kind.ENVIRONMENT, lines, page=exercise.page)
        why = temporary.problem_of_programs()
        if why and exercise.suffix in JOB_SCRIPTS:
            lines = [f"{Kind.ENVIRONMENT.value}: {why}", temporary.CURE]
            return source, Verdict(Kind.ENVIRONMENT, lines, page=exercise.page)
        if read.refused:
            first, *more = read.refused
            lines = [f"{Kind.NOT_LOADED.value}: {first}", *more]
            return source, Verdict(Kind.NOT_LOADED, lines, page=exercise.page)
        return source, None

    def _overlaps(self, checks: list[Check]) -> bool:
        """Whether these checks run side by side: each in a world of its own."""
        if not (self.overlap and may_overlap(checks)):
            return False
        self.warm()
        server = self._server
        assert server is not None
        server.wait_until_ready()
        return not self.exposed

    def run_check(
        self,
        check: Check,
        source: str,
        path: Path,
        page: str = "",
        ticket: Ticket | None = None,
    ) -> Verdict:
        """Run one check in fresh ranks on ``source``, the text of ``path``."""
        ticket = ticket or Ticket()
        scheduler = self._scheduler(check) if check.scheduler else None
        job = Job(
            exercise=path.stem,
            exercise_path=str(path),
            source=source,
            check_path=str(check.path),
            function=check.function,
            sentence=check.sentence,
            page=page,
            world_size=check.world_size,
            seed=check.seed,
            init=check.init,
            limit=check.limit,
            memory_bytes=MEMORY_BYTES,
            output_bytes=OUTPUT_BYTES,
            file_bytes=FILE_BYTES,
            hidden=[*self.hidden, *_answers(check)],
            scheduler=scheduler,
        )
        answer = self._run(job, ticket)
        if not answer:  # killed by somebody else? once more
            answer = self._run(job, ticket)
        if not answer:
            lines = [f"{Kind.CRASH.value}: {KILLED[0]}", KILLED[1]]
            return Verdict(Kind.CRASH, lines, page=page)
        outcome = Outcome.from_line(answer)
        if outcome.broken:
            problem = f"the grader itself failed: {outcome.broken}"
            raise UserError(f"{problem}: run `workshop doctor`", exit_status=3)
        return diagnose(job, outcome)

    def _scheduler(self, check: Check) -> dict:
        """What the check's Scheduler needs; starts the practice cluster."""
        from workshop.cluster.jobs.cluster_of_checks import ClusterOfChecks

        self.warm()
        server = self._server
        assert server is not None
        server.wait_until_ready()  # it says whether files can be protected
        with self._lock:
            if self._cluster is None:
                hidden = None if self.exposed else [*self.hidden, *_answers(check)]
                self._cluster = ClusterOfChecks(hidden)
            else:
                self._cluster.tidy()
        return self._cluster.description(find_root(check.path.parent))

    def _run(self, job: Job, ticket: Ticket) -> bytes:
        self.warm()
        server = self._server
        assert server is not None
        client = server.submit(job)
        with client:
            with self._lock:
                self._running.add(client)
            try:
                ticket.begin(client)
                answer = receive_line(client)
            except OSError:
                answer = b""
            finally:
                ticket.end()
                with self._lock:
                    self._running.discard(client)
                    cancelled = client in self._cancelled
                    self._cancelled.discard(client)
        if cancelled or ticket.cancelled:
            raise Cancelled
        return answer


def _reaching(source: str, name: str, line: int, page: str) -> Verdict:
    """The verdict on a file that names a part of the grader in this line."""
    lines = [
        f"{Kind.NOT_A_SOLUTION.value}: your file names {name}",
        f"    line {line}: {source.splitlines()[line - 1].strip()}",
        "an answer uses its arguments and what other ranks send",
    ]
    return Verdict(Kind.NOT_A_SOLUTION, [cut(line) for line in lines], page=page)


def _answers(check: Check) -> list[str]:
    """The folders that tell what is right: of checks, and of solutions."""
    path = check.path.resolve()
    if path.name != CHECKS:  # of no exercise in a workshop
        return [str(path.parent)]
    exercises = path.parents[1]
    return [str(exercises), str(exercises.parents[1] / "solutions")]


@dataclass(frozen=True)
class Source:
    """What a file holds: its text, or the lines that say why it can't be graded.

    Attributes:
        problem: what is wrong with the file.
        refused: what a scheduler would say to it, as a job script.
    """

    text: str = ""
    problem: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def _read_source(path: Path, exercise: Exercise) -> Source:
    raw, problem = _read_bytes(path, exercise)
    if problem:
        return Source(problem=(problem,))
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")  # as Windows writes
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        place = f"byte {error.start}, line {line}"
        return Source(problem=(f"{path.name} is not UTF-8 text: {place}",))
    if exercise.suffix == ".py":
        return Source(text, problem=tuple(_syntax_problem(text, path)))
    refused = refusal(raw, exercise.suffix, f"exercises/{exercise.file}")
    return Source(text, refused=tuple(refused))


def _read_bytes(path: Path, exercise: Exercise) -> tuple[bytes, str]:
    """The file's content, and why it can't be read, or ""."""
    try:
        if path.exists() and not path.is_file():
            return b"", f"{path.name} is not a file with a program in it"
        if path.is_file() and path.stat().st_size > SOURCE_BYTES:
            return b"", f"{path.name} is larger than {SOURCE_BYTES // 1_000_000} MB"
        return path.read_bytes(), ""
    except FileNotFoundError:
        again = f"`workshop reset {exercise.name}` restores it"
        return b"", f"{path.name} is missing: {again}"
    except OSError as error:
        return b"", f"{path.name} cannot be read: {error.strerror}"


def _syntax_problem(source: str, path: Path) -> list[str]:
    try:
        ast.parse(source, str(path))
    except SyntaxError as error:
        text = (error.text or "").rstrip()
        shown = [f"    line {error.lineno}: {text.strip()}"] if text else []
        return [f"{type(error).__name__}: {error.msg} (line {error.lineno})", *shown]
    except (ValueError, RecursionError, MemoryError) as error:
        return [f"{path.name} is not Python: {str(error) or 'it is nested too deeply'}"]
    return []
