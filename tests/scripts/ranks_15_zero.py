"""src/15_zero_by_hand.py in ranks: the same numbers as one process, DDP and FSDP2.

Each function runs in every rank, as a check of an exercise does;
test_15_zero_by_hand.py has them run.
"""

import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.measure import PeakBytes, Traffic, storage_bytes
from common.gpt_training import local_batch

cost = import_module("instruments.15_cost")
zero_by_hand = import_module("15_zero_by_hand")

STAGES = range(4)

SIZES = Sizes(width=9, heads=3, blocks=2, context=5)  # 1,089 numbers in a block
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
}


def gpt(seed):
    torch.manual_seed(seed)
    model = ByteGPT(SIZES).double()
    for parameter in model.parameters():  # no bias is 0
        nn.init.normal_(parameter, std=0.2)
    return model


def batches(world_size, seed, steps=3):
    """(inputs, targets) of the global batch of each step, [2 W, T] each."""
    generator = torch.Generator().manual_seed(seed)
    shape = steps, 2, 2 * world_size, SIZES.context
    return torch.randint(BYTES, shape, generator=generator)


def plainly(model, make, data):
    """Losses of an ordinary training, and the model after it."""
    optimizer = make([p for p in model.parameters() if p.requires_grad])
    for inputs, targets in data:
        optimizer.zero_grad()
        next_byte_loss(model(inputs), targets).backward()
        optimizer.step()
    return model


def by_hand(model, make, data, stage):
    """The parameters after a training in this stage, whole on every rank."""
    names = [name for name, _ in model.named_parameters()]
    units, optimizer = shards(model, stage, make)
    for inputs, targets in data:
        next_byte_loss(model(local_batch(inputs)), local_batch(targets)).backward()
        zero_by_hand.optimizer_step(units, optimizer)
    return dict(zip(names, whole_parameters(model, units), strict=True))


def shards(model, stage, make):
    """A unit for each layer of the model, and the optimizer of their masters."""
    units = [zero_by_hand.Unit(layer, stage) for layer in model.layers()]
    return units, make([unit.master for unit in units])


def whole_parameters(model, units):
    for unit in units:
        if storage_bytes([unit.whole]) == 0:
            unit.gather()
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.ranks(2, 3, limit=60)
def test_trains_like_one_process(rank, world_size, seed):
    """Three steps of SGD and of AdamW give the weights of one process, in each stage,
    and those of DDP and of FSDP2."""
    data = batches(world_size, seed)
    mine = [(local_batch(inputs), local_batch(targets)) for inputs, targets in data]
    for name, make in OPTIMIZERS.items():
        expected = plainly(gpt(seed), make, data).state_dict()
        others = {f"stage {s}": by_hand(gpt(seed), make, data, s) for s in STAGES}
        others["DDP"] = plainly(DDP(gpt(seed)), make, mine).module.state_dict()
        sharded = gpt(seed)
        for layer in [*sharded.layers(), sharded]:
            fully_shard(layer)
        whole = plainly(sharded, make, mine).state_dict()
        others["FSDP2"] = {key: value.full_tensor() for key, value in whole.items()}
        begin = gpt(seed).state_dict()
        for who, found in others.items():
            for key, value in expected.items():
                what = f"{key} after 3 steps of {name}, {who}"
                expect.close(found[key].detach(), value, what)
                expect.that(not torch.equal(value, begin[key]), f"{key} never moved")


@pytest.mark.ranks(2, limit=30)
def test_second_backward_in_a_step_is_refused(rank, world_size, seed):
    """The gradients of the first are averaged already: adding to them is wrong."""
    inputs, targets = (local_batch(part) for part in batches(world_size, seed)[0])
    for stage in STAGES:
        model = gpt(seed)
        units, optimizer = shards(model, stage, OPTIMIZERS["SGD"])
        next_byte_loss(model(inputs), targets).backward()
        loss = next_byte_loss(model(inputs), targets)
        expect.raises(RuntimeError, loss.backward, words=("one backward pass",))
        zero_by_hand.optimizer_step(units, optimizer)
        next_byte_loss(model(inputs), targets).backward()  # that of the next step
    for stage in STAGES:
        layer = Either().double()
        zero_by_hand.Unit(layer, stage)
        layer(0).backward()
        expect.raises(RuntimeError, layer(1).backward, words=("one backward pass",))


