"""Repair a layer of experts that hangs when a rank has no tokens.

It trained for an hour, and then it stopped: in one step, no token chose an expert of
rank 1. In another, the last batch was too small, and rank 2 had no tokens at all. Each
function below has a shortcut for that. It looks right, because there's nothing to
compute. But the other ranks wait for this one in a collective.

The functions are a layer and the end of a step::

    outputs = through_experts(rows, sent, experts)        # on every rank
    loss = backward_of_batch(outputs, targets)

Delete the two lines with ``raise NotImplementedError`` and run the check to see where
each rank waits. Then repair both functions. The second one also divides by the wrong
number. Once its shortcut is gone, the result is ``nan`` on a rank without rows.

    workshop check 22_no_tokens

The page is docs/lessons/22_experts/3_exchange.rst.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist


class Exchange(torch.autograd.Function):
    """An all-to-all of rows: [sum(sent), H] -> [sum(received), H]. Nothing is wrong."""

    @staticmethod
    def forward(ctx, rows, sent, received):
        ctx.sent, ctx.received = sent, received
        return exchange(rows, sent, received)

    @staticmethod
    def backward(ctx, gradient):
        return exchange(gradient, ctx.received, ctx.sent), None, None


def exchange(rows: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
    """Rows to other ranks and from them. Nothing is wrong here, either."""
    arrived = rows.new_empty(sum(received), rows.shape[1])
    dist.all_to_all_single(arrived, rows.contiguous(), received, sent)
    return arrived


def through_experts(
    rows: torch.Tensor,
    sent: list[int],
    experts: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Each row through an expert of some rank: [sum(sent), H] -> the same shape.

    Args:
        rows: this rank's rows, those for rank 0 first; sum(sent) may be 0.
        sent: how many of them each rank's experts get.
        experts: computes rows that arrived at this rank: [m, H] -> [m, H]. Call it
            even for m = 0, so that its parameters get a gradient of zeros, not None.
    """
    counts = torch.tensor(sent)
    # TODO 1 of 2: the lines below are what hangs. Delete the `raise`, see what the
    # check says, and repair them.
    raise NotImplementedError("TODO 1 of 2")
    if counts.sum() == 0:
        return rows  # nothing to send
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    received = arriving.tolist()
    arrived = Exchange.apply(rows, sent, received)
    if len(arrived) == 0:
        return torch.zeros_like(rows)  # nothing to compute
    return Exchange.apply(experts(arrived), received, sent)


def backward_of_batch(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """This rank's share of the batch's loss, []; calls ``backward()`` on it.

    The loss is the mean squared error of all rows of all ranks. So the shares of the
    ranks add up to it, and a rank without rows has the share 0. At least one rank has
    rows.

    Args:
        outputs: [m, H] with a graph that has collectives, even for m = 0.
        targets: [m, H].
    """
    # TODO 2 of 2: these lines hang, too, and don't compute this loss.
    raise NotImplementedError("TODO 2 of 2")
    if len(outputs) == 0:
        return torch.zeros(())  # no loss, so nothing to derive
    loss = (outputs - targets).square().mean()
    loss.backward()
    return loss.detach()
