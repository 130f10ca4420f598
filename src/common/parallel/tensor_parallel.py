"""The layers of a byte GPT, cut so that each of t ranks holds a part of each.

    split_gpt(model, borders)          # what happens before and after a parallel layer
    loss = vocabulary_loss(model(inputs), targets)

A layer is cut by its columns where every output number can be computed alone, and by
its rows where the outputs of the ranks add up: Shoeybi et al., 2019, "Megatron-LM",
section 3. (They write y = x A; in PyTorch, y = x W^T, columns of A are rows of W.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from common.byte_gpt import BYTES, MLP, Attention, ByteGPT, Embed, Head
from common.distributed import BadInput
from common.gpt_training import check_divides


# [start borders]
@dataclass(frozen=True)
class Borders:
    """What happens to the residual stream [B, T, width] at the cut layers."""

    start: Callable[[torch.Tensor], torch.Tensor]  # after the embedding
    enter: Callable[[torch.Tensor], torch.Tensor]  # before a parallel layer
    leave: Callable[[torch.Tensor], torch.Tensor]  # after it
    sliced: bool  # whether a rank has only its slice of the context in between


# [end borders]
def own_part(tensor: torch.Tensor, dim: int) -> nn.Parameter:
    """This rank's part of a parameter, cut along ``dim`` as torch.chunk cuts.

    Raises:
        BadInput: there are more ranks than parts.
    """
    parts = tensor.detach().chunk(dist.get_world_size(), dim)
    if len(parts) < dist.get_world_size():
        raise BadInput(
            f"{tensor.shape[dim]} numbers make only {len(parts)} parts, too few for "
            f"{dist.get_world_size()} ranks: start fewer ranks"
        )
    return nn.Parameter(parts[dist.get_rank()].clone())


# [start linear]
class ColumnLinear(nn.Module):
    """Some of the outputs: x [..., in], the same on all ranks -> [..., own out]."""

    def __init__(self, whole: nn.Linear):
        super().__init__()
        self.weight = own_part(whole.weight, dim=0)  # [own out, in]
        self.bias = own_part(whole.bias, dim=0)  # [own out]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)


class RowLinear(nn.Module):
    """All outputs, from all ranks' inputs: x [..., own in] -> [..., out]."""

    def __init__(self, whole: nn.Linear, borders: Borders):
        super().__init__()
        self.weight = own_part(whole.weight, dim=1)  # [out, own in]
        self.bias = nn.Parameter(whole.bias.detach().clone())  # [out], on every rank
        self.borders = borders

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        share = F.linear(x, self.weight)
        # Every rank calls this. The bias is added once, to the sum.
        return self.borders.leave(share) + self.bias


# [end linear]
# [start blocks]
class ParallelMLP(MLP):
    """Columns, then rows: no hidden number is sent."""

    def __init__(self, whole: MLP, borders: Borders):
        nn.Module.__init__(self)
        self.up = ColumnLinear(whole.up)
        self.down = RowLinear(whole.down, borders)
        self.borders = borders

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(self.borders.enter(x))


class ParallelAttention(Attention):
    """Some of the heads: whole ones, so that no score needs two ranks.

    Raises:
        BadInput: the ranks do not divide the heads.
    """

    def __init__(self, whole: Attention, borders: Borders):
        nn.Module.__init__(self)
        heads = whole.query.out_features // whole.head_width
        check_divides(heads, dist.get_world_size(), "--heads", "ranks")
        self.head_width = whole.head_width
        self.query = ColumnLinear(whole.query)
        self.key = ColumnLinear(whole.key)
        self.value = ColumnLinear(whole.value)
        self.out = RowLinear(whole.out, borders)
        self.borders = borders

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # One border for all three layers: their gradients are added up, then reduced.
        return super().forward(self.borders.enter(x))


# [end blocks]
# [start ends]
class ParallelEmbed(Embed):
    """Whole tables on every rank; then each continues with its slice, or with all."""

    def __init__(self, whole: Embed, borders: Borders):
        nn.Module.__init__(self)
        self.byte, self.place = whole.byte, whole.place
        self.borders = borders

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        # Cut after the places are added: they count from the start of the context.
        return self.borders.start(super().forward(tokens))


