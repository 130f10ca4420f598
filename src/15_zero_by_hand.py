"""Train a byte GPT whose model states are sharded over the ranks: ZeRO by hand.

    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 100 --stage 0
    torchrun --standalone --nproc-per-node=4 src/15_zero_by_hand.py 99 --mixed-precision

Stage 0 is plain data parallel. Stage 1 shards the state of the optimizer, stage 2 the
gradients as well, stage 3 (the default) the parameters, too: Rajbhandari et al., 2020.
"""

import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from common import gpt_training
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import log, one_line_errors
from common.process_group import all_gather_single, join_or_alone, reduce_scatter_single

ALONE = "it holds every shard, so gathering and reducing send nothing"


@dataclass(frozen=True)
class Config(gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    stage: int  # of ZeRO, 0 to 3
    mixed_precision: bool  # shards of 16 bits, masters of 32


class Unit:
    """The trained parameters of a layer, side by side in a flat tensor, in N shards."""

    def __init__(self, layer: nn.Module, stage: int):
        self.stage, rank, world_size = stage, dist.get_rank(), dist.get_world_size()
        self.parameters = [p for p in layer.parameters() if p.requires_grad]
        flat = [parameter.detach().flatten() for parameter in self.parameters]
        padding = -sum(map(len, flat)) % world_size  # N need not divide a layer
        self.whole = torch.cat([*flat, flat[0].new_zeros(padding)])
        self.gradients = torch.zeros_like(self.whole)
        numels = [*map(len, flat), padding]
        values, slots = self.whole.split(numels), self.gradients.split(numels)
        for parameter, value, slot in zip(self.parameters, values, slots, strict=False):
            parameter.data = value.view_as(parameter)  # now in the flat tensor
            parameter.grad = slot.view_as(parameter)
        shards = world_size if stage else 1
        self.shard = self.whole.chunk(shards)[rank % shards]
        self.gradient_shard = self.gradients.chunk(shards)[rank % shards]
        if stage >= 2:
            self.gradient_shard = self.gradient_shard.clone()
            free(self.gradients)
        if stage == 3:
            self.shard = self.shard.clone()
            free(self.whole)
        # The optimizer steps this: in 16 bits, small updates would be rounded away.
        bits = torch.promote_types(self.shard.dtype, torch.float32)  # at least 32
        self.master = nn.Parameter(self.shard.to(bits))
        self.missing = set(self.parameters)  # whose gradients are not complete
        self.register_hooks(layer)

    def gather(self) -> None:
        """Make the layer's parameters whole on this rank."""
        allocate(self.whole)
        # Every rank. shard [n] -> whole [N n]: (N-1) x n elements leave this rank.
        all_gather_single(self.whole, self.shard)

    def reduce(self) -> None:
        """Average over the ranks; what this rank need not keep is freed."""
        self.gradients /= dist.get_world_size()
        if self.stage == 0:
            # Every rank. [N n] -> [N n], in place: 2(N-1) x n elements are sent.
            dist.all_reduce(self.gradients)
        else:
            # Every rank. [N n] -> [n]: (N-1) x n elements are sent.
            reduce_scatter_single(self.gradient_shard, self.gradients)
        if self.stage >= 2:
            free(self.gradients)
        if self.stage == 3:
            free(self.whole)

    # [start hooks]
    def register_hooks(self, layer: nn.Module) -> None:
        if self.stage == 3:
            layer.register_forward_pre_hook(lambda *_: self.gather())
        layer.register_forward_hook(self.end_forward)
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(self.gradient_arrived)

    def end_forward(self, _layer: nn.Module, _inputs: tuple, output: Tensor) -> None:
        if self.stage == 3:
            free(self.whole)
        if output.requires_grad:
            output.register_hook(self.begin_backward)

    def begin_backward(self, _gradient: Tensor) -> None:
        if len(self.missing) < len(self.parameters):
            raise RuntimeError("one backward pass before each optimizer_step()")
        if self.stage == 3:
            self.gather()
        allocate(self.gradients)

    def gradient_arrived(self, parameter: nn.Parameter) -> None:
        self.missing.remove(parameter)
        if not self.missing:
            self.reduce()


# [end hooks]
def allocate(tensor: Tensor) -> None:
    """Give a freed tensor its memory again, as zeros: the same object, as FSDP does."""
    if tensor.untyped_storage().nbytes() == 0:
        tensor.untyped_storage().resize_(tensor.numel() * tensor.itemsize)
        tensor.zero_()


def free(tensor: Tensor) -> None:
    """Give the memory of a tensor back; it must not be read until it is allocated."""
    tensor.untyped_storage().resize_(0)


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, list[Unit], torch.optim.Optimizer]:
    """The model, which computes as before, its shards, and their optimizer."""
    dtype = torch.bfloat16 if config.mixed_precision else torch.float32
    model = gpt_training.make_gpt(config, device).to(dtype)
    units = [Unit(layer, config.stage) for layer in model.layers()]
    masters = [unit.master for unit in units]
    return model, units, gpt_training.make_optimizer(masters, config.learning_rate)


def optimizer_step(units: list[Unit], optimizer: torch.optim.Optimizer) -> None:
    """Step this rank's shards, and make the parameters whole where they are."""
    for unit in units:
        if unit.missing:  # parameters that were not used: their gradients are zeros
            allocate(unit.gradients)
            unit.reduce()
        unit.master.grad = unit.gradient_shard.to(unit.master.dtype)
    optimizer.step()
    for unit in units:
        unit.master.grad = None
        unit.shard.copy_(unit.master.detach())  # rounded, if the shard has 16 bits
        if unit.stage in (1, 2):
            unit.gather()
        if unit.stage < 2:
            unit.gradients.zero_()
        unit.missing = set(unit.parameters)


def train_step(
    model: ByteGPT,
    units: list[Unit],
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: this rank's inputs and targets [B / N, T]; the mean loss of these."""
    loss = next_byte_loss(model(inputs).float(), targets)
    loss.backward()  # gradients become the mean over the ranks in here
    optimizer_step(units, optimizer)
    return loss.detach()


def parse_arguments() -> Config:
    def add_options(parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--stage", type=int, choices=range(4), default=3, help="what is sharded")
        add("--mixed-precision", action="store_true", help="16 bits, masters of 32")

    return gpt_training.parse_text_training(__doc__, Config, add_options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    gpt_training.show_config(config)
    batches = gpt_training.Batches(config, device)
    model, units, optimizer = build(config, device)
    log(f"Stage {config.stage}")
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = map(gpt_training.local_batch, batches.of_step(step))
        loss = train_step(model, units, optimizer, inputs, targets)
        progress.note(step, loss / dist.get_world_size())
    # all ranks score together: in stage 3 no rank has the whole model
    progress.report(batches.test_loss(lambda tokens: model(tokens).float()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
