"""One run of one check: forks the ranks, watches them, ends them, says how it went.

The supervisor is itself forked from the warm server. It computes nothing and runs
no code of the learner; whatever the ranks leave behind becomes its child (it is a
"subreaper"), so that nothing survives it. If the process that asked for the run
goes away, the run ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import re
import selectors
import shutil
import signal
import socket
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from workshop.grader.engine import isolation
from workshop.grader.engine import rank as rank_module
from workshop.grader.engine.channel import (
    BEAT,
    CALLS,
    CPU,
    FIELDS,
    IMPORTS,
    IN_COMM,
    PHASE,
    Reporter,
    receive_line,
)
from workshop.grader.engine.forkserver import BOOT_IMPORT
from workshop.grader.engine.rank_process import RankProcess
from workshop.grader.verdicts.outcome import Job, Outcome, RankSeen
from workshop.system import processes, temporary
from workshop.system.stopwatch import Stopwatch

TICK = 0.05  # seconds between two looks at the ranks
QUIET = 1.0  # seconds without any sign of life that make a deadlock
GRACE = 0.4  # seconds that the other ranks get after the first failure
LATEST_BEAT = 0.3  # seconds; the watching thread of a rank writes one each 0.04 s
SIGN_OF_LIFE = 0.015  # seconds of CPU time; idle gloo threads use about 0.001 per s
LOOKS = 50  # at the processes that are left, as long as some end meanwhile
LENGTH_OF_COMMAND = 80  # that is shown of a process
NEEDED_ROOM = 32_000_000  # bytes, for the files that the ranks of a check write
_PR_SET_CHILD_SUBREAPER = 36


class Run:
    """All ranks of one check, from fork to the last waitpid."""

    def __init__(self, job: Job, client: socket.socket):
        self.job, self.client = job, client
        self.outside = os.open(os.path.dirname(job.private), os.O_PATH)
        self.init: int | None = None  # what keeps the ranks' own world
        self.ranks: list[RankProcess] = []
        self.selector = selectors.DefaultSelector()
        self.begun = Stopwatch()  # set again when all ranks run
        self.failure: Stopwatch | None = None  # since the first rank failed
        self.live_count = job.world_size
        self.still: Stopwatch | None = None  # since no rank has shown a sign of life
        self.left_running: list[str] = []
        self.shared = mmap.mmap(-1, 8 * FIELDS * job.world_size)
        self.state = memoryview(self.shared).cast("d")

    def start(self) -> None:
        self.client.setblocking(False)
        self.selector.register(self.client, selectors.EVENT_READ, None)
        if self.job.isolated:  # from here on, the check's file cannot be read
            self.init = isolation.enter(self.job.private, self.job.hidden)
        for number in range(self.job.world_size):
            self._fork(number)
        self.begun = Stopwatch()

    def _fork(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        row = self.state[number * FIELDS : (number + 1) * FIELDS]
        pid = os.fork()
        if pid == 0:
            self.selector.close()
            self.client.close()
            ours.close()
            os.close(read_end)
            os.close(self.outside)
            for other in self.ranks:
                other.channel.close()
                os.close(other.output)
            rank_module.main(self.job, number, Reporter(theirs), write_end, row)
        theirs.close()
        os.close(write_end)
        ours.setblocking(False)
        os.set_blocking(read_end, False)
        process = RankProcess(number, pid, ours, read_end)
        self.ranks.append(process)
        self.selector.register(ours, selectors.EVENT_READ, process.read_messages)
        self.selector.register(read_end, selectors.EVENT_READ, process)

    # -- watching ----------------------------------------------------------------
    def watch(self) -> str:
        """Wait until the run is over; returns why it is."""
        while True:
            if not self._read(TICK):
                return "cancelled"
            self._reap()
            live = [rank for rank in self.ranks if rank.live]
            if not live:
                return "done"
            pids = [rank.pid for rank in live]
            if any(rank.printed > self.job.output_bytes for rank in self.ranks):
                return "output"
            if any(rank.resident > self.job.memory_bytes for rank in live):
                return "memory"
            if self._stand_still(live):
                return "deadlock"
            if self.failure is None and self._any_failed():
                self.failure = Stopwatch(pids)
            if self.failure and self.failure.passed(GRACE, pids):
                return "failed"
            if any(self.state[rank.number * FIELDS + IMPORTS] for rank in live):
                self.begun.skip()
            if self.begun.passed(self.job.limit, pids):
                return "deadline"

    def _read(self, timeout: float) -> bool:
        """Serve what arrives; False if the client is gone."""
        for key, _ in self.selector.select(timeout):
            if key.data is None:
                try:
                    if not self.client.recv(64):
                        return False
                except BlockingIOError:
                    continue
            elif isinstance(key.data, RankProcess):
                if not key.data.read_output():
                    self.selector.unregister(key.fileobj)
            else:
                key.data()
        return True

    def _reap(self) -> None:
        for rank in self.ranks:
            if rank.ended is None:
                pid, status = os.waitpid(rank.pid, os.WNOHANG)
                if pid:
                    rank.ended = os.waitstatus_to_exitcode(status)
                    rank.read_messages()
                    rank.read_output()

    def _any_failed(self) -> bool:
        return any(
            rank.ended is not None or (rank.report and rank.report["status"] != "ok")
            for rank in self.ranks
        )

    def _stand_still(self, live: list[RankProcess]) -> bool:
        """Whether every live rank has waited in a communication for ``QUIET`` seconds.

        A rank that has just ended may have let the others go: they get their time.
        Seconds for which a thread of theirs waits for a core don't count: on a busy
        machine a message may be on its way, and nothing shows it.
        """
        waiting = [self._waits(rank) for rank in live]  # of each: it sets its mark
        one_ended = len(live) != self.live_count
        self.live_count = len(live)
        if one_ended or not all(waiting):
            self.still = None
            return False
        pids = [rank.pid for rank in live]
        if self.still is None:
            self.still = Stopwatch(pids)
        return self.still.passed(QUIET, pids)

    def _waits(self, rank: RankProcess) -> bool:
        """Whether it is in a communication, without a sign of life since its mark.

        A sign of life is CPU time, a new row of the ledger, a main thread that
        is ready to run, or code outside torch.distributed. A rank whose watching
        thread has not run lately is unknown, hence alive.
        """
        row = rank.number * FIELDS
        cpu, calls = self.state[row + CPU], self.state[row + CALLS]
        waits = (
            self.state[row + IN_COMM] == 1.0
            and time.monotonic() - self.state[row + BEAT] < LATEST_BEAT
            and calls == rank.mark[1]
            and cpu - rank.mark[0] < SIGN_OF_LIFE
            and processes.state_of(rank.pid) in ("S", "I")
        )
        if not waits:
            rank.mark = (cpu, calls)
        return waits

    # -- ending ------------------------------------------------------------------
    def ask_where_they_are(self) -> None:
        """Have each live rank say where it is; half a second is given."""
        live = [rank for rank in self.ranks if rank.live]
        for rank in live:
            with contextlib.suppress(OSError):
                rank.channel.send(b"where\n")
        end = time.monotonic() + 0.5
        while time.monotonic() < end and any(r.live and not r.stuck for r in live):
            self._read(TICK)
            self._reap()
        silent = [rank for rank in live if rank.live and not rank.stuck]
        for rank in silent:  # a thread holds the GIL: read the stack from outside
            os.kill(rank.pid, signal.SIGUSR1)
        if silent:
            time.sleep(0.1)

    def note_what_still_runs(self) -> None:
        """Commands of processes that the learner's code started and left.

        A process may start another one and end while /proc is being read, so that
        neither is seen. So one that has ended since the last look (or is about to:
        it has no command any more) asks for another look.
        """
        ended = {self.init, *(rank.pid for rank in self.ranks)}
        for _ in range(LOOKS):
            below, gone = processes.below(os.getpid())
            commands = {pid: _command_of(pid) for pid in below if pid not in ended}
            self.left_running = [
                command
                for command in commands.values()
                if command and "resource_tracker" not in command
            ]
            gone.update(pid for pid, command in commands.items() if not command)
            if self.left_running or gone <= ended:
                return
            ended |= gone

    def end_everything(self) -> None:
        """Kill the ranks and all they started; nothing is left afterwards."""
        for rank in self.ranks:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    kill(rank.pid, signal.SIGKILL)
        dying = {rank.pid for rank in self.ranks if rank.ended is None}
        if self.init is not None:  # with it, all that is left in its world
            os.kill(self.init, signal.SIGKILL)
            dying.add(self.init)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                pid, _status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            dying.discard(pid)
            if pid:
                continue
            # it takes long to look for processes: only for those that the ranks left
            for child in [] if dying else processes.below(os.getpid())[0]:
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.002)

    def remove_folders(self) -> None:
        """All that the check wrote; the last one from outside, where that can be."""
        shutil.rmtree(self.job.private, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.basename(self.job.private), dir_fd=self.outside)

    def outcome(self, why: str) -> Outcome:
        """What ``verdicts/diagnosis.py`` makes a verdict of."""
        return Outcome(
            why=why,
            seconds=time.monotonic() - self.begun.start,
            left_running=self.left_running,
            ranks=[self._seen(rank) for rank in self.ranks],
        )

    def _seen(self, rank: RankProcess) -> RankSeen:
        calls = [] if rank.report or rank.stuck else rank.calls
        resident = rank.resident if rank.live else 0
        return RankSeen(
            rank=rank.number,
            report=rank.report,
            leaving=rank.leaving,
            stuck=rank.stuck or self._stack_from_outside(rank),
            ended=rank.ended,
            calls=calls,
            crash_line=self._line_in(f"crash{rank.number}"),
            phase=self.state[rank.number * FIELDS + PHASE],
            printed=rank.printed,
            output=rank.text(),
            resident=resident,
        )

    def _stack_from_outside(self, rank: RankProcess) -> dict | None:
        if not rank.live:
            return None
        return {
            "status": "stuck",
            "silent": True,
            "in_comm": False,
            "calls": int(self.state[rank.number * FIELDS + CALLS]),
            "line": self._line_in(f"stack{rank.number}"),
            "text": "",
            "stack": [],
        }

    def _line_in(self, name: str) -> int | None:
        """The innermost line of the learner's file in a faulthandler dump."""
        try:
            dump = Path(self.job.private, name).read_text(errors="replace")
        except OSError:
            return None
        path = re.escape(self.job.exercise_path)
        found = re.search(rf'File "{path}", line (\d+)', dump)
        return int(found[1]) if found else None


