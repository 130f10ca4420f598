"""Train a byte GPT, cut as in 14_tensor_by_hand.py, with parallelize_module.

    torchrun --standalone --nproc-per-node=2 src/14_tensor_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_parallel.py 300 \\
        --sequence-parallel

All ranks get the same batch, and their number must divide --heads. The losses equal
those of 13_train_gpt.py, up to rounding. With --sequence-parallel the number of ranks
must also divide --context.
"""

import argparse
from dataclasses import dataclass

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleOutput,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import one_line_errors
from common.gpt_training import (
    Batches,
    Progress,
    TextConfig,
    check_divides,
    make_gpt,
    make_optimizer,
    parse_text_training,
    run_and_exit,
)
from common.parallel.mesh import split_blocks
from common.process_group import join_or_alone

ALONE = "it has all columns and rows of every layer, and sends nothing"


@dataclass(frozen=True)
class Config(TextConfig):
    """The command line; the same on all ranks."""

    sequence_parallel: bool


# [start plan]
def ends_plan(sequence_parallel: bool) -> dict[str, ParallelStyle]:
    """The styles of the layers before and after the blocks."""
    if not sequence_parallel:
        return {"head.score": scores_of_own_bytes(Replicate())}
    return {
        "embed": PrepareModuleOutput(
            output_layouts=Replicate(), desired_output_layouts=Shard(1)
        ),
        "head.norm": SequenceParallel(),
        "head.score": scores_of_own_bytes(Shard(1)),
    }


def scores_of_own_bytes(stream: Replicate | Shard) -> ParallelStyle:
    """Scores that stay on their ranks, as a DTensor: for loss_parallel."""
    return ColwiseParallel(
        input_layouts=stream, output_layouts=Shard(-1), use_local_output=False
    )


def split_gpt(model: ByteGPT, mesh: DeviceMesh, sequence_parallel: bool) -> None:
    """Leave this rank its parts of the layers; the modules stay the same."""
    if sequence_parallel:
        check_divides(model.sizes.context, mesh.size(), "--context", "ranks")
    split_blocks(model, mesh, sequence_parallel)
    parallelize_module(model, mesh, ends_plan(sequence_parallel))


# [end plan]
def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """This rank's parts of the model that one device would train; their optimizer."""
    model = make_gpt(config, device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    split_gpt(model, mesh, config.sequence_parallel)
    # On a GPU, AdamW's own choice is one kernel for many parameters (foreach), which
    # takes no mix: the layers of the plan have DTensors, the others tensors.
    optimizer = make_optimizer(model.parameters(), config.learning_rate, foreach=False)
    return model, optimizer


# [start step]
def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """One step: inputs and targets [B, T], the same on all ranks; the mean loss."""
    optimizer.zero_grad()
    with loss_parallel():  # also around backward, which must know that scores are cut
        loss = next_byte_loss(model(inputs), targets)
        loss.backward()
    optimizer.step()
    return loss.detach().full_tensor()  # each rank has it: sends nothing


# [end step]
def parse_arguments() -> Config:
    def add_options(parser: argparse.ArgumentParser) -> None:
        sliced = "give each rank a slice of the context between the parallel layers"
        parser.add_argument("--sequence-parallel", action="store_true", help=sliced)

    return parse_text_training(__doc__, Config, add_options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    batches = Batches(config, device)
    model, optimizer = build(config, device)
    progress = Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        loss = train_step(model, optimizer, inputs, targets)
        progress.note(step, loss / dist.get_world_size())
    # Every rank: full_tensor() gathers the scores.
    progress.report(batches.test_loss(lambda inputs: model(inputs).full_tensor()))
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
