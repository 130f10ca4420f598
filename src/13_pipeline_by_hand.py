"""Train a byte GPT in stages, one on each rank, with schedules made from send and recv.

Run from the folder of the workshop:

    torchrun --standalone --nproc-per-node=3 src/13_pipeline_by_hand.py 100
    torchrun --standalone --nproc-per-node=4 src/13_pipeline_by_hand.py 100 \\
        --schedule gpipe --micro-batches 16
    torchrun --standalone --nproc-per-node=4 src/13_pipeline_by_hand.py 3 \\
        --timeline timeline.json        # what each rank did in the last step

Rank r has stage r. What it sends to rank r + 1 are activations, what it sends to rank
r - 1 are gradients of activations.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from common.accounting import count_step
from common.byte_gpt import next_byte_loss
from common.distributed import (
    BadInput,
    check_output_file,
    describe_world,
    is_rank_0,
    join,
    log,
    one_line_errors,
    positive_int,
    speaks_first,
)
from common.gpt_training import (
    Text,
    make_gpt,
    make_optimizer,
    parse_text_training,
    sizes_of,
)
from common.pipeline import (
    boundary_bytes,
    cut,
    gather_events,
    held_by_formula,
    name_layers,
    orders_of,
    stage_activations,
    tables_of_all_ranks,
    write_timeline,
)
from common.schedules import SCHEDULES, Action, Schedule, bubble, most_live


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--micro-batches",
        metavar="M",
        type=positive_int,
        default=8,
        help="parts that a global batch is cut into (default: %(default)s)",
    )
    parser.add_argument(
        "--schedule",
        choices=list(SCHEDULES),
        default="1f1b",
        help="in which order each rank computes (default: %(default)s)",
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=Path,
        help="write what each rank did in the last step, and when, as JSON",
    )


# [start channel]
class Channel:
    """Messages in one direction, from one neighbour and to the other.

    Each direction has a process group of its own, so that on devices, too, an
    activation never queues behind a gradient that waits for it.
    """

    def __init__(self, source: int, to: int):
        self.source, self.to = source, to
        self.group = dist.new_group()  # every rank, for each channel
        self.under_way: tuple[dist.Work, Tensor] | None = None

    def send(self, tensor: Tensor) -> None:
        """Begin to send, and go on computing: gloo's send waits for the receiver."""
        self.finish()  # at most one is under way, or they would pile up
        work = dist.isend(tensor, self.to, group=self.group)
        self.under_way = work, tensor  # the tensor must live until it is sent

    def receive(self, tensor: Tensor) -> Tensor:
        """Wait for what the neighbour sends, and put it into ``tensor``."""
        dist.recv(tensor, self.source, group=self.group)
        return tensor

    def finish(self) -> None:
        """Wait until the receiver has what was sent."""
        if self.under_way is not None:
            self.under_way[0].wait()
            self.under_way = None


# [end channel]
class Pipeline:
    """This rank's stage of a model, and its part of every step."""

    def __init__(
        self, stage: nn.Module, width: int, micro_batches: int, schedule: Schedule
    ):
        self.stage, self.width = stage, width
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.first, self.last = self.rank == 0, self.rank == self.ranks - 1
        self.order = list(schedule(self.rank, self.ranks, micro_batches))
        self.micro_batches = micro_batches
        self.activations = Channel(self.rank - 1, self.rank + 1)
        self.gradients = Channel(self.rank + 1, self.rank - 1)
        self.live: dict[int, tuple[Tensor, Tensor]] = {}  # what backward needs
        self.most_live = 0
        self.events: list[tuple[Action, float, float]] = []  # of the last step

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Leave the gradients of the global batch in ``.grad``; its mean loss.

        Every rank has inputs and targets [B, T]; the first one uses the inputs, the
        last one the targets. The last micro-batches are one piece smaller if the batch
        cannot be divided.
        """
        self.inputs = inputs.tensor_split(self.micro_batches)
        self.targets = targets.tensor_split(self.micro_batches)
        self.loss = torch.zeros((), device=inputs.device, dtype=self.dtype())
        self.events = []
        for action in self.order:
            run = self.forward if action.what == "forward" else self.backward
            begin, end = run(action.micro_batch)
            self.events.append((action, begin, end))
            self.most_live = max(self.most_live, len(self.live))
        self.activations.finish()
        self.gradients.finish()
        # every rank must reach this line: the last one's loss, 4 bytes
        dist.broadcast(self.loss, src=self.ranks - 1)
        return self.loss

    # [start forward]
    def forward(self, k: int) -> tuple[float, float]:
        """Take micro-batch ``k`` through this stage; when it began and ended."""
        if self.first:
            x = self.inputs[k]
        else:
            # rank r - 1 sends it: [B/m, T, width]. It is a leaf of this rank's graph,
            # and backward leaves in its .grad what that rank waits for.
            x = self.activations.receive(self.empty(k)).requires_grad_()
        begin = now(x.device)
        y = self.stage(x)
        if self.last:
            share = len(self.targets[k]) / sum(map(len, self.targets))
            y = next_byte_loss(y, self.targets[k]) * share
            self.loss += y.detach()
        end = now(x.device)
        self.live[k] = x, y
        if not self.last:
            self.activations.send(y.detach())
        return begin, end

    # [end forward]
    # [start backward]
    def backward(self, k: int) -> tuple[float, float]:
        """Take the gradient of micro-batch ``k`` back; when it began and ended."""
        x, y = self.live.pop(k)
        # rank r + 1 sends the gradient of this stage's output: [B/m, T, width]
        gradient = None if self.last else self.gradients.receive(torch.empty_like(y))
        begin = now(x.device)
        y.backward(gradient)  # adds up in the .grad of the weights
        end = now(x.device)
        if not self.first:
            self.gradients.send(x.grad)
        return begin, end

    # [end backward]
    @torch.no_grad()
    def score(self, inputs: Tensor) -> Tensor:
        """The model's scores [B, T, 256] for inputs [B, T], on every rank."""
        self.inputs = (inputs,)
        x = inputs if self.first else self.activations.receive(self.empty(0))
        y = self.stage(x)
        if not self.last:
            self.activations.send(y)
            y = y.new_empty(*inputs.shape, 256)
        self.activations.finish()
        # every rank must reach this line: [B, T, 256] from the last one
        dist.broadcast(y, src=self.ranks - 1)
        return y

    def dtype(self) -> torch.dtype:
        return next(self.stage.parameters()).dtype

    def empty(self, k: int) -> Tensor:
        """Room for the activations of micro-batch ``k`` at a boundary."""
        device = self.inputs[k].device
        shape = *self.inputs[k].shape, self.width
        return torch.empty(shape, device=device, dtype=self.dtype())


