"""The loss of scores that no rank has all of, and sequence parallel, for lesson 14.

    loss = vocabulary_loss(model(inputs), targets)
    split_gpt(model, SLICES)                # of src/14_tensor_by_hand.py

Each of t ranks scores some of the bytes: Shoeybi et al., 2019, "Megatron-LM", section
3. With sequence parallel it has a slice of the context between the parallel layers:
Korthikanti et al., 2022, section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

from common.byte_gpt import BYTES, ByteGPT
from common.gpt_training import check_divides

SLICED = 1  # the tensor dim of [B, T, width] that slices divide

Border = Callable[[torch.Tensor], torch.Tensor]


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


# [start borders]
@dataclass(frozen=True)
class Borders:
    """What happens to the residual stream [B, T, width] at the cut layers."""

    start: Border  # after the embedding
    enter: Border  # before a parallel layer
    leave: Border  # after it
    sliced: bool  # whether a rank has only its slice of the context in between


# [end borders]
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


def take_slice(x: torch.Tensor) -> torch.Tensor:
    """This rank's slice of the context: [B, T, width] -> [B, T/t, width]."""
    check_divides(x.shape[SLICED], dist.get_world_size(), "--context", "ranks")
    own = x.chunk(dist.get_world_size(), SLICED)[dist.get_rank()]
    return own.clone(memory_format=torch.contiguous_format)  # frees the rest


SLICES = Borders(take_slice, GatherSlices.apply, SumToSlices.apply, sliced=True)


# [end slices]
# [start kept]
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


def kept_whole(model: ByteGPT) -> list[nn.Parameter]:
    """The parameters of a split model of which every rank has all numbers."""
    return [p for p in model.parameters() if not hasattr(p, "tensor_model_parallel")]


# [end kept]
