"""The processes of a tour's stage: shown, logged, and all ended when it is over."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from rich.console import Console

from workshop.system.environment import NO_GPU

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 180  # seconds, per stage; on two idle cores each takes about 10

console = Console(highlight=False)


class StageError(Exception):
    """One sentence: what went wrong; the caller adds where the log is."""


def environment(mark: str) -> dict[str, str]:
    """The surroundings of every process that computes.

    One thread each, so that four ranks on few cores are four devices of equal speed;
    no GPU, so that everybody sees the same; and no launcher's variables, which
    would contradict ours when the tour itself runs in a batch job.
    """
    foreign = re.compile(
        r"(RANK|LOCAL_RANK|GROUP_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE)$|MASTER_|TORCHELASTIC_"
        r"|SLURM_|PMI_|OMPI_|PYTHONPATH$"
    )
    kept = {key: value for key, value in os.environ.items() if not foreign.match(key)}
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # also where the machine's own name has no address
        kept.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    return {
        **kept,
        **NO_GPU,
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "WORKSHOP_TOUR": mark,
    }


# What torchrun says of a rank that failed, and a node of one that has left it.
LATER = "ChildFailedError|BrokenPipeError|Rendezvous|Connection|DistNetworkError"


def wait_while(some: Callable[[], list[int]], seconds: float = 5) -> None:
    """Return when a list of process ids is empty, or after this time."""
    deadline = time.monotonic() + seconds
    while some() and time.monotonic() < deadline:
        time.sleep(0.05)


def last_error(log: str) -> str:
    """Of a program, if one said why; else that of a node which another has left."""
    by_programs = log.partition("failed (exitcode: ")[0]
    for text, later in ((by_programs, LATER), (log, LATER), (log, "ChildFailedError")):
        errors = re.findall(r"^.*(?:Error|error:).*$", text, re.MULTILINE)
        own = [line.strip() for line in errors if not re.search(later, line)]
        if own:
            return own[-1]
    return ""


class Processes:
    """Commands that run side by side; leaving the context ends all of them.

    What they print on stdout appears at once, everything goes to the log as well.
    """

    def __init__(self, log: Path, show: bool = True):
        self.log = log
        self.show = show
        self.mark = uuid.uuid4().hex
        self.running: list[subprocess.Popen[str]] = []
        self.readers: list[threading.Thread] = []
        self.lock = threading.Lock()

    def __enter__(self) -> Processes:
        self.file = self.log.open("a", encoding="utf-8")
        return self

    def start(self, command: list[str]) -> None:
        """Start a command. It gets a session of its own: Ctrl-C reaches only us,
        and we end everything in order."""
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(self.mark),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.running.append(process)
        for stream, show in ((process.stdout, self.show), (process.stderr, False)):
            reader = threading.Thread(target=self._read, args=(stream, show))
            reader.daemon = True
            reader.start()
            self.readers.append(reader)

    def _read(self, stream: TextIO, show: bool) -> None:
        for line in stream:
            with self.lock:
                self.file.write(line)
                self.file.flush()
                if show:
                    console.print(
                        f"      {line.rstrip()}", markup=False, soft_wrap=True
                    )

    def wait(self) -> None:
        """Wait for all of them.

        Raises:
            StageError: one failed (the others are then of no use) or takes too long.
        """
        started = time.monotonic()
        with console.status("") as status:  # a moving line, on a terminal only
            while any(process.poll() is None for process in self.running):
                if any(process.poll() for process in self.running):
                    break
                seconds = time.monotonic() - started
                if seconds > LIMIT:
                    raise StageError(f"it was still running after {LIMIT} s")
                status.update(f"{seconds:.0f} s")
                time.sleep(0.05)
        failed = [process for process in self.running if process.poll()]
        if failed:
            self.end()
            raise StageError(f"exit status {failed[0].returncode}{self._reason()}")
        for reader in self.readers:
            reader.join(timeout=5)

    def _reason(self) -> str:
        """The log's last error, else its last line, as part of a sentence."""
        self.file.flush()
        text = self.log.read_text(encoding="utf-8", errors="replace")
        last = last_error(text) or text.strip().rpartition("\n")[2].strip()
        return f" ({last.replace(f'{ROOT}/', '')[:150]})" if last else ""

    def __exit__(self, *_: object) -> None:
        self.end()
        self.file.close()

    def end(self) -> None:
        """End what still runs: the agents first, they take their ranks along."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C changes nothing
        for process in self.running:
            if process.poll() is None:
                process.terminate()
        wait_while(self._alive)
        wait_while(self._kill_the_rest)
        for process in self.running:
            process.wait()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _kill_the_rest(self) -> list[int]:
        """What is left, each sent SIGKILL; not all are ours to wait for."""
        left = [*self._marked(), *self._alive()]
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return left

    def _alive(self) -> list[int]:
        return [process.pid for process in self.running if process.poll() is None]

    def _marked(self) -> list[int]:
        """Processes with our mark in their environment: ranks without their agent."""
        needle = f"WORKSHOP_TOUR={self.mark}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if needle in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found
