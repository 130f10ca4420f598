"""Train with DDP, then with fewer and smaller messages, and time both over this link.

    torchrun --standalone --nproc-per-node=2 src/instruments/23_slow_link.py 100
    torchrun --standalone --nproc-per-node=2 src/instruments/23_slow_link.py 100 \\
        --local-steps 5 50 --loss 2.8
    torchrun --standalone --nproc-per-node=2 src/instruments/23_slow_link.py 100 \\
        --fragments 4 --delay 3        # one more way: sent during inner steps

On the practice cluster, `workshop cluster rate 200mbit` makes the link slow first. All
runs start from the same parameters, and rank r trains on the same text in each. The
seconds are those of the steps alone, until the test loss is at most --loss. It's tested
every --test-every steps, on rank 0, while the clock stands.

Bytes of a step are counted over K steps, beside 8 P (N-1)/N for DDP, the same by K for
local steps, and a quarter of it for int8, with the steps between two whole numbers.
"""

import argparse
import copy
import gc
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common import gpt_training
from common import local_steps as ls
from common.byte_gpt import batch_of_step, next_byte_loss
from common.cost.measure import Traffic
from common.distributed import (
    is_rank_0,
    log,
    one_line_errors,
    positive_float,
    positive_int,
    rank_seed,
    write_json,
)
from common.process_group import join_or_alone

ALONE = "there is no link to time"
TEST_BATCHES, TEST_BATCH_SIZE = 4, 16


