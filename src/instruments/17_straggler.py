"""Find the one slow rank of a DDP training run from how long the others wait for it.

    torchrun --standalone --nproc-per-node=4 src/instruments/17_straggler.py
    torchrun --standalone --nproc-per-node=4 src/instruments/17_straggler.py \\
        --slow 2 --by data
    torchrun --standalone --nproc-per-node=4 src/instruments/17_straggler.py \\
        --slow 1 --by compute

With --slow one rank is made slow on purpose. Start it on several nodes to find a slow
link. Each rank reads only its own clock, so the clocks of nodes needn't agree.
"""

import itertools
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.cost.links import describe_links
from common.distributed import (
    BadInput,
    Parser,
    log,
    one_line_errors,
    positive_float,
    positive_int,
)
from common.process_group import join_or_alone

ALONE = "no other waits for it, so none can be called slow"
LAYERS, WIDTH, BATCH_SIZE, WARM_UP = 4, 512, 128, 3
KINDS = ("data", "compute", "waiting")  # of a step, in ms, one after the other
NOTICED = 0.1  # of a step: less than that is noise


@dataclass(frozen=True)
class Config:
    """The command line."""

    steps: int  # to measure
    slow: int | None  # the rank to make slow
    by: str  # what is slow there, one of KINDS
    ms: float  # longer, in each step


class Stopwatch:
    """Moments of a step; on an accelerator, when it gets there, not when queued."""

    def __init__(self, device: torch.device):
        self.device, self.moments = device, {}

    def note(self, name: str) -> None:
        """Note this moment; a later one of the same name replaces it."""
        if self.device.type == "cpu":
            self.moments[name] = time.perf_counter()
        else:
            self.moments[name] = torch.Event(self.device, enable_timing=True)
            self.moments[name].record()

    def between(self, first: str, last: str) -> float:
        """Milliseconds from one moment to another."""
        begin, end = self.moments[first], self.moments[last]
        if self.device.type == "cpu":
            return 1000 * (end - begin)
        end.synchronize()
        return begin.elapsed_time(end)


# [start watch]
def watch_buckets(ddp_model: DDP, watch: Stopwatch) -> None:
    """Do to each bucket what DDP does, and note when the last one is sent and back."""

    def average(_state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        gradients = bucket.buffer().div_(dist.get_world_size())
        watch.note("handed over")  # nothing left to compute, if it is the last one
        work = dist.all_reduce(gradients, async_op=True)  # every rank, in this order
        assert work is not None  # None only on a rank outside of the group

        def done(future):
            watch.note("averaged")
            return future.value()[0]

        return work.get_future().then(done)

    ddp_model.register_comm_hook(None, average)


# [end watch]
def next_batch(device: torch.device, seconds: float) -> torch.Tensor:
    """A random batch; reading it takes ``seconds`` more on a slow rank."""
    time.sleep(seconds)
    return torch.randn(BATCH_SIZE, WIDTH, device=device)


def compute_more(model: nn.Module, inputs: torch.Tensor, seconds: float) -> None:
    """Imitate a slow device: run useless forward passes for ``seconds``."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        model(inputs)


def measure(config: Config, device: torch.device) -> list[float]:
    """Milliseconds of :data:`KINDS` of this rank, the median over the steps."""
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).to(device)
    devices = None if device.type == "cpu" else [device]
    ddp_model = DDP(model, devices)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch, rows = Stopwatch(device), []
    watch_buckets(ddp_model, watch)
    more = {"data": 0.0, "compute": 0.0}  # seconds that this rank takes longer
    if dist.get_rank() == config.slow:
        more[config.by] = config.ms / 1000
    for _ in range(WARM_UP + config.steps):
        watch.note("begins")
        inputs = next_batch(device, more["data"])
        watch.note("has data")
        compute_more(model, inputs, more["compute"])
        optimizer.zero_grad()
        ddp_model(inputs).square().mean().backward()
        optimizer.step()
        names = ("begins", "has data", "handed over", "averaged")
        rows.append([watch.between(*pair) for pair in itertools.pairwise(names)])
    kinds = zip(*rows[WARM_UP:], strict=True)
    return [statistics.median(kind) for kind in kinds]


def diagnose(table: Sequence[Sequence[float]]) -> tuple[int | None, str]:
    """(the slow rank, why), from each rank's data, compute and waiting.

    The rank that all wait for is the only one that doesn't wait: it arrives last. Its
    own waiting is what the all-reduce itself takes.
    """
    waiting = [row[KINDS.index("waiting")] for row in table]
    late = waiting.index(min(waiting))
    others = [row for rank, row in enumerate(table) if rank != late]
    data, compute, patience = (statistics.median(k) for k in zip(*others, strict=True))
    lateness, step = patience - min(waiting), data + compute + patience
    more = {"data": table[late][0] - data, "compute": table[late][1] - compute}
    why = max(more, key=more.__getitem__)
    if lateness > NOTICED * step and more[why] > lateness / 2:
        return late, why
    if min(waiting) > data + compute:
        return None, "link"
    return (late, "other work") if lateness > NOTICED * step else (None, "nothing")


def report(table: list[list[float]], device: torch.device) -> str:
    """The table of all ranks, and a sentence; all ranks call this."""
    lines = ["  rank" + "".join(f"{kind:>9}" for kind in KINDS) + "   ms in a step"]
    for rank, row in enumerate(table):
        lines.append(f"{rank:>6}" + "".join(f"{ms:9.1f}" for ms in row))
    if len(table) == 1:
        return "\n".join(lines)
    late, why = diagnose(table)
    waiting = [row[-1] for row in table]
    if late is not None:
        gap = statistics.median(waiting[:late] + waiting[late + 1 :]) - waiting[late]
        lines.append(f"Rank {late} is slow, by its {why}: the others wait {gap:.1f} ms")
    elif why == "nothing":
        lines.append("No rank is slow, and no link")
    else:
        lines.append("No rank is late, and all of them wait: for messages")
        lines.append(f"Links: {describe_links(device)}")
    return "\n".join(lines)


def parse_arguments() -> Config:
    parser = Parser(__doc__)
    add, shown = parser.add_argument, " (default: %(default)s)"
    add("--steps", type=positive_int, default=20, help="to measure" + shown)
    add("--slow", type=int, metavar="RANK", help="the rank to make slow")
    add("--by", choices=KINDS[:2], default="data", help="what is slow there" + shown)
    add("--ms", type=positive_float, default=100, help="longer, in each step" + shown)
    return Config(**vars(parser.parse_args()))


@one_line_errors
def main() -> None:
    config, device = parse_arguments(), join_or_alone(ALONE)
    ranks = dist.get_world_size()
    if config.slow is not None and not 0 <= config.slow < ranks:
        raise BadInput(f"--slow {config.slow}: choose one of 0 to {ranks - 1}")
    if config.slow is None and (config.by, config.ms) != ("data", 100):
        raise BadInput("--by and --ms say how a rank is slow: add --slow RANK")
    table = [None] * ranks
    dist.all_gather_object(table, measure(config, device))  # every rank: three numbers
    log(report(table, device))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
