"""From one device to two nodes in a minute: what ``make tour`` shows.

Five stages: train on one device; the same with two ranks; the same as 2 nodes x 2
ranks, which are two torchrun agents on this machine, connected by its loopback
interface; a table and a bar chart that compare the three; the site. Whatever a stage
prints is also in ``_build/tour``.

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
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

try:
    from processes import Processes, StageError, console
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
except ImportError:
    sys.exit("tour: the environment is not there yet: run make tour")

from site_builder import SITE, build_command, why_not

from workshop.doctor import host_name
from workshop.doctor.cgroup import limits
from workshop.system import temporary

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "_build" / "tour"

EPOCHS, LEARNING_RATE = 6, 0.1
GLOBAL_BATCH = 128  # images per optimizer step, however many ranks share them
NODES, RANKS_PER_NODE = 2, 2
LOWEST_ACCURACY = 0.95
STAGES = 5
LONGEST_BAR = 30  # characters


@dataclass
class Outcome:
    """What a run reported: its ``--metrics`` file and its steps per epoch."""

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


# Stages


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def training(script: str, batch_size: int, folder: Path) -> list[str]:
    """The command line that both runs share, except for the batch per process."""
    return [
        str(ROOT / "src" / script),
        *(str(EPOCHS), str(EPOCHS), "--batch-size", str(batch_size)),
        *("--learning-rate", str(LEARNING_RATE)),
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


def two_ranks(log: Path, folder: Path) -> Outcome:
    command = ["--standalone", "--nproc-per-node=2"]
    command += training("07_torchrun.py", GLOBAL_BATCH // 2, folder)
    show("torchrun", command)
    with Processes(log) as processes:
        processes.start([sys.executable, "-m", "torch.distributed.run", *command])
        processes.wait()
    return outcome("2 ranks", log, folder)


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
    command = re.sub("(?<= )(--[a-z-]+) ", "\\1\N{NO-BREAK SPACE}", " ".join(shown))
    lines = textwrap.wrap(
        f"$ {program} {command}", 70, break_long_words=False, break_on_hyphens=False
    )
    text = " \\\n          ".join(lines).replace("\N{NO-BREAK SPACE}", " ")
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
    count = int(steps[1]) if steps else 0
    return Outcome(title, metrics, count)


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
    explanation = (
        f"All three took {GLOBAL_BATCH} images per step and every image once per "
        "epoch, in a different order and with different random numbers for dropout. "
        f"{explain_speed(outcomes)}"
    )
    for part in (table, bar_chart(outcomes), explanation):
        console.print(Padding(part, (0, 0, 1, 6)))


def bar_chart(outcomes: list[Outcome]) -> Table:
    """The throughput of each run, and how many times that of the first it is."""
    rates = [outcome.metrics["samples_per_s"] for outcome in outcomes]
    chart = Table.grid(padding=(0, 1))
    for outcome, rate in zip(outcomes, rates, strict=True):
        bar = "█" * max(1, round(LONGEST_BAR * rate / max(rates)))
        chart.add_row(outcome.title, f"[cyan]{bar}[/] {rate / rates[0]:.2f} x")
    return chart


def explain_speed(outcomes: list[Outcome]) -> str:
    """Why more ranks were faster here, or could not be."""
    one, *several = (outcome.metrics["samples_per_s"] for outcome in outcomes)
    if cores() == 1:
        return "This machine has one core: ranks take turns on it, so none is faster."
    possible = min(cores(), NODES * RANKS_PER_NODE)
    reached = max(several) / one
    told = (
        f"Each rank computed on one core; this machine has {cores()}, so at most "
        f"{possible} x is possible. The best of them processed {reached:.2f} times as "
        "many images per second as one device. "
    )
    if reached > possible:
        return told + (
            "More than is possible means that something else used these cores while "
            "the one device was measured: run the tour again when they are idle."
        )
    return told + (
        "The rest goes to averaging gradients, waiting for the slowest rank, and "
        "whatever else runs on these cores."
    )


def cores() -> int:
    """Cores that this process may use: batch jobs and containers get fewer than all."""
    usable = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
    allowed = limits().cpus
    if allowed is not None:  # 1.5 cores are one rank at full speed
        usable = min(usable, max(1, int(allowed)))
    return usable


def build_site(log: Path) -> str:
    """Build the pages; returns where they are, or why there are none."""
    if sentence := why_not():
        return sentence
    with Processes(log, show=False) as processes:
        processes.start(build_command())
        processes.wait()
    return ""


def refuse_what_would_hang() -> None:
    """Stop before anything starts if ranks could not connect, or write nothing.

    Raises:
        StageError: what is wrong with this machine, and the cure.
    """
    if why := temporary.problem():
        raise StageError(f"{why}: {temporary.CURE}")
    what, cure = host_name.problem()
    if what:
        raise StageError(f"the host name {what}: {cure}")


def tour() -> None:
    started = time.monotonic()
    try:
        LOGS.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StageError(f"cannot write into {LOGS}: {error.strerror}") from error
    refuse_what_would_hang()
    outcomes = []
    trainings = (
        ("One device", one_device),
        ("Two ranks", two_ranks),
        ("Two nodes, two ranks each", two_nodes),
    )
    for number, (title, train) in enumerate(trainings, start=1):
        with stage(number, title) as log, tempfile.TemporaryDirectory() as folder:
            outcomes.append(train(log, Path(folder)))
    with stage(4, "The same training, compared"):
        compare(outcomes)
    with stage(5, "The pages") as log:
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
