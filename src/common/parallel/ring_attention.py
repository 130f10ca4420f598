"""Attention over a cut sequence: keys and values go around, or are gathered.

out = ring_attention(query, key, value, cut)    # each [B, heads, T/c, h]
out = gather_attention(query, key, value, cut)  # the same, with more memory
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from common.parallel import context_parallel as cp
from common.parallel.context_parallel import CHUNKS_PER_RANK, PLACES, Cut


class Passing:
    """A tensor on its way to the next rank, and another from the rank before."""

    def __init__(self, tensor: Tensor, cut: Cut):
        self.sent = tensor  # kept until it is sent
        self.arriving = torch.empty_like(tensor)
        peers = [(cut.rank + 1) % cut.ranks, (cut.rank - 1) % cut.ranks]
        if cut.group is not None:
            peers = [dist.get_global_rank(cut.group, peer) for peer in peers]
        # Every rank. In one batch: with NCCL, separate calls could block each other.
        self.works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, tensor, peers[0], cut.group),
                dist.P2POp(dist.irecv, self.arriving, peers[1], cut.group),
            ]
        )

    def wait(self) -> Tensor:
        """What the rank before has sent; the sent tensor may be changed now."""
        for work in self.works:
            work.wait()
        return self.arriving


class RingAttention(torch.autograd.Function):
    """Own queries, all ranks' keys: 3 x [B, heads, T/c, h] -> [B, heads, T/c, h].

    Liu, Zaharia and Abbeel, 2023, "Ring Attention with Blockwise Transformers".
    """

    @staticmethod
    def forward(ctx, query, key, value, cut, causal):
        queries = in_chunks(query)
        found = [cp.nothing_yet(chunk) for chunk in queries]
        held = torch.stack([key, value])
        for step in range(cut.ranks):
            last = step == cut.ranks - 1
            # [2, B, heads, T/c, h] to the next rank, while this one computes with it
            passing = None if last else Passing(held, cut)
            sender = (cut.rank - step) % cut.ranks
            keys, values = map(in_chunks, held)
            for i, j, same_place in cut.pairs(sender, causal):
                part = cp.attend(queries[i], keys[j], values[j], same_place)
                found[i] = cp.merge(found[i], part)
            if passing:
                held = passing.wait()
        out = torch.cat([part.out for part in found], PLACES)
        log_sum = torch.cat([part.log_sum for part in found], PLACES)
        ctx.save_for_backward(query, key, value, out, log_sum)
        ctx.cut, ctx.causal = cut, causal
        return out

    @staticmethod
    def backward(ctx, grad_out):
        query, key, value, out, log_sum = ctx.saved_tensors
        cut = ctx.cut
        mean_grad = (out * grad_out).sum(dim=-1, keepdim=True)
        of_all = (query, log_sum, grad_out, mean_grad)
        halves = zip(*map(in_chunks, of_all), strict=True)
        queries = [cp.Queries(*half) for half in halves]
        grad_query = torch.zeros_like(query)
        held = torch.stack([key, value])
        found = torch.zeros_like(held)  # the gradients of held, from all ranks so far
        passing_found = None
        for step in range(cut.ranks):
            last = step == cut.ranks - 1
            passing = None if last else Passing(held, cut)
            sender = (cut.rank - step) % cut.ranks
            own = torch.zeros_like(held)  # the share of this rank's queries
            keys, values, grad_keys, grad_values = map(in_chunks, (*held, *own))
            grad_queries = in_chunks(grad_query)
            for i, j, same_place in cut.pairs(sender, ctx.causal):
                of_pair = cp.gradients(queries[i], keys[j], values[j], same_place)
                sums = grad_queries[i], grad_keys[j], grad_values[j]
                for total, addend in zip(sums, of_pair, strict=True):
                    total += addend
            if passing:
                held = passing.wait()
            if passing_found:
                found = passing_found.wait()
            found += own
            if cut.ranks > 1:
                # [2, B, heads, T/c, h], one step behind the keys that they belong to
                passing_found = Passing(found, cut)
        if passing_found:
            found = passing_found.wait()  # after c steps, back at the keys' owner
        return grad_query, found[0], found[1], None, None


def in_chunks(piece: Tensor) -> tuple[Tensor, ...]:
    """A rank's two chunks, as views: [B, heads, T/c, h] -> 2 x [B, heads, T/2c, h]."""
    return piece.chunk(CHUNKS_PER_RANK, PLACES)


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, cut: Cut, causal: bool = True
) -> Tensor:
    """Attention over all ranks' tokens; each tensor is [B, heads, T/c, h]."""
    return RingAttention.apply(query, key, value, cut, causal)


class GatherPieces(torch.autograd.Function):
    """The whole sequence on every rank: [..., T/c, h] -> [..., T, h], in order."""

    @staticmethod
    def forward(ctx, own, cut):
        ctx.cut = cut
        return cut.restore(cp.all_pieces(own, cut), PLACES)

    @staticmethod
    def backward(ctx, gradient):
        pieces = ctx.cut.pieces(gradient, PLACES)
        own = torch.empty_like(pieces[0])
        # Every rank. Each has gradients of all keys: (c-1)/c x the bytes of all pieces.
        dist.reduce_scatter(own, pieces, group=ctx.cut.group)
        return own, None


def gather_attention(
    query: Tensor, key: Tensor, value: Tensor, cut: Cut, causal: bool = True
) -> Tensor:
    """The same as :func:`ring_attention`, with all keys and values on every rank."""
    # [2, B, heads, T/c, h] -> [2, B, heads, T, h]: one call for both
    keys, values = GatherPieces.apply(torch.stack([key, value]), cut)
    seen = None
    if causal:
        positions = torch.arange(keys.shape[PLACES], device=key.device)
        seen = positions <= cut.take(positions, dim=0)[:, None]  # [T/c, T]
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
