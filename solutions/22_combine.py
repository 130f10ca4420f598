"""Return what experts computed to the tokens' ranks, and send gradients the other way.

Dispatch has brought the rows for this rank's experts here, and the experts have
computed them. Now each output goes back to the rank of its token. There it's
multiplied by its gate, and the outputs of one token are added up::

    mixed = combine(outputs, trip, gates, tokens=8)
    mixed.backward(gradient)           # reaches outputs and gates, on all ranks

``dist.all_to_all_single`` records nothing for autograd, so ``Return`` needs a backward
of its own.

    workshop check 22_combine

The page is docs/lessons/22_experts/3_exchange.rst.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Trip:
    """What this rank remembers of dispatch."""

    sent: list[int]  # rows that it sent to each rank
    received: list[int]  # rows that it received from each rank
    order: torch.Tensor  # experts got the received row order[i] as their row i
    token: torch.Tensor  # [sum(sent)] the own token of each row that it sent


class Return(torch.autograd.Function):
    """Rows back to the ranks that sent them: [sum(received), H] -> [sum(sent), H]."""

    @staticmethod
    def forward(ctx, rows, sent, received):
        """``rows``: in the order in which they were received in dispatch."""
        ctx.sent, ctx.received = sent, received
        returned = rows.new_empty(sum(sent), rows.shape[1])
        # Every rank: what was received is sent now.
        dist.all_to_all_single(returned, rows.contiguous(), sent, received)
        return returned

    @staticmethod
    def backward(ctx, gradient):
        # TODO 1 of 2: the gradient of ``rows``, from that of what was returned. The
        # lists have no gradient.
        # [start answer 1]
        of_rows = gradient.new_empty(sum(ctx.received), gradient.shape[1])
        # Every rank: gradients go where the rows are from, as in dispatch.
        dist.all_to_all_single(of_rows, gradient.contiguous(), ctx.received, ctx.sent)
        return of_rows, None, None
        # [end answer 1]


def combine(
    outputs: torch.Tensor, trip: Trip, gates: torch.Tensor, tokens: int
) -> torch.Tensor:
    """The weighted sum of each own token's outputs: [tokens, H].

    Args:
        outputs: [sum(received), H], in the order in which the experts got the rows.
        gates: [sum(sent)], one for each row that this rank sent.
        tokens: how many tokens this rank has. One without a row gets zeros.
    """
    # TODO 2 of 2: undo the order, return, multiply, and add up. Every rank calls
    # ``Return.apply``, even one without rows or tokens.
    # [start answer 2]
    as_received = outputs[trip.order.argsort()]
    returned = Return.apply(as_received, trip.sent, trip.received)
    mixed = returned.new_zeros(tokens, outputs.shape[1])
    return mixed.index_add(0, trip.token, gates[:, None] * returned)
    # [end answer 2]