class ParallelHead(Head):
    """The scores of some of the bytes: [B, T, width] -> [B, T, own bytes]."""

    def __init__(self, whole: Head, borders: Borders):
        nn.Module.__init__(self)
        self.norm = whole.norm
        self.score = ColumnLinear(whole.score)
        self.borders = borders

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.score(self.borders.enter(self.norm(x)))


def split_gpt(model: ByteGPT, borders: Borders) -> None:
    """Replace the layers of ``model`` by this rank's parts of them."""
    model.embed = ParallelEmbed(model.embed, borders)
    for block in model.blocks:
        block.attention = ParallelAttention(block.attention, borders)
        block.mlp = ParallelMLP(block.mlp, borders)
    model.head = ParallelHead(model.head, borders)


def sum_kept_whole(model: ByteGPT) -> None:
    """Add up over the ranks the gradients of norms, biases of rows and embedding.

    Call it only if each rank saw a slice of the context. If it saw the whole context,
    every rank has the whole gradient already.
    """
    gradients = [parameter.grad for parameter in kept_whole(model)]
    together = torch.cat([gradient.flatten() for gradient in gradients])
    # Every rank, once a step. [all of them] -> the same, 2(t-1)/t x their bytes.
    dist.all_reduce(together)
    parts = together.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


# [end ends]
def kept_whole(model: ByteGPT) -> list[nn.Parameter]:
    """The parameters of a split model of which every rank has all numbers."""
    cut = {
        id(parameter)
        for layer in model.modules()
        if isinstance(layer, (ColumnLinear, RowLinear))
        for name, parameter in layer.named_parameters()
        if isinstance(layer, ColumnLinear) or name == "weight"
    }
    return [p for p in model.parameters() if id(p) not in cut]


def own_bytes(world_size: int, rank: int, vocabulary: int) -> tuple[int, int]:
    """(first, last + 1) of the bytes that a rank scores, as torch.chunk divides."""
    each = -(-vocabulary // world_size)
    return min(rank * each, vocabulary), min((rank + 1) * each, vocabulary)


# [start loss]
class _VocabularyLoss(torch.autograd.Function):
    """-log of the chance of each target: [N, own] scores, [N] targets -> [N]."""

    @staticmethod
    def forward(ctx, scores, targets, first):
        largest = scores.max(dim=1).values
        # Every rank. [N] -> [N]: the largest of all, or exp would overflow on one
        # rank, and the sums of the ranks would not belong together.
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        chances = (scores - largest[:, None]).exp_()
        place = targets - first
        own = (place >= 0) & (place < scores.shape[1])
        place = place.where(own, -1)  # -1: another rank has this target
        rows = torch.arange(len(place), device=place.device)
        wanted = (scores[rows, place] - largest).where(own, 0)
        both = torch.stack([chances.sum(dim=1), wanted])
        # Every rank. [2, N] -> [2, N]: one call for both sums.
        dist.all_reduce(both)
        total, wanted = both
        ctx.save_for_backward(chances.div_(total[:, None]), place)
        return total.log() - wanted

    @staticmethod
    def backward(ctx, gradient):
        chances, place = ctx.saved_tensors
        own = place >= 0
        scores = chances.clone()
        scores[own, place[own]] -= 1
        return scores * gradient[:, None], None, None  # nothing to send


def vocabulary_loss(
    scores: torch.Tensor, targets: torch.Tensor, vocabulary: int = BYTES
) -> torch.Tensor:
    """``next_byte_loss`` from own scores: [B, T, own bytes], [B, T] -> []."""
    first, _ = own_bytes(dist.get_world_size(), dist.get_rank(), vocabulary)
    args = scores.flatten(0, 1), targets.flatten(), first
    return _VocabularyLoss.apply(*args).mean()


# [end loss]
@torch.no_grad()
def whole_scores(scores: torch.Tensor, vocabulary: int = BYTES) -> torch.Tensor:
    """All scores on all ranks, for tests and samples: [..., own] -> [..., 256]."""
    first, end = own_bytes(dist.get_world_size(), dist.get_rank(), vocabulary)
    whole = scores.new_zeros(*scores.shape[:-1], vocabulary)
    whole[..., first:end] = scores
    # Every rank. Parts of unequal size: a sum with zeros is simpler than a gather.
    dist.all_reduce(whole)
    return whole
