"""Show which of two devices computes when, with and without micro-batches.

python src/instruments/12_timeline.py                      # a batch in one piece
python src/instruments/12_timeline.py --micro-batches 4    # --json FILE: for a drawing
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import (
    BadInput,
    Parser,
    log,
    one_line_errors,
    output_file,
    positive_int,
    write_json,
)
from common.parallel.model_parallel import start_ranks

FIRST = 0  # the rank that holds the first half
LAYERS, WIDTH, BATCH_SIZE = 8, 512, 256  # all alike, so that the halves are
STEPS = 40  # the shortest is shown: other programs disturb the longer ones


@dataclass(frozen=True)
class Config:
    """The command line."""

    micro_batches: int  # parts of a batch
    json: Path | None  # where the timeline is written


Event = tuple[str, float, float]  # such as F0, begins, ends: in ms of one clock


@contextmanager
def timed(task: str, events: list[Event]) -> Iterator[None]:
    """Time the body of a ``with`` statement."""
    begins = 1000 * time.monotonic()  # one clock for all processes of a machine
    yield
    events.append((task, begins, 1000 * time.monotonic()))


def make_half(rank: int) -> nn.Sequential:
    """Half of the layers; each is WIDTH x WIDTH numbers and a bias."""
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    return layers[: LAYERS // 2] if rank == FIRST else layers[LAYERS // 2 :]


def run_step(half: nn.Module, parts: tuple[torch.Tensor, ...]) -> list[Event]:
    """Forward and backward of all micro-batches, as in 12_two_processes.py."""
    rank, events, waiting = dist.get_rank(), [], []
    first, other = rank == FIRST, 1 - rank
    for k, part in enumerate(parts):
        if not first:
            dist.recv(part, src=other)
            part.requires_grad_()
        with timed(f"F{k}", events):
            hidden = half(part)
        if first:
            dist.send(hidden.detach(), dst=other)
        waiting.append((part, hidden))
    for k, (part, hidden) in enumerate(waiting):
        gradient = torch.ones_like(hidden)  # of the sum of all numbers
        if first:
            dist.recv(gradient, src=other)
        with timed(f"B{k}", events):
            hidden.backward(gradient)
        if not first:
            dist.send(part.grad, dst=other)
    return events


def run_steps(rank: int, micro_batches: int) -> list[list[Event]]:
    """What this rank computed when, in each of a few steps."""
    half, steps = make_half(rank), []
    for _ in range(STEPS):
        half.zero_grad()
        # the second rank overwrites what it has with what it receives
        batch = torch.randn(BATCH_SIZE, WIDTH)
        parts = tuple(part.clone() for part in batch.chunk(micro_batches))
        dist.barrier()  # both ranks, so that a step begins for both
        steps.append(run_step(half, parts))
    return steps


# [start slots]
def slots(orders: list[list[str]]) -> list[list[str]]:
    """What each device computes in each slot, if every task takes one slot.

    ``orders`` are the tasks of each device. It starts the next one as soon as it can:
    ``F3`` needs the F3 of the device before, ``B3`` the B3 of the device after. Empty
    text is a slot in which a device idles.
    """
    waiting, done = [list(tasks) for tasks in orders], set()
    rows: list[list[str]] = [[] for _ in orders]
    while any(waiting):
        now = []
        for device, tasks in enumerate(waiting):
            task = tasks[0] if tasks else ""
            source = device - 1 if task.startswith("F") else device + 1
            ready = source not in range(len(orders)) or (source, task) in done
            shown = task if ready else ""
            rows[device].append(shown)
            if shown:
                now.append((device, tasks.pop(0)))
        if not now:
            raise ValueError(f"the devices wait for each other: {orders}")
        done.update(now)  # only from the next slot on
    return rows


def idle_share(rows: list[list[str]]) -> Fraction:
    """The share of all slots, over all devices, that are empty."""
    return Fraction(sum(row.count("") for row in rows), sum(map(len, rows)))


# [end slots]
def shortest(steps: list[list[list[Event]]]) -> list[list[Event]]:
    """The fastest step, with its clock set to 0 at its start."""

    def span(step: list[list[Event]]) -> tuple[float, float]:
        moments = [time for events in step for _, *times in events for time in times]
        return min(moments), max(moments)

    step = min(steps, key=lambda step: span(step)[1] - span(step)[0])
    zero, _ = span(step)
    return [[(name, a - zero, b - zero) for name, a, b in events] for events in step]


def describe(step: list[list[Event]], micro_batches: int) -> str:
    """The order on a grid, how much of it is idle, and how much by the clock."""
    rows = slots([[name for name, _, _ in events] for events in step])
    batch = f"batch size {BATCH_SIZE}, micro-batches {micro_batches}"
    lines = [f"{LAYERS} layers of {WIDTH} on {len(rows)} devices, {batch}"]
    wide = max(len(task) for row in rows for task in row) + 1
    for device, row in enumerate(rows):
        texts = (f"{task or '.':>{wide}}" for task in row)
        lines.append(f"device {device}  " + "".join(texts))
    predicted = Fraction(len(rows) - 1, micro_batches + len(rows) - 1)
    lines.append(f"Idle slots: {idle_share(rows)} of all; (p-1)/(m+p-1) is {predicted}")
    whole = max(end for events in step for _, _, end in events)
    for device, events in enumerate(step):
        busy = sum(end - begin for _, begin, end in events)
        lines.append(f"Device {device} computed {busy / whole:.0%} of {whole:.1f} ms")
    return "\n".join(lines)


@one_line_errors
def run_rank(rank: int, world_size: int, config: Config) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    everyone: list = [None] * world_size
    # every rank must reach this line
    dist.all_gather_object(everyone, run_steps(rank, config.micro_batches))
    step = shortest([list(pair) for pair in zip(*everyone, strict=True)])
    log(describe(step, config.micro_batches))
    if config.json:
        rows = [[[x, round(a, 3), round(b, 3)] for x, a, b in own] for own in step]
        recorded = {"micro_batches": config.micro_batches, "devices": rows}
        write_json(config.json, {"torch": torch.__version__} | recorded)
    dist.destroy_process_group()


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    add, parts = parser.add_argument, "parts of a batch (default: %(default)s)"
    add("--micro-batches", metavar="M", type=positive_int, default=1, help=parts)
    add("--json", type=output_file, metavar="FILE", help="write the timeline")
    config = Config(**vars(parser.parse_args()))
    if BATCH_SIZE % config.micro_batches:
        raise BadInput(
            f"--micro-batches {config.micro_batches} must divide {BATCH_SIZE}"
        )
    start_ranks(run_rank, 2, config)


if __name__ == "__main__":
    main()
