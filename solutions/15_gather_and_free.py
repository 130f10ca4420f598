"""Gather a layer's weight when it is needed, and free it at once: ZeRO stage 3.

Each rank holds some rows of a weight [rows, columns] and some samples of the batch. It
can't compute with a few rows alone, so gather the whole weight for the layer's forward
pass and free it afterwards. Backward needs the weight again, so gather it once more.
Between the two, a rank holds its own rows and nothing else of the weight. With many
layers that saves most of the memory.

The gradient of the weight is the mean over the ranks of the gradients that each rank
computes from its part of the batch. Each rank gets only the rows it holds: gather the
weight, but don't gather gradients, and don't all-reduce them. Leave the tensor that
autograd passes to backward unchanged: others may need it, too.

``rows`` need not be divisible by the number of ranks, N. Each rank holds
``ceil(rows / N)`` rows. The last ones, at the end of the last ranks, are padding: zeros
that must not affect any result.

    workshop check 15_gather_and_free

The page is docs/lessons/15_sharded_data_parallel/2_by_hand.rst.
"""

import torch
import torch.distributed as dist


def gather(shard: torch.Tensor, rows: int) -> torch.Tensor:
    """[n, columns] on each rank -> [rows, columns], the same on all."""
    # TODO 1 of 3: return the rows of rank 0, rank 1 and so on, without the padding.
    # [start answer 1]
    whole = shard.new_empty(dist.get_world_size() * len(shard), shard.shape[1])
    # Every rank. [n, columns] -> [N n, columns]
    dist.all_gather_into_tensor(whole, shard.contiguous())
    return whole[:rows]
    # [end answer 1]


class ShardedLinear(torch.autograd.Function):
    """``ShardedLinear.apply(x, shard, rows)`` is ``x @ weight.T``, weight in shards."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, shard: torch.Tensor, rows: int) -> torch.Tensor:
        """x [B, columns] of this rank, shard [n, columns] -> [B, rows]."""
        # TODO 2 of 3: compute with the whole weight, but save for backward only what
        # this rank holds anyway. (ctx.rows may keep a number.)
        # [start answer 2]
        ctx.save_for_backward(x, shard)
        ctx.rows = rows
        return x @ gather(shard, rows).T
        # [end answer 2]

    @staticmethod
    def backward(ctx, grad: torch.Tensor):
        """grad [B, rows], of this rank's loss -> gradients of x and of the shard."""
        # TODO 3 of 3: grad_x belongs to this rank's loss alone, grad_shard is the mean
        # over the ranks. Gather the weight again; rows of padding have gradient 0.
        # [start answer 3]
        x, shard = ctx.saved_tensors
        grad_x = grad @ gather(shard, ctx.rows)
        whole = grad.new_zeros(dist.get_world_size() * len(shard), shard.shape[1])
        whole[: ctx.rows] = grad.T @ x / dist.get_world_size()
        grad_shard = torch.empty_like(shard)
        # Every rank. [N n, columns] -> [n, columns]
        dist.reduce_scatter_tensor(grad_shard, whole)
        # [end answer 3]
        return grad_x, grad_shard, None
