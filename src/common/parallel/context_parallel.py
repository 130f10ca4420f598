"""A sequence cut over ranks: who holds which tokens, and attention in parts.

    cut = whole_world(zigzag=True)          # chunks 0 and 7 on rank 0 of 4
    scores = model(cut.take(tokens))        # [B, T] -> [B, T/c, 256] on each rank
    average_gradients(model, cut)           # after backward

Each of c ranks holds two of 2c chunks of every sequence. Attention alone needs the
tokens of other ranks; ``split_gpt`` gives every block the attention that fetches them.
The sum of exponentials that parts of a softmax are merged with is that of Milakov and
Gimelshein, 2018, "Online normalizer calculation for softmax".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from common.byte_gpt import Attention, ByteGPT, Embed
from common.gpt_training import check_divides

CHUNKS_PER_RANK = 2
PLACES = -2  # the tensor dim of [B, heads, T/c, head_width] that counts tokens


@dataclass(frozen=True)
class Cut:
    """Which tokens of a sequence each rank of a group holds: two chunks of 2c."""

    ranks: int  # c, in the group
    rank: int  # this one's number in the group
    zigzag: bool = False
    group: dist.ProcessGroup | None = None  # None: all ranks

    def chunks_of(self, rank: int) -> tuple[int, int]:
        """The numbers of a rank's two chunks, in the order in which it holds them."""
        if self.zigzag:
            # one early chunk, which sees little, and one late chunk, which sees much
            return rank, CHUNKS_PER_RANK * self.ranks - 1 - rank
        return CHUNKS_PER_RANK * rank, CHUNKS_PER_RANK * rank + 1

    def take(self, whole: Tensor, dim: int = 1) -> Tensor:
        """This rank's tokens: [..., T, ...] along ``dim`` -> [..., T/c, ...].

        Raises:
            BadInput: 2c does not divide T.
        """
        count = CHUNKS_PER_RANK * self.ranks
        check_divides(whole.shape[dim], count, "--context", "chunks, two on each rank")
        chunks = whole.chunk(count, dim)
        return torch.cat([chunks[number] for number in self.chunks_of(self.rank)], dim)

    def restore(self, pieces: list[Tensor], dim: int = 1) -> Tensor:
        """The sequence [..., T, ...] from the pieces of all ranks, by their number."""
        chunks = {}
        for rank, piece in enumerate(pieces):
            halves = piece.chunk(CHUNKS_PER_RANK, dim)
            chunks.update(zip(self.chunks_of(rank), halves, strict=True))
        return torch.cat([chunks[number] for number in sorted(chunks)], dim)

    def pieces(self, whole: Tensor, dim: int = 1) -> list[Tensor]:
        """The inverse of :meth:`restore`: [..., T, ...] -> [..., T/c, ...] of each."""
        chunks = whole.chunk(CHUNKS_PER_RANK * self.ranks, dim)
        return [
            torch.cat([chunks[number] for number in self.chunks_of(rank)], dim)
            for rank in range(self.ranks)
        ]

    def pairs(self, sender: int, causal: bool) -> Iterator[tuple[int, int, bool]]:
        """Which chunks of own queries see which chunks of ``sender``'s keys.

        Yields (own chunk 0 or 1, sender's chunk 0 or 1, whether both are the same part
        of the text, where a query sees only the keys up to its own place).
        """
        for i, own in enumerate(self.chunks_of(self.rank)):
            for j, other in enumerate(self.chunks_of(sender)):
                if causal and other > own:
                    continue  # all of these keys are later than all of these queries
                yield i, j, causal and other == own


def whole_world(zigzag: bool = False) -> Cut:
    """The sequence is cut over all ranks."""
    return Cut(dist.get_world_size(), dist.get_rank(), zigzag)


@dataclass(frozen=True)
class Part:
    """Attention to some of the keys only."""

    out: Tensor  # [B, heads, tokens, head_width], weights that add up to 1
    log_sum: Tensor  # [B, heads, tokens, 1], log of the sum of exp(score)


def attend(query: Tensor, key: Tensor, value: Tensor, same_place: bool) -> Part:
    """What queries [B, heads, q, h] gather from keys and values [B, heads, k, h].

    ``same_place``: query and key are of the same chunk, so later keys are masked.
    """
    scores = scores_of(query, key, same_place)
    log_sum = scores.logsumexp(dim=-1, keepdim=True)
    return Part((scores - log_sum).exp() @ value, log_sum)


def merge(first: Part, second: Part) -> Part:
    """Attention to the keys of both parts."""
    total = torch.logaddexp(first.log_sum, second.log_sum)
    # Each part's share of the whole sum. Exponents are at most 0: nothing overflows.
    share = (first.log_sum - total).exp()
    rest = (second.log_sum - total).exp()
    return Part(share * first.out + rest * second.out, total)


