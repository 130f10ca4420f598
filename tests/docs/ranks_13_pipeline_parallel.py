"""What docs/lessons/13_pipeline_parallel says, tried out in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence on the page. test_13_pipeline_parallel_claims.py has them run, and knows which
of them must hang or fail.
"""

import argparse
import copy
import sys
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import next_byte_loss

pipeline_by_hand = import_module("13_pipeline_by_hand")

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")


def arguments(schedule, micro_batches):
    return argparse.Namespace(
        width=12,
        heads=3,
        blocks=4,
        context=5,
        schedule=schedule,
        micro_batches=micro_batches,
    )


def batch(size, seed):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(256, (size, 6), generator=generator)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def run_with_blocking_send(schedule, seed):
    def send(channel, tensor):
        dist.send(tensor, channel.to, group=channel.group)

    pipeline_by_hand.Channel.send = send
    pipeline, _ = pipeline_by_hand.build(arguments(schedule, 4), CPU)
    pipeline.step(*batch(8, seed))


@pytest.mark.ranks(2, limit=60)
def test_gpipe_runs_with_a_send_that_waits(seed):
    """GPipe runs with a send that waits for its receiver."""
    run_with_blocking_send("gpipe", seed)


@pytest.mark.ranks(2, limit=60)
def test_hangs_1f1b_with_a_send_that_waits(seed):
    """1F1B hangs with both neighbors in send."""
    run_with_blocking_send("1f1b", seed)


def torch_schedule(kind, micro_batches, rank, world_size):
    torch.manual_seed(rank)
    stage = PipelineStage(nn.Linear(4, 4), rank, world_size, CPU)
    return kind(stage, micro_batches, loss_fn=nn.functional.mse_loss)


def torch_step(schedule, size, rank, world_size):
    """Losses that a step left on this rank."""
    losses = []
    first, last = rank == 0, rank == world_size - 1
    schedule.step(
        *([torch.ones(size, 4)] if first else []),
        target=torch.zeros(size, 4) if last else None,
        losses=losses if last else None,
    )
    return losses


@pytest.mark.ranks(2, limit=60)
def test_fails_when_m_does_not_divide_the_batch(rank, world_size):
    """Failed to run stage backward with two shapes on one rank, while others wait."""
    schedule = torch_schedule(ScheduleGPipe, 3, rank, world_size)
    if rank == 0:
        words = ("Failed to run stage backward",)
        expect.raises(
            RuntimeError, torch_step, schedule, 4, rank, world_size, words=words
        )
    else:
        torch_step(schedule, 4, rank, world_size)


@pytest.mark.ranks(3, limit=60)
def test_torchs_1f1b_wants_as_many_micro_batches_as_stages(rank, world_size):
    """Number of microbatches (2) must be greater than or equal to the number of
    stages (3)."""
    words = (
        "Number of microbatches (2) must be greater than",
        "or equal to the number of stages (3)",
    )
    expect.raises(
        ValueError, torch_schedule, Schedule1F1B, 2, rank, world_size, words=words
    )
    torch_step(torch_schedule(ScheduleGPipe, 2, rank, world_size), 4, rank, world_size)


@pytest.mark.ranks(3, limit=60)
def test_losses_are_on_the_last_rank(rank, world_size):
    """Losses and outputs are on the last rank alone; step cuts into micro-batches."""
    schedule = torch_schedule(Schedule1F1B, 4, rank, world_size)
    losses = torch_step(schedule, 8, rank, world_size)
    expect.equal(len(losses), 4 if rank == world_size - 1 else 0, "losses")
    outputs = schedule.eval(
        *([torch.ones(8, 4)] if rank == 0 else []),
        target=torch.zeros(8, 4) if rank == world_size - 1 else None,
    )
    shape = None if outputs is None else list(outputs.shape)
    expect.equal(shape, [8, 4] if rank == world_size - 1 else None, "outputs")


