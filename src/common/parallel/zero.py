"""ZeRO by hand: what a rank keeps of a layer, gathers, and frees.

    zero = Zero(model.layers(), stage=3)
    zero.begin_step()
    loss_of(model(inputs)).backward()    # gradients are averaged in here
    zero.step(optimizer)                 # AdamW(zero.masters())

Stage 0 is plain data parallel. Stage 1 shards the state of the optimizer, stage 2 the
gradients as well, stage 3 the parameters, too: Rajbhandari et al., 2020, "ZeRO".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import nn

STAGES = (0, 1, 2, 3)
ONE_BACKWARD = "Zero takes one backward pass in each step: call begin_step() before it"
MASTER = torch.float32  # of 16-bit parameters: small updates would be rounded away


# [start unit]
class Unit:
    """The parameters of one layer side by side in a flat tensor, cut into shards.

    Parameters that take no gradient are left alone: they stay whole on every rank.
    """

    def __init__(self, layer: nn.Module, stage: int, dtype: torch.dtype | None = None):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.stage = stage
        self.parameters = [p for p in layer.parameters() if p.requires_grad]
        numels = [parameter.numel() for parameter in self.parameters]
        # rounded up: N need not divide the size of a layer; the rest is padding
        numel = -(-sum(numels) // world_size)
        padding = world_size * numel - sum(numels)
        first = self.parameters[0]
        dtype = dtype or first.dtype
        self.whole = first.new_zeros(world_size * numel, dtype=dtype)
        self.gradients = torch.zeros_like(self.whole)
        values = self.whole.split([*numels, padding])
        slots = self.gradients.split([*numels, padding])
        pieces = zip(self.parameters, values, slots, strict=False)  # not the padding
        for parameter, value, slot in pieces:
            # the layer keeps working, in our memory
            value.copy_(parameter.detach().flatten())
            parameter.data = value.view_as(parameter)
            parameter.grad = slot.view_as(parameter)
        own = slice(rank * numel, (rank + 1) * numel) if stage else slice(None)
        self.shard, self.gradient_shard = self.whole[own], self.gradients[own]
        if stage >= 2:
            self.gradient_shard = self.gradient_shard.clone()
            free(self.gradients)
        if stage == 3:
            self.shard = self.shard.clone()
            free(self.whole)
        # what the optimizer steps: the shard itself, or its copy in more bits
        wide = MASTER if dtype.itemsize == 2 else dtype
        self.master = nn.Parameter(self.shard.to(wide))

    # [end unit]
    # [start collectives]
    def gather(self) -> None:
        """Make the layer's parameters whole on this rank; all ranks call this."""
        allocate(self.whole)
        # Every rank. shard [n] -> whole [N n]: (N-1) x n elements leave this rank.
        dist.all_gather_single(self.whole, self.shard)

    def expect_gradients(self) -> None:
        """Give autograd room to add the gradients of this rank to."""
        allocate(self.gradients)
        self.gradients.zero_()

    def begin_backward(self) -> None:
        """What the backward pass of the layer needs, for a moment."""
        if self.arrived or self.reduced:
            raise RuntimeError(ONE_BACKWARD)
        if self.stage == 3:
            self.gather()
        self.expect_gradients()

    def reduce(self) -> None:
        """Average over the ranks; what this rank need not keep is freed."""
        self.gradients /= dist.get_world_size()
        if self.stage == 0:
            # Every rank. [N n] -> [N n], in place: 2(N-1) x n elements are sent.
            dist.all_reduce(self.gradients)
        else:
            # Every rank. [N n] -> [n]: (N-1) x n elements are sent.
            dist.reduce_scatter_single(self.gradient_shard, self.gradients)
        if self.stage >= 2:
            free(self.gradients)
        if self.stage == 3:
            free(self.whole)
        self.reduced = True

    def free_whole(self) -> None:
        """Keep only this rank's shard of the parameters."""
        free(self.whole)

    # [end collectives]
    def begin_step(self) -> None:
        """Forget the gradients of the step before."""
        self.reduced = False
        self.arrived: set[nn.Parameter] = set()
        if self.stage < 2:
            self.gradients.zero_()

    def finish_gradients(self) -> None:
        """Reduce what backward has not: a layer with parameters that were not used.

        Their gradient is zero here, where one process would have none at all.
        """
        if not self.reduced:
            if is_freed(self.gradients):
                self.expect_gradients()
            self.reduce()

    def gradient_arrived(self, parameter: nn.Parameter) -> None:
        """Called once for each parameter of the layer, in a step's only backward."""
        if parameter in self.arrived:
            raise RuntimeError(ONE_BACKWARD)
        self.arrived.add(parameter)
        if len(self.arrived) == len(self.parameters):
            self.reduce()


# [start free]
def allocate(tensor: torch.Tensor) -> None:
    """Give a freed tensor its memory again, with whatever is in there.

    The tensor stays the same object, so views of it and what autograd has saved of
    them see the new memory. FSDP does it the same way.
    """
    tensor.untyped_storage().resize_(tensor.numel() * tensor.element_size())


def free(tensor: torch.Tensor) -> None:
    """Give the memory of a tensor back; it must not be read until it is allocated."""
    tensor.untyped_storage().resize_(0)


def is_freed(tensor: torch.Tensor) -> bool:
    """Whether a tensor has no memory now."""
    return tensor.untyped_storage().nbytes() == 0


# [end free]
# [start when]
class Zero:
    """Calls the units of a model at the right moments.

    Every parameter of ``model`` belongs to one of ``layers``, and all ranks use the
    layers in the same order, each at most once in a forward pass.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        stage: int,
        dtype: torch.dtype | None = None,
    ):
        self.stage = stage
        self.units: list[Unit] = []
        for layer in layers:
            if any(parameter.requires_grad for parameter in layer.parameters()):
                self.units.append(unit := Unit(layer, stage, dtype))
                self._watch(layer, unit)

    def _watch(self, layer: nn.Module, unit: Unit) -> None:
        """Notify the unit when its layer's forward and backward begin and end."""
        if self.stage == 3:
            layer.register_forward_pre_hook(lambda *_: unit.gather())
            layer.register_forward_hook(lambda *_: unit.free_whole())
        if self.stage >= 2:
            layer.register_forward_hook(self._await_backward(unit))
        for parameter in unit.parameters:
            parameter.register_post_accumulate_grad_hook(unit.gradient_arrived)

    def _await_backward(self, unit: Unit) -> Callable[..., None]:
        """Notify the unit when backward reaches the output of its layer."""

        def hook(_layer, _inputs, output: torch.Tensor) -> None:
            if output.requires_grad:
                output.register_hook(lambda _gradient: unit.begin_backward())

        return hook

    def masters(self) -> list[nn.Parameter]:
        """What the optimizer steps: this rank's shards."""
        return [unit.master for unit in self.units]

    def begin_step(self) -> None:
        """Forget the gradients of the step before; zero_grad() of this scheme."""
        for unit in self.units:
            unit.begin_step()

    @torch.no_grad()
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Step this rank's shards, and make the parameters whole where they are."""
        for unit in self.units:
            unit.finish_gradients()
            unit.master.grad = unit.gradient_shard.to(unit.master.dtype)
        optimizer.step()
        for unit in self.units:
            unit.master.grad = None
            if unit.master.dtype != unit.shard.dtype:
                unit.shard.copy_(unit.master)  # rounded to 16 bits
            if self.stage in (1, 2):
                unit.gather()


# [end when]