def now(device: torch.device) -> float:
    """Seconds; on a device, when all that was asked of it is done."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return time.time()


# [start build]
def build(args: argparse.Namespace, device: torch.device) -> tuple[Pipeline, range]:
    """This rank's stage, cut from the model that one device would train."""
    model = make_gpt(args, device)
    span = cut(model, dist.get_world_size())[dist.get_rank()]
    stage = nn.Sequential(*model.layers()[span.start : span.stop])
    schedule = SCHEDULES[args.schedule]
    return Pipeline(stage, args.width, args.micro_batches, schedule), span


# [end build]
# [start step]
def train_step(
    pipeline: Pipeline,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    targets: Tensor,
) -> float:
    """One step: inputs and targets [B, T]; the mean loss of the batch."""
    optimizer.zero_grad()
    loss = pipeline.step(inputs, targets)
    optimizer.step()  # of this rank's weights alone: nobody else has them
    return loss.item()


# [end step]
def count_a_step(text: Text, args: argparse.Namespace) -> str:
    """The tables of what the ranks hold, counted in a step on a copy of the model."""
    pipeline, span = build(args, text.device)
    optimizer = make_optimizer(pipeline.stage.parameters(), args.learning_rate)
    inputs, targets = text.batch(0)
    measured = count_step(
        pipeline.stage,
        optimizer,
        lambda: train_step(pipeline, optimizer, inputs, targets),
        "send",
    )
    live = most_live(pipeline.order)
    live_pieces = sum(map(len, pipeline.inputs[:live]))
    sizes = sizes_of(args)
    boundary = boundary_bytes(sizes, len(inputs))
    measured["micro-batches held"] = pipeline.most_live
    formula = {
        **held_by_formula(sizes, span),
        "activations": stage_activations(sizes, span, live_pieces, live, len(inputs)),
        "micro-batches held": live,
        "sent in a step": boundary * ((not pipeline.first) + (not pipeline.last)),
    }
    layers = name_layers(span, args.blocks + 2)
    return tables_of_all_ranks(measured, formula, layers)


def train(args: argparse.Namespace, device: torch.device) -> None:
    text = Text(args, device)
    pipeline, _ = build(args, device)
    optimizer = make_optimizer(pipeline.stage.parameters(), args.learning_rate)
    log(
        f"{args.schedule} with {args.micro_batches} micro-batches on "
        f"{describe_world(device)}"
    )
    log(count_a_step(text, args))
    for step, inputs, targets in text.steps():
        text.note(step, train_step(pipeline, optimizer, inputs, targets))
    events = gather_events(pipeline.events)
    log(
        f"Idle over useful slots {bubble(orders_of(events))}, "
        f"(p-1)/m = {pipeline.ranks - 1}/{args.micro_batches}"
    )
    if args.timeline and is_rank_0():
        write_timeline(args.timeline, args.schedule, events)
    text.report(text.test_loss(pipeline.score))


@one_line_errors
def main() -> None:
    args = parse_text_training(__doc__, add_options)
    if args.micro_batches > args.batch_size:
        raise BadInput(
            f"--micro-batches {args.micro_batches} is more than --batch-size "
            f"{args.batch_size}, and a micro-batch needs a piece of text: choose fewer"
        )
    if args.timeline and speaks_first():
        check_output_file(args.timeline, "--timeline")
    device = join("13_pipeline_by_hand.py")
    train(args, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