def nothing_yet(query: Tensor) -> Part:
    """Attention to no key: merged with a part, it gives that part."""
    log_sum = query.new_full((*query.shape[:-1], 1), -torch.inf)
    return Part(torch.zeros_like(query), log_sum)


def scores_of(
    query: Tensor, key: Tensor, same_place: bool, seen: Tensor | None = None
) -> Tensor:
    """[B, heads, q, h], [B, heads, k, h] -> [B, heads, q, k]; masked: -inf."""
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if same_place:
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    return scores


@dataclass(frozen=True)
class Queries:
    """What backward needs of some queries; [B, heads, q, h] or [B, heads, q, 1]."""

    query: Tensor
    log_sum: Tensor  # over the keys of all ranks
    grad_out: Tensor
    mean_grad: Tensor  # sum over h of out x grad_out, from all keys


def gradients(
    of: Queries,
    key: Tensor,
    value: Tensor,
    same_place: bool,
    seen: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value that one pair of chunks adds.

    The weights are computed again from the scores, as in Dao, 2023,
    "FlashAttention-2", section 2.3: no [q, k] matrix is kept between the passes.
    """
    scores = scores_of(of.query, key, same_place, seen)
    weights = (scores - of.log_sum).exp()  # of the whole softmax, not of this part
    grad_weights = of.grad_out @ value.mT
    grad_scores = weights * (grad_weights - of.mean_grad)
    grad_scores = grad_scores * of.query.shape[-1] ** -0.5
    grad_query = grad_scores @ key
    return grad_query, grad_scores.mT @ of.query, weights.mT @ of.grad_out


AttendAcrossRanks = Callable[[Tensor, Tensor, Tensor, Cut], Tensor]


class CutAttention(Attention):
    """Attention of own tokens to all ranks' tokens: [B, T/c, width] -> the same."""

    def __init__(self, whole: Attention, cut: Cut, across: AttendAcrossRanks):
        nn.Module.__init__(self)
        self.head_width, self.cut, self.across = whole.head_width, cut, across
        self.query, self.key = whole.query, whole.key
        self.value, self.out = whole.value, whole.out

    def forward(self, x: Tensor) -> Tensor:
        heads = [
            layer(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]  # each [B, heads, T/c, head_width]
        # Every rank calls this: it is the one line that needs other ranks' tokens.
        gathered = self.across(*heads, self.cut)
        return self.out(gathered.transpose(1, 2).flatten(2))


class CutEmbed(Embed):
    """The embedding of own tokens at their positions in the whole sequence."""

    def __init__(self, whole: Embed, cut: Cut):
        nn.Module.__init__(self)
        self.byte, self.place, self.cut = whole.byte, whole.place, cut

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1] * self.cut.ranks
        positions = torch.arange(length, device=tokens.device)
        return self.byte(tokens) + self.place(self.cut.take(positions, dim=0))


def split_gpt(model: ByteGPT, cut: Cut, across: AttendAcrossRanks) -> None:
    """Let ``model`` compute on own tokens; every rank keeps all parameters."""
    model.embed = CutEmbed(model.embed, cut)
    for block in model.blocks:
        block.attention = CutAttention(block.attention, cut, across)


def average_gradients(model: nn.Module, cut: Cut) -> None:
    """The mean over the ranks of every gradient, as DDP would compute it.

    Each rank has the mean loss of equally many tokens. So the mean of the ranks' losses
    is that of the whole batch, and so are the gradients.
    """
    owners = [p for p in model.parameters() if p.grad is not None]
    together = torch.cat([parameter.grad.flatten() for parameter in owners])
    # Every rank, once a step. [parameters] -> the same, 2(c-1)/c x their bytes.
    dist.all_reduce(together, group=cut.group)
    parts = (together / cut.ranks).split([p.numel() for p in owners])
    for parameter, part in zip(owners, parts, strict=True):
        parameter.grad.copy_(part.view_as(parameter))


def all_pieces(own: Tensor, cut: Cut) -> list[Tensor]:
    """The pieces of all ranks, by their number: [shape] -> c x [shape]."""
    pieces = [torch.empty_like(own) for _ in range(cut.ranks)]
    # Every rank. (c-1) x the bytes of a piece.
    dist.all_gather(pieces, own.contiguous(), group=cut.group)
    return pieces


@torch.no_grad()
def whole_scores(scores: Tensor, cut: Cut) -> Tensor:
    """All scores on all ranks, for tests and samples: [B, T/c, 256] -> [B, T, 256]."""
    return cut.restore(all_pieces(scores, cut))