@pytest.mark.ranks(2, 3, limit=60)
def test_example_has_the_gradients_of_one_process(rank, world_size, seed):
    """PyTorch runs a step in about ten lines; the losses are on the last rank only."""
    layers = []
    for number in range(world_size):
        torch.manual_seed(seed + number)
        layers.append(nn.Linear(4, 4))
    inputs, targets = torch.randn(8, 4), torch.randn(8, 4)  # the same on all ranks
    whole = copy.deepcopy(nn.Sequential(*layers))
    loss = nn.functional.mse_loss(whole(inputs), targets)
    loss.backward()
    example = run_path(str(ROOT / "docs" / "examples" / "13_two_stages.py"))
    losses = example["run_step"](layers[rank], inputs, targets)
    expect.close(
        layers[rank].weight.grad, whole[rank].weight.grad, "gradient", rtol=1e-5
    )
    if rank == world_size - 1:
        expect.equal(len(losses), 4, "losses on the last rank")
        expect.close(torch.stack(losses).mean(), loss, "the loss", rtol=1e-5)
    else:
        expect.equal(losses, [], "losses on the other ranks")


@pytest.mark.ranks(3, limit=60)
def test_shapes_are_sent_in_the_first_step_only(rank, world_size, ledger):
    """The shapes at the boundaries are found out in the first step."""
    schedule = torch_schedule(ScheduleGPipe, 2, rank, world_size)
    counts = []
    for _ in range(3):
        ledger.clear()
        torch_step(schedule, 4, rank, world_size)
        counts.append(len(ledger.rows))
    boundaries = (rank > 0) + (rank < world_size - 1)
    expect.that(counts[0] > counts[1], f"the first step has no more calls: {counts}")
    expect.equal(counts[1:], [4 * boundaries] * 2, "calls of the later steps")


@pytest.mark.ranks(2, limit=60)
def test_gradients_are_divided_by_the_number_of_micro_batches(rank, world_size):
    """torch divides the gradients by m; without it they are m times too large."""
    found = {}
    for scaled in (True, False):
        torch.manual_seed(rank)
        module = nn.Linear(4, 4)
        stage = PipelineStage(module, rank, world_size, CPU)
        loss = nn.functional.mse_loss
        schedule = ScheduleGPipe(stage, 4, loss_fn=loss, scale_grads=scaled)
        torch_step(schedule, 8, rank, world_size)
        found[scaled] = module.weight.grad.double()
    expect.close(found[False], 4 * found[True], "the gradient", rtol=1e-5, atol=1e-7)


@pytest.mark.ranks(3, limit=60)
def test_no_gradient_for_what_does_not_require_it(rank, world_size, seed):
    """x.grad is None if the received input does not require a gradient."""
    x = torch.full((2, 4), float(rank))
    y = nn.Linear(4, 4)(x)
    y.backward(torch.ones_like(y))
    expect.that(x.grad is None, "there is a gradient")
    x.requires_grad_()
    nn.Linear(4, 4)(x).backward(torch.ones_like(y))
    expect.that(x.grad is not None, "there is no gradient")


@pytest.mark.ranks(3, limit=60)
def test_clipping_needs_the_norm_of_all_stages(rank, world_size, seed):
    """Each rank clips by the norm of its own stage: another training. The root of the
    squared norms added up over the ranks is the norm of one device."""
    args = arguments("1f1b", 4)
    inputs, targets = batch(8, seed)
    model = pipeline_by_hand.make_gpt(
        argparse.Namespace(width=12, heads=3, blocks=4, context=5), CPU
    )
    next_byte_loss(model(inputs), targets).backward()
    whole = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    pipeline, _ = pipeline_by_hand.build(args, CPU)
    pipeline.step(inputs, targets)
    own = nn.utils.get_total_norm([p.grad for p in pipeline.stage.parameters()])
    expect.that(own < 0.99 * whole, "the norm of a stage is that of the model")
    square = own.square()
    dist.all_reduce(square)
    expect.close(square.sqrt(), whole, "the norm", rtol=1e-5, atol=1e-6)
