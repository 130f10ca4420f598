"""Several documents in a sequence that is cut over ranks; attention stays in each.

    packing = Packing(cp.whole_world(zigzag=True))
    packing.pack_gpt(model)
    packing.next_batch(ends)                  # [B, T], true at a document's last token
    loss = packing.loss(model(cut.take(inputs)), cut.take(targets))

A rank passes the numbers of its tokens' documents round with their keys. From both, the
others know which keys a query may see.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from common.byte_gpt import ByteGPT, Embed
from common.parallel import context_parallel as cp
from common.parallel.context_parallel import Cut, Part
from common.parallel.ring_attention import Passing

IGNORED = -100  # a target without a loss, as F.cross_entropy has it


# [start numbers]
def number_documents(ends: Tensor) -> Tensor:
    """Each token's document, from 0 in every sequence: [B, T] -> [B, T]."""
    ends = ends.long()
    return ends.cumsum(1) - ends  # the last token belongs to the document that it ends


def positions_in(documents: Tensor) -> Tensor:
    """Each token's position in its own document: [B, T] -> [B, T]."""
    count = torch.arange(documents.shape[1], device=documents.device)
    starts = F.pad(documents.diff(dim=1) != 0, (1, 0))  # the first token of each
    return count - (count * starts).cummax(dim=1).values


# [end numbers]
def seen_by(cut: Cut, sender: int, own: Tensor, sent: Tensor) -> Tensor:
    """Which of the sender's keys each own query sees: 2 x [B, T/c] -> [B, 1, q, k]."""
    order = torch.arange(own.shape[1] * cut.ranks, device=own.device)
    keys = replace(cut, rank=sender).take(order, dim=0)
    earlier = keys <= cut.take(order, dim=0)[:, None]
    same_document = own[:, :, None] == sent[:, None, :]
    return (same_document & earlier)[:, None]


def attend(query: Tensor, key: Tensor, value: Tensor, seen: Tensor) -> Part:
    """Attention to the keys that are seen; a query may see none of them."""
    scores = cp.scores_of(query, key, False, seen)
    log_sum = scores.logsumexp(dim=-1, keepdim=True)
    # -inf without a key: minus 0, the exponential of its scores is 0 and not nan
    weights = (scores - log_sum.nan_to_num(neginf=0.0)).exp()
    return Part(weights @ value, log_sum)


class PackedAttention(torch.autograd.Function):
    """Own queries, the keys of their documents: 3 x [B, heads, T/c, h] -> the same."""

    @staticmethod
    def forward(ctx, query, key, value, documents, cut):
        found = cp.nothing_yet(query)
        held, sent = torch.stack([key, value]), documents
        ctx.seen = []
        for step in range(cut.ranks):
            passing = []
            if step < cut.ranks - 1:
                # every rank: keys and values, and the numbers of their documents
                passing = [Passing(held, cut), Passing(sent, cut)]
            sender = (cut.rank - step) % cut.ranks
            seen = seen_by(cut, sender, documents, sent)
            # Own keys are first: each query sees itself, so its log-sum is finite.
            if seen.any():  # else the ranks share no document, and nothing is computed
                found = cp.merge(found, attend(query, *held, seen))
            ctx.seen.append(seen)
            if passing:
                held, sent = (each.wait() for each in passing)
        ctx.save_for_backward(query, key, value, found.out, found.log_sum)
        ctx.cut = cut
        return found.out

    @staticmethod
    def backward(ctx, grad_out):
        query, key, value, out, log_sum = ctx.saved_tensors
        cut = ctx.cut
        mean_grad = (out * grad_out).sum(dim=-1, keepdim=True)
        queries = cp.Queries(query, log_sum, grad_out, mean_grad)
        grad_query = torch.zeros_like(query)
        held = torch.stack([key, value])
        found = torch.zeros_like(held)  # the gradients of held, from all ranks so far
        passing_found = None
        for step, seen in enumerate(ctx.seen):
            passing = Passing(held, cut) if step < cut.ranks - 1 else None
            own = torch.zeros_like(held)
            if seen.any():
                of_all = cp.gradients(queries, *held, False, seen)
                grad_query += of_all[0]
                own = torch.stack(of_all[1:])
            if passing:
                held = passing.wait()
            if passing_found:
                found = passing_found.wait()
            found += own
            if cut.ranks > 1:
                passing_found = Passing(found, cut)  # one step behind the keys
        if passing_found:
            found = passing_found.wait()
        return grad_query, found[0], found[1], None, None


class PackedEmbed(Embed):
    """The embedding of own tokens at their positions in their documents."""

    def __init__(self, whole: Embed, packing: Packing):
        nn.Module.__init__(self)
        self.byte, self.place, self.packing = whole.byte, whole.place, packing

    def forward(self, tokens: Tensor) -> Tensor:
        return self.byte(tokens) + self.place(self.packing.positions)


class Packing:
    """What all layers know of the documents of the batch: :meth:`next_batch` first."""

    def __init__(self, cut: Cut):
        self.cut = cut
        self.documents = self.positions = self.ends = torch.empty(0)

    def next_batch(self, ends: Tensor) -> None:
        """Where documents end in the whole batch: [B, T], the same on all ranks."""
        documents = number_documents(ends)
        self.documents = self.cut.take(documents)
        self.positions = self.cut.take(positions_in(documents))
        self.ends = self.cut.take(ends)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, cut: Cut) -> Tensor:
        return PackedAttention.apply(query, key, value, self.documents, cut)

    def pack_gpt(self, model: ByteGPT) -> None:
        """Let ``model`` compute on own tokens, and on each document alone."""
        cp.split_gpt(model, self.cut, self.attend)
        model.embed = PackedEmbed(model.embed, self)

    def loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        """This rank's share of the mean loss, times c: [B, T/c, 256], [B, T/c] -> [].

        The target of a document's last token belongs to the next one, and doesn't
        count. So ranks have unequal numbers of targets, and the mean of their means
        would be wrong. The mean of these shares over the ranks is the mean loss.
        """
        targets = targets.masked_fill(self.ends, IGNORED)
        count = (targets != IGNORED).sum()
        dist.all_reduce(count, group=self.cut.group)  # every rank; [] -> []
        total = F.cross_entropy(
            scores.flatten(0, 1),
            targets.flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        )
        return total * self.cut.ranks / count.clamp(min=1)