def supervise(client: socket.socket, isolated: bool) -> None:
    """Read one job from ``client``, run it, answer with its outcome.

    Args:
        isolated: whether ranks get a world of their own; those that submit job
            scripts do not, but the nodes that these run in do.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    job = Job.from_line(receive_line(client))
    job = replace(job, isolated=isolated and not _cluster_of(job))
    gc.disable()
    run = Run(_make_folders(job), client)
    try:
        try:
            run.start()
            why = run.watch()
            if why != "done" and why != "cancelled":
                run.ask_where_they_are()
            run.note_what_still_runs()
            outcome = run.outcome(why)
        finally:
            run.end_everything()
    finally:
        run.remove_folders()
    if why != "cancelled":
        client.setblocking(True)
        client.sendall(outcome.as_line())


def _command_of(pid: int) -> str:
    """What is shown of a process that the learner's code has left."""
    command = processes.command_of(pid)
    if BOOT_IMPORT in command:  # forked without exec
        return f"a copy of your program, made by os.fork (process {pid})"
    return command[:LENGTH_OF_COMMAND]


def _cluster_of(job: Job) -> str:
    """The folder of the practice cluster that the check submits to, or ""."""
    return (job.scheduler or {}).get("state", "")


def _can_hold_a_check(folder: str) -> bool:
    """Whether a check's files fit there, and its programs may run there.

    The shared memory of a container may be small and full. Docker, and hosts that are
    hardened, let no program run from it, and bash then takes the next one on the PATH.
    """
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    room = found.f_bavail * found.f_frsize >= NEEDED_ROOM
    return room and temporary.runs_programs(folder) and os.access(folder, os.W_OK)


def _make_folders(job: Job) -> Job:
    """A private folder for the grader, and in it the ranks' common folder."""
    base = "/dev/shm" if _can_hold_a_check("/dev/shm") else None
    base = _cluster_of(job) or base  # jobs can write nowhere else
    private = os.path.realpath(tempfile.mkdtemp(prefix="workshop-", dir=base))
    folder = os.path.join(private, "run")
    os.mkdir(folder)
    copy = os.path.join(folder, os.path.basename(job.exercise_path))
    Path(copy).write_text(job.source, encoding="utf-8")
    os.chmod(copy, 0o755)
    store = os.path.join(private, "store")
    return replace(job, private=private, folder=folder, store=store)
