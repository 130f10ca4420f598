"""Train a byte GPT whose experts are spread over ranks: tokens go to them and back.

    torchrun --standalone --nproc-per-node=4 src/22_expert_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/22_expert_parallel.py 300 \\
        --expert-ranks 2                            # two copies of each expert
    torchrun --standalone --nproc-per-node=2 src/22_expert_parallel.py 600 \\
        --save-every 300                            # resumes on any number of ranks

Every rank computes on its own part of the batch, and holds some of the experts. The
losses equal those of 22_mixture_of_experts.py, up to rounding, unless tokens are
dropped: with --capacity-factor, each rank's tokens have a capacity of their own.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from common import gpt_training, snapshot
from common import mixture as mx
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import BadInput, is_rank_0, log, one_line_errors, positive_int
from common.parallel import expert_parallel as ep
from common.parallel.expert_parallel import ExpertGrid
from common.process_group import join_or_alone

ALONE = "it has all experts, and exchanges nothing"


@dataclass(frozen=True)
class Config(mx.MixtureOptions, gpt_training.SaveOptions, gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    expert_ranks: int  # that hold all experts together; 0: all ranks


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer, ExpertGrid]:
    """The model with this rank's experts; its optimizer; who has the other experts."""
    model = gpt_training.make_gpt(config, device)
    mx.replace_mlps(model, mx.mixture_of(config))
    grid = ep.make_grid(config.expert_ranks)
    ep.spread_experts(model, grid)
    optimizer = gpt_training.make_optimizer(model.parameters(), config.learning_rate)
    return model, optimizer, grid


def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    grid: ExpertGrid,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B/N, T] of this rank; their mean loss."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    load = total_load(model)
    (loss + mx.balance_loss(model, load)).backward()
    ep.average_gradients(model, grid)
    optimizer.step()
    mx.shift_biases(model, load)
    return loss.detach()


def total_load(model: ByteGPT) -> Tensor:
    """How many tokens of the global batch chose each expert: [blocks, E]."""
    load = mx.loads(model)
    dist.all_reduce(load)  # every rank; [blocks, E] -> [blocks, E]
    return load


def save_snapshot(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    grid: ExpertGrid,
    steps_run: int,
    path: Path,
) -> str:
    """Rank 0 writes a file without any trace of the grid; all ranks call this."""
    state = ep.whole_state(model, optimizer, grid)
    if not is_rank_0():
        return ""
    return snapshot.save_or_continue(state | {"steps_run": steps_run}, path)


def load_snapshot(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    grid: ExpertGrid,
    path: Path,
) -> int:
    """Each rank takes its experts of what rank 0 reads; the steps run, or 0.

    Rank 0 decides: a folder that the nodes don't share may have a snapshot on some.
    """
    state = snapshot.read_for_all(path)  # every rank must reach this line
    if state is None:
        return 0
    with snapshot.resuming(path, state):
        ep.load_whole_state(model, optimizer, state, grid)
        steps_run = state["steps_run"]
    return steps_run


def parse_arguments() -> Config:
    def add_ranks(parser: argparse.ArgumentParser) -> None:
        words = "ranks that hold all experts together (default: all ranks)"
        parser.add_argument("--expert-ranks", type=positive_int, default=0, help=words)

    options = mx.add_mixture_options, gpt_training.add_save_options, add_ranks
    return gpt_training.parse_text_training(__doc__, Config, *options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE, timeout=None)  # others wait while rank 0 writes
    if config.save_every and is_rank_0():
        gpt_training.claim_snapshot(config.snapshot)
    batches = gpt_training.Batches(config, device)
    model, optimizer, grid = build(config, device)
    steps_run, not_saved = 0, ""
    if config.save_every:
        steps_run = load_snapshot(model, optimizer, grid, config.snapshot)
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps(steps_run):
        inputs, targets = map(gpt_training.local_batch, batches.of_step(step))
        loss = train_step(model, optimizer, grid, inputs, targets)
        progress.note(step, loss / dist.get_world_size())
        if config.save_every and (step + 1) % config.save_every == 0:
            done = step + 1, config.snapshot
            not_saved = save_snapshot(model, optimizer, grid, *done)
    log(mx.describe_load(total_load(model)))
    # Every rank must call this: each has some of the experts only.
    progress.report(batches.test_loss(model))
    dist.destroy_process_group()
    if not_saved:
        raise BadInput(not_saved)


if __name__ == "__main__":
    main()
