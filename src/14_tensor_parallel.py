"""Train a byte GPT cut like that of 14_tensor_by_hand.py, but by parallelize_module.

    torchrun --standalone --nproc-per-node=2 src/14_tensor_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_parallel.py 300 \\
        --sequence-parallel

All ranks see the same batch; the ranks must divide --heads. The losses are those of
13_train_gpt.py, to rounding. With --sequence-parallel the ranks must divide --context.
"""

import argparse

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

from common import tensor_formulas as formulas
from common.accounting import (
    compare,
    count_step,
)
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import describe_world, join, log, one_line_errors
from common.gpt_training import (
    Text,
    count_parameters,
    make_gpt,
    make_optimizer,
    parse_text_training,
    run_and_exit,
    sizes_of,
)
from common.tensor_layers import add_options, check_sizes
from common.tensor_plan import block_plan


# [start plan]
def ends_plan(sequence_parallel: bool) -> dict[str, ParallelStyle]:
    """The styles of what comes before the blocks and after them."""
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
    for block in model.blocks:
        parallelize_module(block, mesh, block_plan(sequence_parallel))
    parallelize_module(model, mesh, ends_plan(sequence_parallel))


# [end plan]
# [start step]
def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> float:
    """One step: inputs and targets [B, T], the same on all ranks; the mean loss."""
    optimizer.zero_grad()
    with loss_parallel():  # backward, too: it has to know that scores are in parts
        loss = next_byte_loss(model(inputs), targets)
        loss.backward()
    optimizer.step()
    return loss.full_tensor().item()


# [end step]
def count_a_step(mesh: DeviceMesh, text: Text, args: argparse.Namespace) -> str:
    """The table of what rank 0 holds and sends, counted in a step on a copy."""
    copy = make_gpt(args, text.device)
    split_gpt(copy, mesh, args.sequence_parallel)
    optimizer = make_optimizer(copy.parameters(), args.learning_rate)
    inputs, targets = text.batch(0)
    measured = count_step(
        copy, optimizer, lambda: train_step(copy, optimizer, inputs, targets)
    )
    world = dist.get_world_size(), dist.get_rank()
    sliced = args.sequence_parallel
    formula = formulas.by_torch(sizes_of(args), len(inputs), *world, sliced)
    return compare(measured, formula, "bytes on rank 0")


def train(args: argparse.Namespace, device: torch.device) -> None:
    """Split the model, train it, print the numbers."""
    text = Text(args, device)
    model = make_gpt(args, device)
    log(f"{count_parameters(model):,} parameters on {describe_world(device)}")
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    split_gpt(model, mesh, args.sequence_parallel)
    optimizer = make_optimizer(model.parameters(), args.learning_rate)
    log(count_a_step(mesh, text, args))
    for step, inputs, targets in text.steps():
        text.note(step, train_step(model, optimizer, inputs, targets))
    # Every rank: full_tensor() gathers the scores.
    text.report(text.test_loss(lambda inputs: model(inputs).full_tensor()))


@one_line_errors
def main() -> None:
    args = parse_text_training(__doc__, add_options)
    device = join("14_tensor_parallel.py")
    check_sizes(args)
    train(args, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
