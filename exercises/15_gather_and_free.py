"""Gather a layer's weight when it is needed, and free it at once: ZeRO stage 3.

Each rank holds some rows of a weight [rows, columns] and some of the batch. A rank
cannot compute with a few rows alone, so the whole weight is gathered for the forward
pass of the layer and let go; backward needs it once more and gathers it again. Between
the two a rank holds its own rows, nothing else of the weight: with many layers that
makes the difference.

The gradient of the weight is the mean over the ranks of the gradients that each rank
has computed from its part of the batch. Each rank gets the rows that it holds.

``rows`` need not be divisible by W. Each rank holds ``ceil(rows / W)`` rows, and the
last ones, at the end of the last ranks, are padding: zeros that must not take part.

    workshop check 15_gather_and_free

The page is docs/lessons/15_sharded_data_parallel.rst.
"""

import torch
import torch.distributed as dist


def gather(shard: torch.Tensor, rows: int) -> torch.Tensor:
    """[n, columns] on each rank -> [rows, columns], the same on all."""
    # TODO 1 of 3: the rows of rank 0, of rank 1, and so on, without the padding.
    raise NotImplementedError("TODO 1 of 3")


class ShardedLinear(torch.autograd.Function):
    """``ShardedLinear.apply(x, shard, rows)`` is ``x @ weight.T``, weight in shards."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, shard: torch.Tensor, rows: int) -> torch.Tensor:
        """x [B, columns] of this rank, shard [n, columns] -> [B, rows]."""
        # TODO 2 of 3: compute with the whole weight, and keep for backward only what
        # this rank holds anyway. (ctx.rows may keep a number.)
        raise NotImplementedError("TODO 2 of 3")

    @staticmethod
    def backward(ctx, grad: torch.Tensor):
        """grad [B, rows], of this rank's loss -> gradients of x and of the shard."""
        # TODO 3 of 3: grad_x is of this rank's loss alone, grad_shard is the mean over
        # the ranks. The weight is gathered again; rows of padding have gradient 0.
        raise NotImplementedError("TODO 3 of 3")
        return grad_x, grad_shard, None
