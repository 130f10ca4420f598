"""Train the byte GPT on a grid: pieces along one axis, tokens along the other, FSDP.

    torchrun --standalone --nproc-per-node=4 src/21_context_fsdp.py 300
    torchrun --standalone --nproc-per-node=4 src/21_context_fsdp.py 300 \\
        --context-ranks 4

Ranks of one context group pass the keys and values of the same sequences round, in
zigzag. All ranks of the grid share one set of shards, as each has computed on other
tokens. The losses equal those of 13_train_gpt.py, up to rounding.
"""

import argparse
import warnings
from dataclasses import dataclass
from functools import partial

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard

from common.byte_gpt import ByteGPT, next_byte_loss
from common.checkpoint import fill
from common.distributed import BadInput, log, one_line_errors, positive_int
from common.gpt_training import (
    SEED,
    Batches,
    Progress,
    TextConfig,
    check_divides,
    make_gpt,
    make_optimizer,
    parse_text_training,
    run_and_exit,
)
from common.parallel import context_parallel as cp
from common.parallel.context_parallel import Cut
from common.parallel.ring_attention import ring_attention
from common.process_group import join_or_alone, refuse_messages_between_shared

ALONE = "it has all of every sequence and all parameters, and sends nothing"
CONTEXT_RANKS = 2  # unless --context-ranks says otherwise


@dataclass(frozen=True)
class Config(TextConfig):
    """The command line; the same on all ranks."""

    context_ranks: int | None  # None: CONTEXT_RANKS, or 1 for a single rank


def make_grid(config: Config, device: torch.device) -> DeviceMesh:
    """Data ranks x context ranks; a context group has consecutive numbers.

    Raises:
        BadInput: the ranks or the batch cannot be divided.
    """
    ranks = dist.get_world_size()
    context = config.context_ranks or min(CONTEXT_RANKS, ranks)
    data, rest = divmod(ranks, context)
    if rest:
        raise BadInput(f"--context-ranks {context} does not divide {ranks} ranks")
    check_divides(config.batch_size, data, "--batch-size", "data ranks")
    log(f"Grid: data {data} x context {context}")
    # Every rank must reach this line: making any group takes all ranks.
    return init_device_mesh(
        device.type, (data, context), mesh_dim_names=("data", "context")
    )


def cut_over(mesh: DeviceMesh) -> Cut:
    """Which tokens of its sequences this rank of a context group holds."""
    context = mesh["context"]
    return Cut(
        context.size(), context.get_local_rank(), zigzag=True, group=context.get_group()
    )


def build(
    config: Config, cut: Cut, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """The model that one device would train, for own tokens and in shards."""
    with torch.device("meta"):  # shapes, and no memory for the numbers
        model = make_gpt(config, device)
    cp.split_gpt(model, cut, ring_attention)
    # All ranks share the shards: those of a context group as well.
    all_ranks = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=all_ranks)
    fully_shard(model, mesh=all_ranks)  # what is left: embedding and head
    fill(model, device, SEED)
    return model, make_optimizer(model.parameters(), config.learning_rate)


def part_of(batch: Tensor, mesh: DeviceMesh) -> Tensor:
    """The sequences of this rank's context group: [B, T] -> [B / d, T]."""
    data = mesh["data"]
    return batch.chunk(data.size())[data.get_local_rank()]


def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    cut: Cut,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B / d, T] of the group; own mean loss."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(cut.take(inputs)), cut.take(targets))
    # FSDP reduces to the mean over all ranks. Each has the mean loss of equally many
    # tokens, so that's the mean over the tokens of the whole batch.
    loss.backward()
    optimizer.step()
    return loss.detach()


def whole_scores(model: ByteGPT, cut: Cut, inputs: Tensor) -> Tensor:
    """The scores of all tokens on all ranks: [B, T] -> [B, T, 256]."""
    return cp.whole_scores(model(cut.take(inputs)), cut)


def parse_arguments() -> Config:
    # The loss does nothing in place to the scores, which is what this warns of.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")

    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--context-ranks",
            metavar="N",
            type=positive_int,
            help="ranks that share each sequence "
            f"(default: {CONTEXT_RANKS}, or 1 for a single rank)",
        )

    return parse_text_training(__doc__, Config, add_options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    mesh = make_grid(config, device)
    cut = cut_over(mesh)
    batches = Batches(config, device)
    model, optimizer = build(config, cut, device)
    progress = Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = (part_of(batch, mesh) for batch in batches.of_step(step))
        loss = train_step(model, optimizer, cut, inputs, targets)
        progress.note(step, loss / dist.get_world_size())
    # Every rank must call this: each needs the others' shards, keys and scores.
    progress.report(batches.test_loss(partial(whole_scores, model, cut)))
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
