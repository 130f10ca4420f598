"""Attention over a cut sequence: ranks exchange tokens for heads, and back.

out = ulysses_attention(query, key, value, cut)  # each [B, heads, T/c, h]
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from common.gpt_training import check_divides
from common.parallel.context_parallel import PLACES, Cut

HEADS = -3  # the tensor dim of [B, heads, T/c, head_width] that counts heads


def exchange(pieces: list[Tensor], cut: Cut) -> list[Tensor]:
    """Piece r goes to rank r, and what rank r has for this one is number r."""
    sent = torch.stack(pieces)
    received = torch.empty_like(sent)
    # Every rank. [c, piece] -> [c, piece], (c-1)/c x the bytes of all pieces.
    dist.all_to_all_single(received, sent, group=cut.group)
    return list(received)


def to_heads(own_tokens: Tensor, cut: Cut) -> Tensor:
    """[..., heads, T/c, h] of own tokens -> [..., heads/c, T, h] of own heads."""
    pieces = own_tokens.chunk(cut.ranks, HEADS)
    return cut.restore(exchange(list(pieces), cut), PLACES)


def to_tokens(own_heads: Tensor, cut: Cut) -> Tensor:
    """[..., heads/c, T, h] of own heads -> [..., heads, T/c, h] of own tokens."""
    return torch.cat(exchange(cut.pieces(own_heads, PLACES), cut), HEADS)


class ToHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own_tokens, cut):
        ctx.cut = cut
        return to_heads(own_tokens, cut)

    @staticmethod
    def backward(ctx, gradient):
        return to_tokens(gradient, ctx.cut), None  # what was exchanged goes back


class ToTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own_heads, cut):
        ctx.cut = cut
        return to_tokens(own_heads, cut)

    @staticmethod
    def backward(ctx, gradient):
        return to_heads(gradient, ctx.cut), None


def ulysses_attention(
    query: Tensor, key: Tensor, value: Tensor, cut: Cut, causal: bool = True
) -> Tensor:
    """Attention over all ranks' tokens: 3 x [B, heads, T/c, h] -> [B, heads, T/c, h].

    Jacobs et al., 2023, "DeepSpeed Ulysses".

    Raises:
        BadInput: the ranks do not divide the heads.
    """
    check_divides(query.shape[HEADS], cut.ranks, "--heads", "ranks")
    # [3, B, heads, T/c, h] -> [3, B, heads/c, T, h]: one call for all three
    own_heads = ToHeads.apply(torch.stack([query, key, value]), cut)
    gathered = F.scaled_dot_product_attention(*own_heads, is_causal=causal)
    return ToTokens.apply(gathered, cut)
