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
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from common import gpt_training
from common.byte_gpt import MLP, Attention, ByteGPT
from common.distributed import BadInput, one_line_errors
from common.parallel import tensor_parallel as tp
from common.process_group import join_or_alone

ALONE = "it has all columns and rows of every layer, and sends nothing"


@dataclass(frozen=True)
class Config(gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    sequence_parallel: bool


def own_part(tensor: Tensor, dim: int) -> nn.Parameter:
    """This rank's part of a parameter, cut along ``dim`` as torch.chunk cuts."""
    ranks = dist.get_world_size()
    parts = tensor.detach().chunk(ranks, dim)
    if len(parts) < ranks:
        few = f"{tensor.shape[dim]} numbers make only {len(parts)} parts"
        raise BadInput(f"{few}, too few for {ranks} ranks: start fewer ranks")
    part = nn.Parameter(parts[dist.get_rank()].clone())
    part.tensor_model_parallel = True  # Megatron-LM's mark of what is cut
    return part


class ColumnLinear(nn.Module):
    """Some of the outputs: x [..., in], the same on all ranks -> [..., own out]."""

    def __init__(self, whole: nn.Linear, enter: tp.Border):
        super().__init__()
        self.enter = enter
        self.weight = own_part(whole.weight, dim=0)  # [own out, in]
        self.bias = own_part(whole.bias, dim=0)  # [own out]

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.enter(x), self.weight, self.bias)


class RowLinear(nn.Module):
    """All outputs, from all ranks' inputs: x [..., own in] -> [..., out]."""

    def __init__(self, whole: nn.Linear, leave: tp.Border):
        super().__init__()
        self.leave = leave
        self.weight = own_part(whole.weight, dim=1)  # [out, own in]
        self.bias = nn.Parameter(whole.bias.detach().clone())  # [out], on every rank

    def forward(self, x: Tensor) -> Tensor:
        share = F.linear(x, self.weight)
        # Every rank calls this. The bias is added once, to the sum.
        return self.leave(share) + self.bias


class ParallelMLP(MLP):
    """Columns, then rows: no hidden number is sent."""

    def __init__(self, whole: MLP, borders: tp.Borders):
        nn.Module.__init__(self)
        self.up = ColumnLinear(whole.up, borders.enter)
        self.down = RowLinear(whole.down, borders.leave)


class ParallelAttention(Attention):
    """Some of the heads: whole ones, so that no score needs two ranks."""

    def __init__(self, whole: Attention, borders: tp.Borders):
        nn.Module.__init__(self)
        self.enter, self.head_width = borders.enter, whole.head_width
        heads = whole.query.out_features // whole.head_width
        gpt_training.check_divides(heads, dist.get_world_size(), "--heads", "ranks")
        self.query = ColumnLinear(whole.query, nn.Identity())
        self.key = ColumnLinear(whole.key, nn.Identity())
        self.value = ColumnLinear(whole.value, nn.Identity())
        self.out = RowLinear(whole.out, borders.leave)

    def forward(self, x: Tensor) -> Tensor:
        # One border for all three layers: their gradients are added up, then reduced.
        return super().forward(self.enter(x))


def summed(x: Tensor) -> Tensor:
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


WHOLE = tp.Borders(nn.Identity(), CopyToRanks.apply, SumOverRanks.apply, sliced=False)


def split_gpt(model: ByteGPT, borders: tp.Borders) -> None:
    """Replace the layers of ``model`` by this rank's parts; the embedding stays."""
    # Places are already added, as they count from the start of the context.
    model.embed.register_forward_hook(lambda _embed, _tokens, x: borders.start(x))
    for block in model.blocks:
        block.attention = ParallelAttention(block.attention, borders)
        block.mlp = ParallelMLP(block.mlp, borders)
    model.head.score = ColumnLinear(model.head.score, borders.enter)
    model.borders = borders


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """This rank's parts of the model that one device would train; their optimizer."""
    model = gpt_training.make_gpt(config, device)
    borders = tp.SLICES if config.sequence_parallel else WHOLE
    split_gpt(model, borders)
    return model, gpt_training.make_optimizer(model.parameters(), config.learning_rate)


def train_step(
    model: ByteGPT, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor
) -> Tensor:
    """One step: inputs and targets [B, T], the same on all ranks; the mean loss."""
    optimizer.zero_grad()
    loss = tp.vocabulary_loss(model(inputs), targets)
    loss.backward()
    if model.borders.sliced:
        tp.sum_kept_whole(model)
    optimizer.step()
    return loss.detach()


def parse_arguments() -> Config:
    def add_options(parser: argparse.ArgumentParser) -> None:
        sliced = "give each rank a slice of the context between the parallel layers"
        parser.add_argument("--sequence-parallel", action="store_true", help=sliced)

    return gpt_training.parse_text_training(__doc__, Config, add_options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    batches = gpt_training.Batches(config, device)
    model, optimizer = build(config, device)
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        loss = train_step(model, optimizer, inputs, targets)
        progress.note(step, loss / dist.get_world_size())
    # Every rank must call this: each has the scores of its own bytes only.
    progress.report(batches.test_loss(lambda x: tp.whole_scores(model(x))))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