class Either(nn.Module):
    """One of two numbers: each backward pass gives a gradient to one alone."""

    def __init__(self):
        super().__init__()
        self.numbers = nn.ParameterList([torch.ones(1), torch.ones(1)])

    def forward(self, number):
        return self.numbers[number].sum()


class Partly(nn.Module):
    """Two layers of odd shapes; a frozen and an unused parameter among them."""

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.first, self.last = nn.Linear(5, 7), nn.Linear(7, 3)
        self.first.frozen = nn.Parameter(draw(7), requires_grad=False)
        self.last.unused = nn.Parameter(draw(2))
        for layer in self.layers():
            layer.weight = nn.Parameter(draw(*layer.weight.shape))
            layer.bias = nn.Parameter(draw(*layer.bias.shape))

    def layers(self):
        return [self.first, self.last]

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)) * self.first.frozen)


@pytest.mark.ranks(2, 3, limit=30)
def test_gradients_with_frozen_and_unused_parameters(rank, world_size, seed):
    """Outputs, input gradients and weight gradients are those of one process, when a
    parameter is frozen and another takes no part; its gradient is zero."""
    generator = torch.Generator().manual_seed(seed)
    whole = torch.randn(3 * world_size, 5, generator=generator, dtype=torch.float64)
    for stage in STAGES:
        one, mine = Partly(seed), Partly(seed)
        units = [zero_by_hand.Unit(layer, stage) for layer in mine.layers()]
        for name, make in OPTIMIZERS.items():
            everything = whole.clone().requires_grad_()
            part = local_batch(whole).requires_grad_()
            optimizer = Watched(make([unit.master for unit in units]), units)
            trained = [p for p in one.parameters() if p.requires_grad]
            theirs = make(trained)
            for step in range(3):
                what = f"stage {stage}, {name}, step {step}"
                one.zero_grad()
                everything.grad = part.grad = None
                outputs = one(everything)
                outputs.square().mean().backward()
                one.last.unused.grad = torch.zeros_like(one.last.unused)
                found = mine(part)
                expect.close(found, local_batch(outputs), f"the outputs, {what}")
                found.square().mean().backward()
                # this rank's loss is a mean over 1 / W of the rows
                expected = world_size * local_batch(everything.grad)
                expect.close(part.grad, expected, f"the gradient of the input, {what}")
                zero_by_hand.optimizer_step(units, optimizer)
                for a, b in zip(optimizer.gradients, trained, strict=True):
                    expect.close(a, b.grad, f"a gradient of {tuple(b.shape)}, {what}")
                theirs.step()
            for a, b in zip(
                whole_parameters(mine, units), one.parameters(), strict=True
            ):
                expect.close(a, b.detach(), f"a parameter, stage {stage}, {name}")
            frozen = Partly(seed).first.frozen
            expect.equal(mine.first.frozen, frozen, "the frozen parameter")
            if stage == 3:
                for unit in units:
                    zero_by_hand.free(unit.whole)


class Watched:
    """An optimizer that keeps the gradients which its last step was given."""

    def __init__(self, optimizer, units):
        self.optimizer, self.units = optimizer, units

    def step(self):
        self.gradients = [gradient.clone() for gradient in gradients_of(self.units)]
        self.optimizer.step()


def gradients_of(units):
    """The mean gradients, in the order of the parameters, from all ranks' shards."""
    for unit in units:
        flat = unit.gradient_shard
        if unit.stage:
            flat = torch.zeros(unit.whole.shape, dtype=torch.float64)
            dist.all_gather_single(flat, unit.gradient_shard.contiguous())
        numels = [parameter.numel() for parameter in unit.parameters]
        rest = len(flat) - sum(numels)
        pieces = flat.split([*numels, rest])
        for piece, parameter in zip(pieces, unit.parameters, strict=False):
            yield piece.view_as(parameter)


