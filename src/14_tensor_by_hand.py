"""Train a byte GPT with a part of every layer on each rank, by hand.

    torchrun --standalone --nproc-per-node=2 src/14_tensor_by_hand.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_by_hand.py 300
    torchrun --standalone --nproc-per-node=4 src/14_tensor_by_hand.py 300 \\
        --sequence-parallel

All ranks get the same batch, and their number must divide --heads. The losses equal
those of 13_train_gpt.py, up to rounding. With --sequence-parallel the number of ranks
must also divide --context.
"""

import argparse

import torch
import torch.distributed as dist

from common.byte_gpt import ByteGPT
from common.distributed import one_line_errors
from common.gpt_training import (
    Text,
    check_divides,
    make_gpt,
    make_optimizer,
    parse_text_training,
)
from common.parallel.tensor_parallel import (
    Borders,
    split_gpt,
    sum_kept_whole,
    vocabulary_loss,
    whole_scores,
)
from common.process_group import join

SLICED = 1  # the tensor dim of [B, T, width] that slices divide


# [start f and g]
def summed(x: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' ``x`` in new memory: autograd may still need ``x``."""
    total = x.clone(memory_format=torch.contiguous_format)
    # Every rank. [shape] -> [shape], 2(t-1)/t x its bytes for t ranks.
    dist.all_reduce(total)
    return total


class CopyToRanks(torch.autograd.Function):  # f of Megatron-LM
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)  # every rank has it already

    @staticmethod
    def backward(ctx, gradient):
        return summed(gradient)  # each rank has only its own part's gradient of x


class SumOverRanks(torch.autograd.Function):  # g of Megatron-LM
    @staticmethod
    def forward(ctx, x):
        return summed(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient  # a sum passes the same gradient to each of its parts


# [end f and g]
# [start slices]
def gathered(x: torch.Tensor) -> torch.Tensor:
    """[B, T/t, width] on each of t ranks -> [B, T, width] on all."""
    slices = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    # Every rank. (t-1) x the bytes of a slice, half of what an all_reduce sends.
    dist.all_gather(slices, x.contiguous())
    return torch.cat(slices, dim=SLICED)


def summed_slice(x: torch.Tensor) -> torch.Tensor:
    """[B, T, width] on each of t ranks -> the sum's own slice [B, T/t, width]."""
    slices = [part.contiguous() for part in x.chunk(dist.get_world_size(), SLICED)]
    own = torch.empty_like(slices[0])
    # Every rank. (t-1)/t x the bytes of x, the other half of an all_reduce.
    dist.reduce_scatter(own, slices)
    return own


class GatherSlices(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return gathered(x)

    @staticmethod
    def backward(ctx, gradient):
        return summed_slice(gradient)


class SumToSlices(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return summed_slice(x)

    @staticmethod
    def backward(ctx, gradient):
        return gathered(gradient)


# [end slices]
def take_slice(x: torch.Tensor) -> torch.Tensor:
    """This rank's slice of the context: [B, T, width] -> [B, T/t, width]."""
    check_divides(x.shape[SLICED], dist.get_world_size(), "--context", "ranks")
    own = x.chunk(dist.get_world_size(), SLICED)[dist.get_rank()]
    return own.clone(memory_format=torch.contiguous_format)  # frees the rest


# [start ways]
WHOLE = Borders(lambda x: x, CopyToRanks.apply, SumOverRanks.apply, sliced=False)
SLICES = Borders(take_slice, GatherSlices.apply, SumToSlices.apply, sliced=True)


# [end ways]
def build(
    args: argparse.Namespace, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """This rank's parts of the model that one device would train; their optimizer."""
    model = make_gpt(args, device)
    split_gpt(model, SLICES if args.sequence_parallel else WHOLE)
    return model, make_optimizer(model.parameters(), args.learning_rate)


# [start step]
def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """One step: inputs and targets [B, T], the same on all ranks; the mean loss."""
    optimizer.zero_grad()
    loss = vocabulary_loss(model(inputs), targets)
    loss.backward()
    if model.head.borders.sliced:
        sum_kept_whole(model)
    optimizer.step()
    return loss.detach()


# [end step]
def parse_arguments() -> argparse.Namespace:
    def add_options(parser: argparse.ArgumentParser) -> None:
        sliced = "give each rank a slice of the context between the parallel layers"
        parser.add_argument("--sequence-parallel", action="store_true", help=sliced)

    return parse_text_training(__doc__, add_options)


@one_line_errors()
def main() -> None:
    args = parse_arguments()
    device = join("14_tensor_by_hand.py")
    text = Text(args, device)
    model, optimizer = build(args, device)
    for step, inputs, targets in text.steps():
        loss = train_step(model, optimizer, inputs, targets)
        text.note(step, loss / dist.get_world_size())
    # Every rank must call this: each has the scores of its own bytes only.
    text.report(text.test_loss(lambda inputs: whole_scores(model(inputs))))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