@dataclass(frozen=True)
class Config(gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    local_steps: list[int]  # between two averages of a parameter
    loss: float  # the test loss that a run must reach
    test_every: int  # steps
    delay: int | None  # inner steps until a fragment's mean is mixed in
    fragments: int  # parts that are averaged in turn, with a delay


@dataclass(frozen=True)
class Way:
    """How ranks agree: by DDP in each step, or by an outer step in ``every``."""

    name: str
    every: int = 1
    rule: ls.OuterRule | None = None  # None: DDP
    fragments: int = 1


class Run:
    """A model that is trained in one way, from the same parameters as all others."""

    def __init__(self, way: Way, start: nn.Module, learning_rate: float):
        self.way, self.model = way, copy.deepcopy(start)
        parameters = list(self.model.parameters())
        self.optimizer = gpt_training.make_optimizer(parameters, learning_rate)
        self.fragments = ls.make_fragments(parameters, way.fragments)
        self.steps_done = 0
        self.trained = self.model if way.rule else DDP(self.model)

    def step(self, inputs: Tensor, targets: Tensor) -> None:
        """Every rank must reach this line: DDP sends in each, others in some."""
        self.optimizer.zero_grad()
        next_byte_loss(self.trained(inputs), targets).backward()
        self.optimizer.step()
        self.steps_done += 1
        if self.way.rule:
            ls.agree(self.fragments, self.steps_done, self.way.every, self.way.rule)

    def wait(self) -> None:
        """Until nothing is under way; every rank must reach this line."""
        for fragment in self.fragments:
            fragment.wait()

    def formula(self) -> float:
        """Bytes that a rank sends in a step."""
        ranks = dist.get_world_size()
        if self.way.rule:
            return ls.bytes_sent(self.fragments, self.way.every, self.way.rule, ranks)
        size = sum(parameter.nbytes for parameter in self.model.parameters())
        return 2 * (ranks - 1) / ranks * size


@dataclass
class Found:
    """What a run has shown on rank 0."""

    counted: float  # bytes of a step
    formula: float
    step_ms: float  # the mean: outer steps among them
    steps_to_loss: int | None  # None: never
    seconds_to_loss: float | None
    last_loss: float


def count_bytes(way: Way, start: nn.Module, config: Config) -> Found:
    """The bytes of a step, the mean over K steps of a run on a single byte."""
    run = Run(way, start, config.learning_rate)
    byte = torch.zeros(1, 1, dtype=torch.long, device=next(start.parameters()).device)
    for _ in range(2):  # DDP sends the layout of its buckets before the second
        run.step(byte, byte)
    run.steps_done = 0
    with Traffic() as traffic:
        for _ in range(way.every):
            run.step(byte, byte)
    run.wait()
    return Found(traffic.wire_bytes() / way.every, run.formula(), 0, None, None, 0)


@torch.no_grad()
def loss_on_test(run: Run, batches: gpt_training.Batches) -> float:
    """Of what all ranks agree on; rank 0 computes, and all get it."""
    model = run.model
    if run.way.rule:
        model = copy.deepcopy(model)
        parts = ls.make_fragments(model.parameters(), run.way.fragments)
        for part, agreed in zip(parts, run.fragments, strict=True):
            part.shared.copy_(agreed.shared)
            ls.copy_to_parameters(part, part.shared)
    losses = [0.0]
    if is_rank_0():
        losses = [loss_of_batch(model, batches, n) for n in range(TEST_BATCHES)]
    found = torch.tensor(statistics.mean(losses), device=batches.device)
    dist.broadcast(found, src=0)  # every rank must reach this line
    return found.item()


def loss_of_batch(
    model: nn.Module, batches: gpt_training.Batches, number: int
) -> float:
    """The mean loss of a batch of test text, the same for every model."""
    batch = batch_of_step(batches.test, number, TEST_BATCH_SIZE, batches.context)
    inputs, targets = (part.to(batches.device) for part in batch)
    return next_byte_loss(model(inputs), targets).item()


def train(
    way: Way,
    start: nn.Module,
    batches: gpt_training.Batches,
    config: Config,
) -> Found:
    """Count, then train and time ``--steps`` steps; all ranks."""
    found = count_bytes(way, start, config)
    run = Run(way, start, config.learning_rate)
    seconds = 0.0
    for first in range(0, config.steps, config.test_every):
        group = range(first, min(first + config.test_every, config.steps))
        dist.barrier()  # start the clock together
        since = time.perf_counter()
        for number in group:
            run.step(*batches.of_step(rank_seed(gpt_training.SEED, number)))
        dist.barrier()
        seconds += time.perf_counter() - since
        found.last_loss = loss_on_test(run, batches)
        if found.last_loss <= config.loss and found.steps_to_loss is None:
            found.steps_to_loss, found.seconds_to_loss = group.stop, seconds
    run.wait()
    found.step_ms = 1000 * seconds / config.steps
    return found


def line(name: str, found: Found) -> str:
    """A row of the table."""
    sent = f"{found.counted:>11,.0f} {found.formula:>11,.0f}"
    reached = f"{'-':>6} {'-':>8}"
    if found.seconds_to_loss is not None:
        reached = f"{found.steps_to_loss:>6} {found.seconds_to_loss:>8.1f}"
    return f"{name:<14} {sent} {found.step_ms:>8.1f} {reached} {found.last_loss:>7.3f}"


def ways_of(config: Config) -> list[Way]:
    """DDP, each number of local steps, and the last of them in other ways."""
    ways = [Way("DDP")]
    for every in config.local_steps:
        ways.append(Way(f"K = {every}", every, ls.OuterRule()))
        ways.append(Way(f"K = {every}, mean", every, ls.OuterRule(1.0, 0.0)))
    every = config.local_steps[-1]
    ways.append(Way(f"K = {every}, int8", every, ls.OuterRule(1.0, 0.0, int8=True)))
    if config.delay:
        rule = ls.OuterRule(1.0, 0.0, delay=config.delay, keep=0.5)
        ways.append(Way(f"K = {every}, delay", every, rule, config.fragments))
    return ways


def parse_arguments() -> Config:
    def add_options(parser: argparse.ArgumentParser) -> None:
        add, shown = parser.add_argument, " (default: %(default)s)"
        words = "inner steps between two averages, one or more numbers" + shown
        add("--local-steps", type=positive_int, nargs="+", default=[5, 20], help=words)
        words = "inner steps during which a fragment is sent, one more way"
        add("--delay", metavar="STEPS", type=positive_int, help=words)
        words = "of the parameters, for --delay" + shown
        add("--fragments", type=positive_int, default=1, help=words)
        words = "the test loss that a run must reach" + shown
        add("--loss", type=positive_float, default=3.0, help=words)
        words = "steps between two tests" + shown
        add("--test-every", type=positive_int, default=10, help=words)

    config = gpt_training.parse_text_training(__doc__, Config, add_options)
    ls.check_turns(config.local_steps[-1], config.fragments, config.delay or 0)
    return config


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    ranks = dist.get_world_size()
    gpt_training.check_divides(config.batch_size, ranks, "--batch-size", "ranks")
    batches = gpt_training.Batches(config, device)
    batches.batch_size = config.batch_size // ranks
    start = gpt_training.make_gpt(config, device)
    log(f"{'':<14} {'bytes sent in a step':>23} {'ms in a':>8} {'to a loss of':>15}")
    titles = f"{'counted':>11} {'formula':>11} {'step':>8} {'steps':>6} {'seconds':>8}"
    log(f"{'':<14} {titles} {'at end':>7}   (loss {config.loss:g})")
    metrics = {}
    for way in ways_of(config):
        found = train(way, start, batches, config)
        log(line(way.name, found))
        metrics[way.name] = vars(found)
    write_json(config.metrics, metrics)
    gc.collect()  # DDP must be gone before its group is
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