@pytest.mark.ranks(2, 3, limit=60)
def test_what_a_rank_holds_and_sends(rank, world_size, seed):
    """Held and sent are what the paper says, 16 P, 4 P + 12 P / N, 2 P + 14 P / N and
    16 P / N bytes with 16-bit parameters, for P rounded up to whole shards."""
    inputs, targets = batches(world_size, seed)[0]
    for stage in STAGES:
        for dtype, low, adam in ((torch.float32, 4, 8), (torch.bfloat16, 2, 12)):
            model = gpt(seed).to(dtype)
            numels = [sum(p.numel() for p in x.parameters()) for x in model.layers()]
            padded = sum(-(-numel // world_size) * world_size for numel in numels)
            units, optimizer = shards(model, stage, torch.optim.AdamW)
            peak = PeakBytes(lambda u=units: storage_bytes(cost.passing(u)))
            with Traffic() as traffic, peak:
                scores = model(local_batch(inputs)).float()
                next_byte_loss(scores, local_batch(targets)).backward()
                zero_by_hand.optimizer_step(units, optimizer)
            divisors = [world_size if stage >= s else 1 for s in (3, 2, 1)]
            by_paper = [
                size * padded // divisor
                for size, divisor in zip((low, low, adam), divisors, strict=True)
            ]
            if dtype == torch.bfloat16:
                total = {
                    0: 16 * padded,
                    1: 4 * padded + 12 * padded // world_size,
                    2: 2 * padded + 14 * padded // world_size,
                    3: 16 * padded // world_size,
                }[stage]
                expect.equal(sum(by_paper), total, f"the sum, stage {stage}")
            found = list(cost.held(units, optimizer).values())[:3]
            expect.equal(found, by_paper, f"held by a rank, stage {stage}, {dtype}")
            states = cost.states_of_zero(stage, world_size, padded, low == 2)
            expect.equal(list(states.values())[:3], by_paper, "the script's formula")
            times = 3 if stage == 3 else 2
            sent = times * low * padded * (world_size - 1) // world_size
            expect.equal(traffic.wire_bytes(), sent, f"sent, stage {stage}, {dtype}")
            script = cost.bytes_per_step(stage, world_size, padded, low)
            expect.equal(script, sent, "the script's formula of bytes")
            ops = {
                0: {"all_reduce"},
                1: {"reduce_scatter", "all_gather"},
                2: {"reduce_scatter", "all_gather"},
                3: {"reduce_scatter", "all_gather"},
            }[stage]
            expect.equal({c.op for c in traffic.calls}, ops, f"calls of stage {stage}")
            # one layer at a time is whole; backward has its gradients, too
            largest = max(-(-numel // world_size) * world_size for numel in numels)
            most = max(0, stage - 1) * low * largest
            expect.equal(peak.peak_bytes, most, f"whole for a moment, stage {stage}")
            passing = storage_bytes(cost.passing(units))
            expect.equal(passing, 0, f"whole after the step, stage {stage}")


@pytest.mark.ranks(3, limit=30)
def test_ranks_hold_the_same_parameters(rank, world_size, seed):
    """After training in 16 bits all ranks have the same parameters, which are those of
    the masters, rounded."""
    data = batches(world_size, seed)
    for stage in STAGES:
        model = gpt(seed).bfloat16()
        units, optimizer = shards(model, stage, OPTIMIZERS["AdamW"])
        for inputs, targets in data:
            scores = model(local_batch(inputs)).float()
            next_byte_loss(scores, local_batch(targets)).backward()
            zero_by_hand.optimizer_step(units, optimizer)
        for unit in units:
            expect.equal(unit.master.dtype, torch.float32, "the bits of a master")
            rounded = unit.master.detach().to(torch.bfloat16)
            expect.equal(unit.shard, rounded, "a shard and its master, rounded")
        for parameter in whole_parameters(model, units):
            expect.same_on_all_ranks(parameter, f"a parameter in stage {stage}")
