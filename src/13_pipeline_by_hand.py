"""Train a byte GPT in stages, one on each rank, with schedules built on send and recv.

    torchrun --standalone --nproc-per-node=3 src/13_pipeline_by_hand.py 100
    torchrun --standalone --nproc-per-node=4 src/13_pipeline_by_hand.py 100 \\
        --schedule gpipe --micro-batches 16

Rank r has stage r. It sends activations to rank r + 1, their gradients to rank r - 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from common.byte_gpt import BYTES, next_byte_loss
from common.distributed import BadInput, log, one_line_errors
from common.gpt_training import (
    Batches,
    Progress,
    TextConfig,
    make_gpt,
    make_optimizer,
    parse_text_training,
)
from common.parallel.pipeline import (
    SCHEDULES,
    PipelineOptions,
    add_pipeline_options,
    cut,
)
from common.process_group import join_or_alone, refuse_messages_between_shared

ALONE = "the pipeline is one stage, the whole model, and sends nothing"


@dataclass(frozen=True)
class Config(PipelineOptions, TextConfig):
    """The command line; the same on all ranks."""


# [start build]
def build(config: Config, device: torch.device) -> tuple[Pipeline, range]:
    """This rank's stage, cut from the model that one device would train."""
    model = make_gpt(config, device)
    span = cut(model, dist.get_world_size())[dist.get_rank()]
    stage = nn.Sequential(*model.layers()[span.start : span.stop])
    return Pipeline(stage, config), span


# [end build]
# [start step]
def train_step(
    pipeline: Pipeline,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B, T]; the mean loss on the last rank, else 0."""
    optimizer.zero_grad()
    loss = pipeline.step(inputs, targets)
    optimizer.step()  # of this rank's weights alone: no other rank has them
    return loss


# [end step]
class Pipeline:
    """This rank's stage of a model, and its part of every step."""

    def __init__(self, stage: nn.Module, config: Config):
        self.stage, self.config = stage, config
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self.first, self.last, self.last_rank = rank == 0, rank == ranks - 1, ranks - 1
        schedule = SCHEDULES[config.schedule]
        self.order = list(schedule(rank, ranks, config.micro_batches))
        self.activations = Channel(rank - 1, rank + 1)
        self.gradients = Channel(rank + 1, rank - 1)
        self.live: dict[int, tuple[Tensor, Tensor]] = {}  # what backward needs

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Leave gradients in ``.grad``; the batch's mean loss on the last rank, else 0.

        Every rank has inputs and targets [B, T]; the first one uses the inputs, the
        last one the targets. If m does not divide B, the first ones are larger.
        """
        self.inputs = inputs.tensor_split(self.config.micro_batches)
        self.targets = targets.tensor_split(self.config.micro_batches)
        self.loss = next(self.stage.parameters()).new_zeros(())
        for action in self.order:
            run = self.forward if action.what == "forward" else self.backward
            run(action.micro_batch)
        self.activations.finish()
        self.gradients.finish()
        return self.loss

    # [start forward]
    def forward(self, k: int) -> None:
        """Run micro-batch ``k`` through this stage."""
        x = self.inputs[k]
        if not self.first:
            # rank r - 1 sends it, [B/m, T, width], and waits for its .grad in backward
            x = self.activations.receive(self.empty(x)).requires_grad_()
        y = self.stage(x)
        if self.last:
            share = len(self.targets[k]) / sum(map(len, self.targets))
            y = next_byte_loss(y, self.targets[k]) * share
            self.loss += y.detach()
        self.live[k] = x, y
        if not self.last:
            self.activations.send(y.detach())

    # [end forward]
    # [start backward]
    def backward(self, k: int) -> None:
        """Run the gradient of micro-batch ``k`` back through this stage."""
        x, y = self.live.pop(k)
        # rank r + 1 sends the gradient of this stage's output: [B/m, T, width]
        gradient = None if self.last else self.gradients.receive(torch.empty_like(y))
        y.backward(gradient)  # adds up in the .grad of the weights
        if not self.first:
            self.gradients.send(x.grad)

    # [end backward]
    @torch.no_grad()
    def score(self, inputs: Tensor) -> Tensor:
        """The model's scores [B, T, 256] for inputs [B, T], on every rank."""
        x = inputs if self.first else self.activations.receive(self.empty(inputs))
        y = self.stage(x)
        if not self.last:
            self.activations.send(y)
            y = y.new_empty(*inputs.shape, BYTES)
        self.activations.finish()
        # every rank must reach this line: [B, T, 256] from the last one
        dist.broadcast(y, src=self.last_rank)
        return y

    def empty(self, tokens: Tensor) -> Tensor:
        """Room for the activations of ``tokens`` at a boundary: [B, T, width]."""
        weight = next(self.stage.parameters())
        return weight.new_empty(*tokens.shape, self.config.width)


# [start channel]
class Channel:
    """Messages in one direction, from one neighbor and to the other.

    Each direction has its own process group, so an activation isn't queued behind a
    gradient that waits for it. With NCCL, two groups at once may block each other.
    """

    def __init__(self, source: int, to: int):
        self.source, self.to = source, to
        self.group = dist.new_group()  # every rank, for each channel
        self.under_way: tuple[dist.Work, Tensor] | None = None

    def send(self, tensor: Tensor) -> None:
        """Start to send, and continue computing: gloo's send waits for the receiver."""
        self.finish()  # at most one is in flight, or they would pile up
        work = dist.isend(tensor, self.to, group=self.group)
        self.under_way = work, tensor  # the tensor must live until it is sent

    def receive(self, tensor: Tensor) -> Tensor:
        """Wait for what the neighbor sends, and store it in ``tensor``."""
        dist.recv(tensor, self.source, group=self.group)
        return tensor

    def finish(self) -> None:
        """Wait until the receiver has what was sent."""
        if self.under_way is not None:
            self.under_way[0].wait()
            self.under_way = None


# [end channel]
def parse_arguments() -> Config:
    config = parse_text_training(
        __doc__, Config, lambda parser: add_pipeline_options(parser, SCHEDULES)
    )
    if config.micro_batches > config.batch_size:
        more = f"--micro-batches {config.micro_batches} is more than --batch-size"
        raise BadInput(f"{more} {config.batch_size}: choose fewer")
    return config


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    batches = Batches(config, device)
    pipeline, _ = build(config, device)
    optimizer = make_optimizer(pipeline.stage.parameters(), config.learning_rate)
    log(f"{config.schedule} with {config.micro_batches} micro-batches")
    progress = Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        progress.note(step, train_step(pipeline, optimizer, inputs, targets))
    progress.report(batches.test_loss(pipeline.score))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
