"""Write the backward pass of ring attention.

Each of W ranks has the queries, keys and values of its own tokens. In forward, keys and
values are passed around the ring, so each rank's queries see all of them. There is no
mask here. In backward, they go around again. Each rank that holds them adds what its
own queries contribute to their gradients. These sums must end up on the keys' owner::

    out = RingAttention.apply(query, key, value)   # [B, heads, T/W, h] each
    out.square().sum().backward()                  # query.grad, key.grad, value.grad

For a query, the gradient of its score with key j is

    weight_j * (grad_out . value_j - grad_out . out)

where the weight is exp(score_j - log_sum), of the softmax over the keys of *all* ranks.

    workshop check 21_ring_backward

The page is docs/lessons/21_long_sequences/2_ring.rst.
"""

import torch
import torch.distributed as dist
from torch import Tensor


def pass_on(tensor: Tensor) -> Tensor:
    """Send a tensor to the next rank; return that of the rank before."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    tensor = tensor.contiguous()
    arriving = torch.empty_like(tensor)
    # Every rank, at the same step.
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, tensor, (rank + 1) % world_size),
            dist.P2POp(dist.irecv, arriving, (rank - 1) % world_size),
        ]
    )
    for work in works:
        work.wait()
    return arriving


def contributions(
    query: Tensor, log_sum: Tensor, out: Tensor, grad_out: Tensor, pair: Tensor
) -> tuple[Tensor, Tensor]:
    """What these queries and one rank's keys and values add to their gradients.

    Args:
        query: [B, heads, q, h].
        log_sum: [B, heads, q, 1], over the keys of all ranks.
        out, grad_out: [B, heads, q, h], the output and its gradient.
        pair: [2, B, heads, k, h], keys and values.

    Returns:
        ([B, heads, q, h], [2, B, heads, k, h]): to the gradient of the query, and to
        those of keys and values.
    """
    scale = query.shape[-1] ** -0.5
    scores = query @ pair[0].mT * scale
    # TODO 1 of 2: the weights, the gradient of the scores, and from them all three
    # gradients. ``scores`` are scaled, so what leads to query and key is scaled, too.
    # [start answer 1]
    key, value = pair
    weights = (scores - log_sum).exp()
    mean_grad = (grad_out * out).sum(dim=-1, keepdim=True)
    grad_scores = weights * (grad_out @ value.mT - mean_grad) * scale
    grad_pair = torch.stack([grad_scores.mT @ query, weights.mT @ grad_out])
    return grad_scores @ key, grad_pair
    # [end answer 1]


class RingAttention(torch.autograd.Function):
    """Own queries, all ranks' keys: 3 x [B, heads, T/W, h] -> [B, heads, T/W, h]."""

    @staticmethod
    def forward(ctx, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        pair, scale = torch.stack([key, value]), query.shape[-1] ** -0.5
        out = torch.zeros_like(query)
        log_sum = query.new_full((*query.shape[:-1], 1), -torch.inf)
        for step in range(dist.get_world_size()):
            if step > 0:
                pair = pass_on(pair)
            scores = query @ pair[0].mT * scale
            part = scores.logsumexp(dim=-1, keepdim=True)
            total = torch.logaddexp(log_sum, part)
            new = (scores - total).exp() @ pair[1]
            out, log_sum = (log_sum - total).exp() * out + new, total
        ctx.save_for_backward(query, key, value, out, log_sum)
        return out

    @staticmethod
    def backward(ctx, grad_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # TODO 2 of 2: from ``ctx.saved_tensors``, return the gradients of query, key
        # and value of this rank's tokens. Call ``contributions`` for each pair that
        # passes by, and send nothing except by ``pass_on``.
        # [start answer 2]
        query, key, value, out, log_sum = ctx.saved_tensors
        pair, grad_query = torch.stack([key, value]), torch.zeros_like(query)
        grad_pair = torch.zeros_like(pair)
        for _ in range(dist.get_world_size()):
            to_query, to_pair = contributions(query, log_sum, out, grad_out, pair)
            grad_query += to_query
            # Both go to the next rank together, so they always belong together.
            pair, grad_pair = pass_on(torch.stack([pair, grad_pair + to_pair]))
        # After W steps they are back at their owner.
        return grad_query, grad_pair[0], grad_pair[1]
        # [end answer 2]
