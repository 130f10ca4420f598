"""Pipelines of byte GPTs in ranks: each function runs in every rank, as a check does.

test_13_pipeline.py has them run by the grader's engine.
"""

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Activations, Traffic
from common.gpt_training import _sum_over_ranks
from common.parallel.pipeline import SCHEDULES, Action, bubble, most_live

cost = import_module("instruments.13_cost")
timeline = import_module("instruments.13_timeline")
pipeline_by_hand = import_module("13_pipeline_by_hand")
pipeline = import_module("13_pipeline")

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
}
CPU = torch.device("cpu")


def arguments(schedule, micro_batches, blocks=4, dtype=torch.float64):
    return argparse.Namespace(
        width=12,
        heads=3,
        blocks=blocks,
        context=5,
        schedule=schedule,
        micro_batches=micro_batches,
        dtype=dtype,
    )


def make_gpt(args, device=CPU):
    """The same on every rank; no bias and no norm is left as it was made."""
    torch.manual_seed(7)
    model = ByteGPT(Sizes(args.width, args.heads, args.blocks, args.context))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.to(device, args.dtype)


pipeline_by_hand.make_gpt = pipeline.make_gpt = make_gpt


def batch(size, seed, context=5):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(256, (size, context + 1), generator=generator)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def layers_of(stage, span):
    """(number of the layer, layer) of a stage."""
    return zip(span, stage, strict=True)


def compare_weights(stage, span, model, what, gradients=False):
    """The weights of a stage, or their gradients, with those of the whole model."""
    for number, layer in layers_of(stage, span):
        pairs = zip(
            layer.named_parameters(), model.layers()[number].parameters(), strict=True
        )
        for (name, mine), whole in pairs:
            if gradients:
                mine, whole = mine.grad, whole.grad
            expect.close(mine, whole, f"layer {number}, {name} {what}")


def at_boundary(model, inputs, targets, number):
    """The gradient of the mean loss with respect to what enters layer ``number``."""
    x = inputs
    for position, layer in enumerate(model.layers()):
        if position == number:
            entering = x.detach().requires_grad_()
            x = entering
        x = layer(x)
    next_byte_loss(x, targets).backward()
    return entering.grad


def together(value):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


@pytest.mark.ranks(2, 3, limit=60)
def test_by_hand_equals_one_process(rank, world_size, seed):
    """Scores, loss, the gradient that enters each stage, and those of all weights."""
    p = world_size
    for schedule in SCHEDULES:
        # the last two cannot be divided: the last micro-batches are smaller
        for size, m in ((2 * p, p), (2 * p, 2 * p), (2 * p + 1, p), (2 * p + 1, p + 1)):
            what = f"with {schedule}, {size} pieces in {m} micro-batches"
            args = arguments(schedule, m)
            inputs, targets = batch(size, seed)
            model = make_gpt(args)
            scores = model(inputs)
            loss = next_byte_loss(scores, targets)
            loss.backward()
            pipe, span = pipeline_by_hand.build(args, CPU)
            expect.close(pipe.score(inputs), scores, f"the scores {what}")
            sent = []
            send = pipe.gradients.send
            pipe.gradients.send = lambda x, s=send, to=sent: (to.append(x), s(x))
            own = loss if pipe.last else torch.zeros_like(loss)
            expect.close(pipe.step(inputs, targets), own, f"the loss {what}")
            compare_weights(pipe.stage, span, model, f"gradient {what}", True)
            if rank > 0:
                entering = at_boundary(make_gpt(args), inputs, targets, span.start)
                expect.close(torch.cat(sent), entering, f"what goes back {what}")


@pytest.mark.ranks(2, 3, limit=60)
def test_three_steps_by_hand_and_by_torch_equal_one_process(rank, world_size, seed):
    """SGD and AdamW; GPipe and 1F1B by hand, and torch's three schedules."""
    m = blocks = 2 * world_size
    for optimizer_name, make_optimizer in OPTIMIZERS.items():
        model = make_gpt(arguments("gpipe", m, blocks))
        optimizer = make_optimizer(model.parameters())
        losses = []
        for step in range(3):
            inputs, targets = batch(2 * m, seed + step)
            optimizer.zero_grad()
            loss = next_byte_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        for script, names in (
            (pipeline_by_hand, SCHEDULES),
            (pipeline, pipeline.STAGES_PER_RANK),
        ):
            for schedule in names:
                what = f"{script.__name__} with {schedule} and {optimizer_name}"
                args = arguments(schedule, m, blocks)
                if script is pipeline_by_hand:
                    pipe, span = script.build(args, CPU)
                    parts = [(pipe.stage, span)]
                else:
                    pipe = script.Pipeline(args, CPU)
                    parts = list(zip(pipe.stage, pipe.spans, strict=True))
                optimizer = make_optimizer(
                    [p for s, _ in parts for p in s.parameters()]
                )
                mine = [
                    script.train_step(pipe, optimizer, *batch(2 * m, seed + step))
                    for step in range(3)
                ]
                sums = torch.tensor(_sum_over_ranks(mine))
                expect.close(sums, torch.tensor(losses), f"losses, {what}")
                for stage, span in parts:
                    compare_weights(stage, span, model, f"after 3 steps, {what}")
                inputs, _ = batch(m, seed)
                expect.close(pipe.score(inputs), model(inputs), f"scores, {what}")


