"""Count what one of N ranks holds, sends and computes when experts are spread.

    torchrun --standalone --nproc-per-node=4 src/instruments/22_cost.py \\
        src/22_expert_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/instruments/22_cost.py \\
        src/22_expert_parallel.py 300 --expert-ranks 2

It runs one step of the program, and rank 0 prints what it counted beside the formulas.
Per block, with e expert ranks and d = N/e copies of each expert:

* experts on a rank: E/e, each 2 H h + h + H parameters, with h = 4 H / k;
* sent for tokens: 8 H bytes for each row that goes to another rank, and for each that
  is from one: 4 H bytes in forward, and 4 H in backward;
* sent for counts: 8 E (e - 1)/e bytes, and for the loads 16 E (N - 1)/N;
* sent for gradients: 2 (d - 1)/d x the bytes of own experts, and 2 (N - 1)/N x those of
  all other parameters.

Then it prints how many rows each rank's experts compute, and the CPU time of that in
forward. Every block waits for its busiest rank.
"""

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common import mixture as mx
from common.byte_gpt import Sizes, sizes_of
from common.cost.counting import (
    FLOAT32,
    compare,
    load_program,
    model_parameters,
    model_states,
)
from common.cost.measure import count_step
from common.distributed import log, one_line_errors
from common.gpt_training import Batches, local_batch
from common.parallel.expert_parallel import ExpertGrid
from common.process_group import join_or_alone

ALONE = "it has all experts, and sends nothing"
INT64 = 8  # bytes


@dataclass(frozen=True)
class Parts:
    """How many parameters of a rank are whose."""

    experts: int  # of the E/e experts, all blocks together
    others: int  # the same on all ranks

    @property
    def all(self) -> int:
        return self.experts + self.others


def parts_of(sizes: Sizes, config: mx.MixtureOptions, expert_ranks: int) -> Parts:
    """The parameters of a rank, by formula."""
    width, hidden = sizes.width, sizes.hidden // config.top_k
    expert = 2 * width * hidden + hidden + width
    mlp = 2 * width * sizes.hidden + sizes.hidden + width
    others = model_parameters(sizes) + sizes.blocks * config.experts * width
    if not config.shared_expert:
        others -= sizes.blocks * mlp
    return Parts(sizes.blocks * config.experts // expert_ranks * expert, others)


def token_bytes(asked: Tensor, rank: int, width: int) -> int:
    """Bytes a rank sends for tokens in a step.

    ``asked`` [blocks, e, e]: how many rows go from one rank to another.
    """
    away = asked[:, rank].sum() - asked[:, rank, rank].sum()
    arrive = asked[:, :, rank].sum() - asked[:, rank, rank].sum()
    return 2 * FLOAT32 * width * int(away + arrive)


def other_bytes(
    sizes: Sizes, config: mx.MixtureOptions, grid: ExpertGrid, world_size: int
) -> int:
    """Bytes a rank sends for counts, loads and gradients in a step."""
    parts, e = parts_of(sizes, config, grid.ranks), grid.ranks
    copies = world_size // e
    counts = sizes.blocks * INT64 * config.experts
    gradients = 2 * FLOAT32 * parts.others * (world_size - 1) / world_size
    gradients += 2 * FLOAT32 * parts.experts * (copies - 1) / copies
    load = 2 * counts * (world_size - 1) / world_size
    return round(counts * (e - 1) / e + load + gradients)


class ExpertTime:
    """Adds up the CPU time of own experts in forward, as ``seconds``."""

    def __enter__(self) -> "ExpertTime":
        self.seconds, self._forward = 0.0, mx.Experts.forward
        forward = self._forward

        def timed(experts: nn.Module, tokens: Tensor, counts: Tensor) -> Tensor:
            start = time.thread_time()
            outputs = forward(experts, tokens, counts)
            self.seconds += time.thread_time() - start
            return outputs

        mx.Experts.forward = timed
        return self

    def __exit__(self, *error) -> None:
        mx.Experts.forward = self._forward


def rows_between(model: nn.Module, grid: ExpertGrid) -> Tensor:
    """Rows from each rank of the group to each: [blocks, e, e]."""
    counts = torch.stack([layer.counts for layer in mx.mixtures(model)])
    own = counts.view(len(counts), grid.ranks, -1).sum(-1)
    rows = [torch.empty_like(own) for _ in range(grid.ranks)]
    dist.all_gather(rows, own, group=grid.group)  # every rank of the group
    return torch.stack(rows, dim=1)


def say_work(computed: Tensor, seconds: float) -> None:
    """Rows [blocks, ranks], and this rank's CPU time; all ranks call this."""
    each = computed.sum(0).tolist()
    log("rows that each rank's experts compute: " + ", ".join(map(str, each)))
    times: list[float] = [0.0] * dist.get_world_size()
    dist.all_gather_object(times, seconds)
    shown = ", ".join(f"{1000 * own:.1f}" for own in times)
    log(f"CPU milliseconds of that in forward: {shown}")
    slowest = computed.max(1).values.sum() / computed.float().mean(1).sum()
    log(f"the busiest ranks of the blocks compute {slowest:.2f} times the mean")


@one_line_errors
def main() -> None:
    program = load_program(__doc__, ("22_expert_parallel.py",))
    config = program.parse_arguments()
    device = join_or_alone(ALONE)
    inputs, targets = map(local_batch, Batches(config, device).of_step(0))
    model, optimizer, grid = program.build(config, device)
    step = partial(program.train_step, model, optimizer, grid, inputs, targets)
    with ExpertTime() as watch:
        measured = count_step(model, optimizer, step)
    sizes, world_size = sizes_of(config), dist.get_world_size()
    asked = rows_between(model, grid)
    tokens = token_bytes(asked, grid.rank, sizes.width)
    rest = other_bytes(sizes, config, grid, world_size)
    formula = model_states(parts_of(sizes, config, grid.ranks).all)
    formula["sent in a step"] = tokens + rest
    log(compare(measured, formula, "bytes on rank 0"))
    own_rows = inputs.numel() * config.top_k * sizes.blocks
    even = 4 * FLOAT32 * sizes.width * own_rows * (grid.ranks - 1) // grid.ranks
    log(f"of that for tokens: {tokens:,} (all experts chosen equally: {even:,})")
    computed = asked.sum(1)  # [blocks, e]
    if world_size > grid.ranks:
        everywhere = [torch.empty_like(computed) for _ in range(world_size)]
        dist.all_gather(everywhere, computed)  # every rank
        computed = torch.cat(everywhere[:: grid.ranks], dim=1)
    say_work(computed, watch.seconds)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
