"""Skip a step on all ranks, or on none.

float16 can't hold small gradients, so the loss is multiplied by a scale before
backward. If the scale is too large, a gradient becomes infinite, and that step must be
skipped. With FSDP, each rank has a shard of every gradient, and only the rank whose
shard is infinite sees it. If it skips the step alone, its weights stay behind.

    workshop check 17_grad_scaler

The page is docs/lessons/17_speed/2_bits_and_memory.rst.
"""

import torch
import torch.distributed as dist


class ShardedGradScaler:
    """What torch.amp.GradScaler does, for gradients that are sharded over the ranks.

    Attributes:
        scale: what the loss is multiplied by; the same on all ranks.
        interval: after this many steps in a row without overflow, the scale doubles.
        good_steps: how many there have been since the scale last changed.
    """

    def __init__(self, scale: float, interval: int):
        self.scale = scale
        self.interval = interval
        self.good_steps = 0

    def unscale(self, gradients: list[torch.Tensor]) -> bool:
        """Divide this rank's gradients by the scale, in place; every rank calls this.

        Args:
            gradients: this rank's shards; a rank may have none, or an empty one.

        Returns:
            Whether *all* gradients of *all* ranks are finite: neither infinite nor nan.
        """
        # TODO 1 of 2: divide each gradient by the scale. Then find out whether the
        # gradients of all ranks are finite; one number from each rank is enough.
        # [start answer 1]
        for gradient in gradients:
            gradient /= self.scale
        bad = not all(gradient.isfinite().all() for gradient in gradients)
        overflow = torch.tensor(float(bad))
        # Every rank, also one without gradients. One number.
        dist.all_reduce(overflow, op=dist.ReduceOp.MAX)
        finite = overflow.item() == 0
        # [end answer 1]
        return finite

    def step(self, optimizer: torch.optim.Optimizer, finite: bool) -> None:
        """Take the step or skip it, and adapt the scale; every rank calls this.

        Args:
            finite: what :meth:`unscale` returned.
        """
        # TODO 2 of 2: if all are finite, take the step and count it; after `interval`
        # of them in a row, double the scale. If not, take no step and halve the scale.
        # When the scale changes, start to count again.
        # [start answer 2]
        if not finite:
            self.scale, self.good_steps = self.scale / 2, 0
            return
        optimizer.step()
        self.good_steps += 1
        if self.good_steps == self.interval:
            self.scale, self.good_steps = self.scale * 2, 0
        # [end answer 2]