@pytest.mark.ranks(2, 3, limit=60)
def test_what_is_counted_in_a_step(rank, world_size, seed):
    """Bubble (p-1)/m from the recorded order; live micro-batches; bytes; traffic."""
    p = world_size
    for schedule, m in (("gpipe", p), ("gpipe", 3 * p), ("1f1b", p), ("1f1b", 3 * p)):
        size = 2 * m + 1  # the first micro-batch is larger
        args = arguments(schedule, m, dtype=torch.float32)
        sizes = Sizes(args.width, args.heads, args.blocks, args.context)
        pipe, span = pipeline_by_hand.build(args, CPU)
        recorder = timeline.Recorder(pipe)
        inputs, targets = batch(size, seed)
        with Activations(pipe.stage) as activations, Traffic() as traffic:
            pipe.step(inputs, targets)
        ran = [Action(e["what"], e["micro_batch"]) for e in recorder.events]
        orders = together(ran)
        what = f"with {schedule}, p = {p}, m = {m}"
        found = bubble(orders)
        expect.equal((found * m).as_integer_ratio(), (p - 1, 1), f"m x bubble {what}")
        live = m if schedule == "gpipe" else min(m, p - rank)
        expect.equal(most_live(orders[rank]), live, f"micro-batches held {what}")
        formula = cost.stage_activations(sizes, span, 2 * live + 1, live, size)
        expect.equal(activations.peak_bytes, formula, f"bytes of activations {what}")
        expect.equal(activations.bytes, 0, f"bytes after the step {what}")
        ends = (rank == 0) + (rank == p - 1)
        one_way = cost.boundary_bytes(sizes, size)
        expect.equal(one_way, 4 * size * 5 * 12, "bytes of B T W numbers")
        sent = traffic.wire_bytes("send")
        expect.equal(sent, (2 - ends) * one_way, f"bytes sent {what}")
        messages = sum(call.op == "send" for call in traffic.calls)
        expect.equal(messages, (2 - ends) * m, f"messages {what}")
        for event in recorder.events:
            in_order = event["begin"] <= event["end"]
            expect.that(in_order, "an action ends before it begins")


@pytest.mark.ranks(2, 3, limit=60)
def test_what_torchs_schedules_hold(rank, world_size, seed):
    """Activations by the formula, also with two stages on a rank; v times the bytes."""
    m = blocks = 2 * world_size
    for schedule, per_rank in pipeline.STAGES_PER_RANK.items():
        args = arguments(schedule, m, blocks, torch.float32)
        sizes = Sizes(args.width, args.heads, args.blocks, args.context)
        pipe = pipeline.Pipeline(args, CPU)
        inputs, targets = batch(3 * m, seed)
        pipe.step(inputs, targets)  # the first one also sends shapes
        with Activations(pipe.stage) as activations, Traffic() as traffic:
            pipe.step(inputs, targets)
        formula = cost.peak_activations(
            sizes, pipe.spans, cost.order_of(pipe, args), 3 * m, m
        )
        expect.equal(activations.peak_bytes, formula, f"activations with {schedule}")
        ends = (rank == 0) + (rank == world_size - 1)
        expect.equal(
            traffic.wire_bytes("send"),
            (2 * per_rank - ends) * cost.boundary_bytes(sizes, 3 * m),
            f"bytes sent with {schedule}",
        )


@pytest.mark.ranks(3, limit=60)
def test_a_late_rank_changes_nothing_but_the_time(rank, world_size, seed):
    """Whoever is late, the others wait for it and compute the same."""
    for schedule in SCHEDULES:
        args = arguments(schedule, 4)
        inputs, targets = batch(9, seed)
        model = make_gpt(args)
        next_byte_loss(model(inputs), targets).backward()
        for late in range(world_size):
            pipe, span = pipeline_by_hand.build(args, CPU)
            if rank == late:
                pipe.stage.register_forward_pre_hook(lambda *_: time.sleep(0.1))
            pipe.step(inputs, targets)
            what = f"gradient with {schedule}, rank {late} late"
            compare_weights(pipe.stage, span, model, what, True)


@pytest.mark.ranks(2, limit=60)
def test_interleaved_bubble_is_v_times_smaller(rank, world_size, seed):
    """(p-1)/(v m) by the order of torch's interleaved schedule, v = 2."""
    for p, m in ((2, 4), (2, 8)):
        args = arguments("interleaved", m)
        pipe = pipeline.Pipeline(args, CPU)
        order = pipe.schedule.pipeline_order
        actions = [[a for a in order[r] if a is not None] for r in range(p)]
        length = interleaved_length(actions, 2 * p)
        useful = 2 * 2 * m * p  # forwards and backwards of two stages on each rank
        idle = p * length - useful
        expect.equal(idle * 2 * m, (p - 1) * useful, "idle x v m")


def interleaved_length(actions, stages):
    """Slots until all is done, if every action of a stage takes one."""
    done, slot, next_of = set(), 0, [0] * len(actions)
    while any(n < len(mine) for n, mine in zip(next_of, actions, strict=True)):
        ready = []
        for rank, mine in enumerate(actions):
            if next_of[rank] < len(mine):
                action = mine[next_of[rank]]
                stage, k = action.stage_index, action.microbatch_index
                forward = action.computation_type.name == "FORWARD"
                if forward:
                    needed = [("F", stage - 1, k)] if stage else []
                else:
                    needed = [("F", stage, k)]
                    needed += [("B", stage + 1, k)] if stage < stages - 1 else []
                if done.issuperset(needed):
                    ready.append((rank, ("F" if forward else "B", stage, k)))
        assert ready, "the order waits forever"
        for rank, finished in ready:
            done.add(finished)
            next_of[rank] += 1
        slot += 1
    return slot
