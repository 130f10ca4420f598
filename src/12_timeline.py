"""Watch which of two devices computes when, with and without micro-batches.

Run from the folder of the workshop:

    python src/12_timeline.py                      # a batch in one piece
    python src/12_timeline.py --micro-batches 4
    python src/12_timeline.py --json timeline.json  # for a drawing
"""

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from common.distributed import (
    BadInput,
    Parser,
    check_output_file,
    free_port,
    is_rank_0,
    log,
    one_line_errors,
    positive_int,
)

FIRST, SECOND = 0, 1  # the ranks that hold the two parts
LAYERS, WIDTH, BATCH_SIZE = 8, 512, 256  # all alike, so that the halves are
STEPS = 40  # the shortest is shown: other programs disturb the longer ones

Event = tuple[str, float, float]  # such as F0, begins, ends: in ms of one clock


class Timeline:
    """Notes when each forward and backward ran."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.counts: Counter[str] = Counter()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Time the body of a ``with`` statement; its number is the micro-batch's."""
        letter = phase[0].upper()
        begins = 1000 * time.monotonic()  # one clock for all processes of a machine
        yield
        ends = 1000 * time.monotonic()
        self.events.append((f"{letter}{self.counts[letter]}", begins, ends))
        self.counts[letter] += 1


def make_half(rank: int) -> nn.Sequential:
    """Half of the layers; each is WIDTH x WIDTH numbers and a bias."""
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    return layers[: LAYERS // 2] if rank == FIRST else layers[LAYERS // 2 :]


def run_step(half: nn.Module, parts: tuple[torch.Tensor, ...]) -> list[Event]:
    """Forward and backward of all micro-batches, as in 12_model_parallel.py."""
    first, timeline, waiting = dist.get_rank() == FIRST, Timeline(), []
    other = SECOND if first else FIRST
    for part in parts:
        if not first:
            dist.recv(part, src=other)
            part.requires_grad_()
        with timeline("forward"):
            hidden = half(part)
        if first:
            dist.send(hidden.detach(), dst=other)
        waiting.append((part, hidden))
    for part, hidden in waiting:
        gradient = torch.ones_like(hidden)  # of the sum of all numbers
        if first:
            dist.recv(gradient, src=other)
        with timeline("backward"):
            hidden.backward(gradient)
        if not first:
            dist.send(part.grad, dst=other)
    return timeline.events


def run_steps(rank: int, micro_batches: int) -> list[list[Event]]:
    """What this rank computed when, in each of a few steps."""
    half, steps = make_half(rank), []
    for _ in range(STEPS):
        half.zero_grad()
        # the second rank overwrites what it has with what it receives
        parts = torch.randn(BATCH_SIZE, WIDTH).chunk(micro_batches)
        parts = tuple(part.clone() for part in parts)
        dist.barrier()  # both ranks: only here, so that a step begins for both
        steps.append(run_step(half, parts))
    return steps


# [start slots]
def slots(orders: list[list[str]]) -> list[list[str]]:
    """What each device computes in each slot, if every task takes one slot.

    ``orders`` are the tasks of each device in their order. A device begins its next
    one as soon as that can be: ``F3`` needs the F3 of the device before, ``B3`` the
    B3 of the device after. An empty text is a slot in which a device waits.
    """
    waiting, done = [list(tasks) for tasks in orders], set()
    rows: list[list[str]] = [[] for _ in orders]
    while any(waiting):
        now = []
        for device, tasks in enumerate(waiting):
            task = tasks[0] if tasks else ""
            source = device - 1 if task.startswith("F") else device + 1
            ready = source not in range(len(orders)) or (source, task) in done
            rows[device].append(task if ready else "")
            if task and ready:
                now.append((device, tasks.pop(0)))
        if not now:
            raise ValueError(f"the devices wait for each other: {orders}")
        done.update(now)  # only from the next slot on
    return rows


def idle_share(rows: list[list[str]]) -> Fraction:
    """Empty slots of all slots, over all devices."""
    return Fraction(sum(row.count("") for row in rows), sum(map(len, rows)))


# [end slots]
def shortest(steps: list[list[list[Event]]]) -> list[list[Event]]:
    """The step that took least time, its clock set to 0 where it begins."""

    def begins(step: list[list[Event]]) -> float:
        return min(begin for events in step for _, begin, _ in events)

    def ends(step: list[list[Event]]) -> float:
        return max(end for events in step for _, _, end in events)

    step = min(steps, key=lambda step: ends(step) - begins(step))
    zero = begins(step)
    return [[(name, a - zero, b - zero) for name, a, b in events] for events in step]


def describe(step: list[list[Event]], micro_batches: int) -> str:
    """The order on a grid, how much of it is idle, and how much by the clock."""
    rows = slots([[name for name, _, _ in events] for events in step])
    lines = [
        f"{LAYERS} layers of {WIDTH} on {len(rows)} devices, a batch of {BATCH_SIZE} "
        f"in {micro_batches} micro-batch{'es' if micro_batches > 1 else ''}"
    ]
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


def write_timeline(path: Path, step: list[list[Event]], micro_batches: int) -> None:
    """Write one step: for each device a list of [task, begins, ends] in ms."""
    rows = [[[x, round(a, 3), round(b, 3)] for x, a, b in events] for events in step]
    recorded = {"torch": torch.__version__, "micro_batches": micro_batches}
    try:
        text = json.dumps(recorded | {"devices": rows}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write --json {path}: {error.strerror}") from error


@one_line_errors
def run_rank(rank: int, world_size: int, args: argparse.Namespace) -> None:
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    everyone: list = [None] * world_size
    # every rank must reach this line
    dist.all_gather_object(everyone, run_steps(rank, args.micro_batches))
    step = shortest([list(pair) for pair in zip(*everyone, strict=True)])
    log(describe(step, args.micro_batches))
    if args.json and is_rank_0():
        write_timeline(args.json, step, args.micro_batches)
    dist.destroy_process_group()


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument(
        "--micro-batches",
        metavar="M",
        type=positive_int,
        default=1,
        help="parts of a batch, one after the other (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the timeline")
    args = parser.parse_args()
    if BATCH_SIZE % args.micro_batches:
        raise BadInput(
            f"--micro-batches {args.micro_batches} does not divide the batch of "
            f"{BATCH_SIZE}: choose a power of 2"
        )
    if args.json:
        check_output_file(args.json, "--json")
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(free_port())
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    mp.spawn(run_rank, args=(2, args), nprocs=2)


if __name__ == "__main__":
    main()
