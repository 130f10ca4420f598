"""From one device to two nodes in a minute: what ``make tour`` shows.

Four stages: train on one device; the same training as 2 nodes x 2 ranks, which are
two torchrun agents on this machine that meet over its loopback interface; a table
that compares the two; the site. Whatever a stage prints is also in ``_build/tour``.

Exit status: 0, or 1 with one sentence that says which stage failed and where its
log is. Nothing but ``_build`` is written, and Ctrl-C ends every process.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

try:
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
except ImportError:
    sys.exit("tour: the environment is not there yet: run make tour")

from site_builder import SITE, build_command, why_not

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "_build" / "tour"

EPOCHS = 5
GLOBAL_BATCH = 32  # images per optimizer step, on one device and on four ranks
NODES, RANKS_PER_NODE = 2, 2
LIMIT = 180  # seconds, per stage; on two idle cores each takes about 10
LOWEST_ACCURACY = 0.9
STAGES = 4

console = Console(highlight=False)


class StageError(Exception):
    """One sentence: what went wrong; the caller adds where the log is."""


@dataclass
class Outcome:
    """What a training reported: its ``--metrics`` file and its steps per epoch."""

    title: str
    metrics: dict
    steps: int


@contextlib.contextmanager
def stage(number: int, title: str) -> Iterator[Path]:
    """Announce a stage and time it; yields the path of its log."""
    log = LOGS / f"{number}_{re.sub('[^a-z0-9]+', '_', title.lower()).strip('_')}.log"
    log.write_text("")
    console.print(f"\n[bold]\\[{number}/{STAGES}] {title}[/]")
    started = time.monotonic()
    try:
        yield log
    except StageError as error:
        where = log.relative_to(ROOT)
        raise StageError(
            f"stage {number} ({title.lower()}) failed: {error}; the full log is {where}"
        ) from error
    console.print(f"[dim]      {time.monotonic() - started:.1f} s[/]")


# Processes


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
    hidden = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    return {
        **kept,
        **dict.fromkeys(hidden, ""),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "WORKSHOP_TOUR": mark,
    }


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
        errors = re.findall(r"^.*(?:Error|error:).*$", text, re.MULTILINE)
        own = [line for line in errors if "ChildFailedError" not in line]
        last = (own or text.strip().splitlines() or [""])[-1].strip()
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
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(
            process.poll() is None for process in self.running
        ):
            time.sleep(0.05)
        for pid in [*self._marked(), *self._alive()]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for process in self.running:
            process.wait()
        signal.signal(signal.SIGINT, signal.default_int_handler)

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


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# Stages


def training(script: str, batch_size: int, folder: Path) -> list[str]:
    """The command line that both trainings share, but for the batch per process."""
    return [
        str(ROOT / "src" / script),
        *(str(EPOCHS), str(EPOCHS), "--batch-size", str(batch_size)),
        *("--snapshot", str(folder / "snapshot.pt")),
        *("--metrics", str(folder / "metrics.json")),
    ]


def one_device(log: Path, folder: Path) -> Outcome:
    command = training("01_single_device.py", GLOBAL_BATCH, folder)
    show("python", command)
    with Processes(log) as processes:
        processes.start([sys.executable, *command])
        processes.wait()
    return outcome("one device", log, folder)


def two_nodes(log: Path, folder: Path) -> Outcome:
    """Two agents, one per node; they find each other at the first one's address."""
    ranks = NODES * RANKS_PER_NODE
    command = training("08_multinode_torchrun.py", GLOBAL_BATCH // ranks, folder)
    port = free_port()
    with Processes(log) as processes:
        for node in range(NODES):
            agent = [
                f"--nnodes={NODES}",
                f"--node-rank={node}",
                f"--nproc-per-node={RANKS_PER_NODE}",
                "--master-addr=127.0.0.1",
                f"--master-port={port}",
            ]
            show("torchrun", [*agent, *command])
            processes.start(
                [sys.executable, "-m", "torch.distributed.run", *agent, *command]
            )
        processes.wait()
    return outcome(f"{NODES} nodes x {RANKS_PER_NODE} ranks", log, folder)


def show(program: str, arguments: list[str]) -> None:
    """The command as a reader would type it, without the tour's own files."""
    shown = []
    for argument in arguments:
        if argument in ("--snapshot", "--metrics"):
            break
        shown.append(argument.replace(f"{ROOT}/", ""))
    lines = textwrap.wrap(
        " ".join(["$", program, *shown]),
        70,
        break_long_words=False,
        break_on_hyphens=False,
    )
    text = " \\\n          ".join(lines)
    console.print(f"      {text}", style="cyan", markup=False, soft_wrap=True)


def outcome(title: str, log: Path, folder: Path) -> Outcome:
    """What the training left behind.

    Raises:
        StageError: no numbers, or such that nothing was learnt.
    """
    try:
        metrics = json.loads((folder / "metrics.json").read_text())
        loss, accuracy = float(metrics["loss"]), float(metrics["accuracy"])
        float(metrics["samples_per_s"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StageError(f"it wrote no usable metrics ({error})") from error
    if not math.isfinite(loss) or accuracy < LOWEST_ACCURACY:
        raise StageError(
            f"it learnt too little: loss {loss:.4f}, accuracy {accuracy:.1%}"
        )
    steps = re.search(r"Steps (\d+)", log.read_text(encoding="utf-8"))
    return Outcome(title, metrics, int(steps[1]) if steps else 0)


def compare(outcomes: list[Outcome]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("training", no_wrap=True)
    names = ("world size", "steps", "loss", "accuracy", "samples/s")
    for name in names:
        table.add_column(name, justify="right")
    for one in outcomes:
        numbers = one.metrics
        table.add_row(
            one.title,
            str(numbers["world_size"]),
            str(one.steps * numbers["epochs"]),
            f"{numbers['loss']:.4f}",
            f"{numbers['accuracy']:.2%}",
            f"{numbers['samples_per_s']:,.0f}",
        )
    one, many = (outcome.metrics["samples_per_s"] for outcome in outcomes)
    explanation = (
        f"Both took {GLOBAL_BATCH} images per step and all images once an epoch, in "
        "another order and with other random numbers for the dropout. Each process "
        f"computed on one thread; this machine has {cores()} cores. The two nodes "
        f"reached {many / one:.2f} times the throughput of one device"
        + (
            ": the model is tiny and all ranks share these cores."
            if many < one
            else "."
        )
    )
    for part in (table, explanation):
        console.print(Padding(part, (0, 0, 0, 6)))


def cores() -> int:
    """Cores that this process may use: a batch job often has fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def build_site(log: Path) -> str:
    """Build the pages; returns where they are, or why there are none."""
    if sentence := why_not():
        return sentence
    with Processes(log, show=False) as processes:
        processes.start(build_command())
        processes.wait()
    return ""


def tour() -> None:
    started = time.monotonic()
    try:
        LOGS.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StageError(f"cannot write into {LOGS}: {error.strerror}") from error
    outcomes = []
    trainings = (("One device", one_device), ("Two nodes, two ranks each", two_nodes))
    for number, (title, train) in enumerate(trainings, start=1):
        with stage(number, title) as log, tempfile.TemporaryDirectory() as folder:
            outcomes.append(train(log, Path(folder)))
    with stage(3, "The same training, compared"):
        compare(outcomes)
    with stage(4, "The pages") as log:
        no_site = build_site(log)
        console.print(f"      {no_site or SITE.relative_to(ROOT)}")
    console.print(f"\nThe tour took {time.monotonic() - started:.0f} s. From here:")
    if not no_site:
        console.print("  make serve                   read the pages in a browser")
    console.print("  source .venv/bin/activate    use the workshop's commands, then:")
    console.print("  workshop next                the first exercise")


def main() -> int:
    # A closed terminal or a batch system's SIGTERM ends us as Ctrl-C does.
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    try:
        tour()
    except StageError as error:
        print(f"tour: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ntour: interrupted; all its processes are ended", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
