"""Local steps and outer steps: what ranks agree on, what stays theirs, what is sent.

Each function runs in every rank, as a check of an exercise does;
test_23_loose.py has them run.
"""

import copy
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import parameters_to_vector

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import pytest

from common import local_steps as ls
from common.cost.measure import Traffic
from common.distributed import BadInput
from common.local_steps import OuterRule

FLOAT64 = 8  # bytes
PLAIN_MEAN = OuterRule(learning_rate=1.0, momentum=0.0)
ROWS = [5, 3, 7, 2]  # of each rank's batch


def network(seed):
    """Weights that aren't square, and a number of them that 3 and 4 don't divide."""
    torch.manual_seed(seed)
    layers = nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 2)
    return nn.Sequential(*layers).double()


def batch(seed, step, rank):
    generator = torch.Generator().manual_seed(1000 * seed + 10 * step + rank)
    rows = ROWS[rank]
    inputs = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    return inputs, torch.randn(rows, 2, generator=generator, dtype=torch.float64)


def inner_step(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    (model(inputs) - targets).square().mean().backward()
    optimizer.step()


def flat(model):
    return parameters_to_vector(model.parameters()).detach().clone()


def adamw(model):
    return torch.optim.AdamW(model.parameters(), 0.01)


def train(seed, steps, every, rule, count=1, late=None):
    """This rank's model after ``steps``, its inner optimizer, and its fragments."""
    rank, model = dist.get_rank(), network(seed)
    optimizer = adamw(model)
    fragments = ls.make_fragments(model.parameters(), count)
    for step in range(steps):
        inner_step(model, optimizer, *batch(seed, step, rank))
        if rank == late:
            time.sleep(0.05)
        ls.agree(fragments, step + 1, every, rule)
    return model, optimizer, fragments


class OneProcess:
    """All ranks' models in one process; the outer step is torch's own SGD."""

    def __init__(self, seed, world_size, rule, count):
        self.models = [network(seed) for _ in range(world_size)]
        self.optimizers = [adamw(model) for model in self.models]
        self.shared = list(network(seed).parameters())
        bounds = [p for f in ls.make_fragments(self.shared, count) for p in [f]]
        self.parts = [fragment.parameters for fragment in bounds]
        self.outer = [
            torch.optim.SGD(
                part, rule.learning_rate, rule.momentum, nesterov=rule.momentum > 0
            )
            for part in self.parts
        ]

    def agree(self, number):
        self.begin(number)
        self.finish(number, keep=0.0)

    def copies(self, number):
        """Each parameter of a fragment: the shared one, and that of each rank."""
        index = [id(p) for p in self.shared]
        for parameter in self.parts[number]:
            place = index.index(id(parameter))
            yield parameter, [list(model.parameters())[place] for model in self.models]

    @torch.no_grad()
    def begin(self, number):
        for parameter, own in self.copies(number):
            parameter.grad = torch.stack([parameter - each for each in own]).mean(0)

    @torch.no_grad()
    def finish(self, number, keep):
        self.outer[number].step()
        for parameter, own in self.copies(number):
            for each in own:
                each.copy_(each.mul(keep) + parameter * (1 - keep))


def equal_to_one_process(model, fragments, alone, rank, what):
    """This rank's parameters, and what all ranks agreed on."""
    expect.close(flat(model), flat(alone.models[rank]), f"parameters, {what}")
    shared = torch.cat([fragment.shared for fragment in fragments])
    expected = parameters_to_vector(alone.shared).detach()
    expect.close(shared, expected, f"shared, {what}")
    expect.same_on_all_ranks(shared, f"shared, {what}")


@pytest.mark.ranks(3, 4)
def test_local_steps_equal_all_copies_in_one_process(rank, world_size, seed):
    """AdamW inside, SGD outside; nine steps with K = 4; one fragment, then three."""
    for rule in (OuterRule(), PLAIN_MEAN):
        for count, turns in ((1, {4: [0]}), (3, {1: [0], 2: [1], 4: [2]})):
            alone = OneProcess(seed, world_size, rule, count)
            for step in range(9):
                pairs = zip(alone.models, alone.optimizers, strict=True)
                for number, (model, optimizer) in enumerate(pairs):
                    inner_step(model, optimizer, *batch(seed, step, number))
                for fragment in turns.get(step % 4 + 1, []):
                    alone.agree(fragment)
            model, _, fragments = train(seed, 9, 4, rule, count)
            what = f"{rule}, {count} fragments"
            equal_to_one_process(model, fragments, alone, rank, what)


@pytest.mark.ranks(3, 4)
def test_delayed_outer_steps_equal_all_copies_in_one_process(rank, world_size, seed):
    """11 steps with K = 4: each fragment's sum begins in its turn, and counts later."""
    for count, turns in ((1, {4: [0]}), (3, {1: [0], 2: [1], 4: [2]})):
        for delay, keep in ((1, 0.0), (1, 0.5), (3, 0.25)):
            alone = OneProcess(seed, world_size, OuterRule(), count)
            for step in range(11):
                pairs = zip(alone.models, alone.optimizers, strict=True)
                for number, (model, optimizer) in enumerate(pairs):
                    inner_step(model, optimizer, *batch(seed, step, number))
                began = step - delay
                if began >= 0:
                    for fragment in turns.get(began % 4 + 1, []):
                        alone.finish(fragment, keep)
                for fragment in turns.get(step % 4 + 1, []):
                    alone.begin(fragment)
            rule = OuterRule(delay=delay, keep=keep)
            model, _, fragments = train(seed, 11, 4, rule, count)
            what = f"{rule}, {count} fragments"
            equal_to_one_process(model, fragments, alone, rank, what)
            for fragment in fragments:
                fragment.wait()


@pytest.mark.ranks(3)
def test_inner_steps_go_on_while_a_fragment_is_sent(rank, world_size, seed):
    """Rank 0 takes two of them before any other rank has begun to send."""
    model, token = network(seed), torch.zeros(1)
    optimizer = adamw(model)
    (fragment,) = ls.make_fragments(model.parameters())
    inner_step(model, optimizer, *batch(seed, 0, rank))
    difference = ls.mean(fragment.shared - parameters_to_vector(model.parameters()))
    if rank > 0:
        dist.recv(token, src=0)
    ls.begin(fragment, arrives=3)
    for step in (1, 2):
        inner_step(model, optimizer, *batch(seed, step, rank))
    if rank == 0:
        for other in range(1, world_size):
            dist.send(token, dst=other)
    own, before = flat(model), fragment.shared.clone()
    ls.finish(fragment, OuterRule(learning_rate=1.0, momentum=0.0, delay=2, keep=0.25))
    expect.close(fragment.shared, before - difference, "the mean before these steps")
    mixed = 0.25 * own + 0.75 * fragment.shared
    expect.close(flat(model), mixed, "a quarter of this rank's own parameters")


@pytest.mark.ranks(3, 4)
def test_one_local_step_of_sgd_is_ddp(rank, world_size, seed):
    """K = 1, inner SGD, outer SGD with learning rate 1 and no momentum."""
    model, reference = network(seed), network(seed)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    of_ddp = torch.optim.SGD(reference.parameters(), 0.1)
    ddp_model = DDP(reference)
    fragments = ls.make_fragments(model.parameters())
    for step in range(5):
        inner_step(model, optimizer, *batch(seed, step, rank))
        ls.outer_step(fragments[0], PLAIN_MEAN)
        inner_step(ddp_model, of_ddp, *batch(seed, step, rank))
        expect.close(flat(model), flat(reference), f"parameters after step {step}")
    del ddp_model


@pytest.mark.ranks(3)
def test_with_adamw_one_local_step_is_not_ddp(rank, world_size, seed):
    """The mean of AdamW's steps isn't AdamW's step of the mean gradient."""
    reference = network(seed)
    of_ddp, ddp_model = adamw(reference), DDP(reference)
    for step in range(3):
        inner_step(ddp_model, of_ddp, *batch(seed, step, rank))
    model, _, _ = train(seed, 3, 1, PLAIN_MEAN)
    apart = (flat(model) - flat(reference)).abs().max().item()
    expect.that(apart > 1e-4, f"they differ by {apart} only")
    del ddp_model


@pytest.mark.ranks(3, 4)
def test_ranks_differ_between_averages_and_keep_their_inner_state(
    rank, world_size, seed
):
    model, optimizer, _ = train(seed, 4, 4, OuterRule())
    expect.same_on_all_ranks(flat(model), "parameters after an outer step")
    moments = [state["exp_avg"].flatten() for state in optimizer.state.values()]
    others = ls.gather(torch.cat(moments)).view(world_size, -1)
    for other in range(world_size):
        same = torch.equal(others[other], others[rank])
        expect.equal(same, other == rank, f"moments equal to those of rank {other}")
    model, _, _ = train(seed, 5, 4, OuterRule())
    others = ls.gather(flat(model)).view(world_size, -1)
    for other in range(world_size):
        same = torch.equal(others[other], others[rank])
        expect.equal(same, other == rank, f"parameters equal to those of rank {other}")


@pytest.mark.ranks(3)
def test_late_rank_changes_nothing(rank, world_size, seed):
    expected = flat(train(seed, 5, 2, OuterRule())[0])
    for late in range(world_size):
        own = flat(train(seed, 5, 2, OuterRule(), late=late)[0])
        expect.that(torch.equal(own, expected), f"rank {late} late: other parameters")


@pytest.mark.ranks(1, 3)
def test_inner_steps_leave_shared_alone(rank, world_size, seed):
    """The parameters are copies of it, not views."""
    model, optimizer, fragments = train(seed, 2, 2, OuterRule())
    before = fragments[0].shared.clone()
    inner_step(model, optimizer, *batch(seed, 2, rank))
    expect.that(torch.equal(fragments[0].shared, before), "shared has changed")
    expect.that(not torch.equal(flat(model), before), "the parameters haven't")
    ls.copy_to_parameters(fragments[0], before)
    expect.that(torch.equal(flat(model), before), "the parameters aren't shared")


@pytest.mark.ranks(3)
def test_fragments_hold_each_parameter_once_and_have_their_turns(
    rank, world_size, seed
):
    parameters = list(network(seed).parameters())
    for count in range(1, 7):
        fragments = ls.make_fragments(parameters, count)
        held = [p for fragment in fragments for p in fragment.parameters]
        expect.equal([id(p) for p in held], [id(p) for p in parameters], "order")
        expect.that(all(f.parameters for f in fragments), f"one of {count} is empty")
        for first in (0, 24):
            turns = [
                fragments.index(fragment)
                for step in range(12)
                for fragment in ls.due(fragments, first + step + 1, 12)
            ]
            expect.equal(turns, list(range(count)), "turns in 12 steps")
    words = ["--fragments 7", "6 parameters", "choose fewer"]
    expect.raises(BadInput, ls.make_fragments, parameters, 7, words=words)


def drawn(seed, size):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator, dtype=torch.float64)


@pytest.mark.ranks(3, 4)
def test_int8_mean_is_close_and_equal_on_all_ranks(rank, world_size, seed):
    (fragment,) = ls.make_fragments(network(seed).parameters())
    n = fragment.shared.numel()
    expect.that(n % world_size > 0, "the part of each rank is as long")
    values = drawn(seed + rank, n) * (rank + 1)
    exact = ls.mean(values.clone())
    nearly = ls.mean_by_int8(values, fragment)
    expect.same_on_all_ranks(nearly, "the mean")
    step = values.abs().max() / 127
    dist.all_reduce(step, op=dist.ReduceOp.MAX)
    apart = (nearly - exact).abs().max()
    expect.that(0 < apart <= step, f"{apart} from the mean, step {step}")


@pytest.mark.ranks(3, 4)
def test_what_int8_leaves_out_is_sent_later(rank, world_size, seed):
    """The sum of all means is exact but for what is unsent still."""
    (fragment,) = ls.make_fragments(network(seed).parameters())
    n = fragment.shared.numel()
    exact, nearly = torch.zeros(2, n, dtype=torch.float64)
    for number in range(6):
        values = drawn(100 * number + rank, n)
        exact += ls.mean(values.clone())
        nearly += ls.mean_by_int8(values, fragment)
    unsent = ls.mean(fragment.unsent.clone()) + ls.gather(fragment.unsent_mean)[:n]
    expect.close(nearly + unsent, exact, "means and what is unsent")


@pytest.mark.ranks(3)
def test_small_differences_are_lost_without_feedback(rank, world_size, seed):
    """One large value sets the step; a third of a step is rounded to nothing."""
    (fragment,) = ls.make_fragments(network(seed).parameters())
    values = torch.full_like(fragment.shared, 1 / 3)
    values[0] = 127.0
    with_feedback, without = torch.zeros(2, len(values), dtype=torch.float64)
    for _ in range(6):
        with_feedback += ls.mean_by_int8(values, fragment)
    for _ in range(6):
        fragment.unsent.zero_()
        fragment.unsent_mean.zero_()
        without += ls.mean_by_int8(values, fragment)
    expect.that(bool((without[1:] == 0).all()), "something was sent without feedback")
    expect.that(
        bool(((with_feedback[1:] - 2).abs() <= 1).all()),
        f"{with_feedback[1:].min()} to {with_feedback[1:].max()}, not about 2",
    )


@pytest.mark.ranks(1, 3)
def test_int8_of_zeros_is_zeros(rank, world_size, seed):
    (fragment,) = ls.make_fragments(network(seed).parameters())
    nearly = ls.mean_by_int8(torch.zeros_like(fragment.shared), fragment)
    expect.equal(nearly, torch.zeros_like(nearly), "the mean of zeros")


@pytest.mark.ranks(3, 4)
def test_bytes_sent_equal_the_formula(rank, world_size, seed):
    """K steps of training: 2 (N-1)/N x the parameters' bytes, or one byte of each."""
    for rule in (OuterRule(), OuterRule(int8=True), OuterRule(delay=1)):
        for count in (1, 3):
            with Traffic() as traffic:
                _, _, fragments = train(seed, 4, 4, rule, count)
                for fragment in fragments:
                    fragment.wait()
            formula = 4 * ls.bytes_sent(fragments, 4, rule, world_size)
            what = f"bytes sent, {rule}, {count} fragments"
            expect.equal(traffic.wire_bytes(), round(formula), what)


@pytest.mark.ranks(3)
def test_restored_fragments_continue_bit_for_bit(rank, world_size, seed):
    """Stopped between two averages: with one byte for each number, and under way."""
    for rule in (OuterRule(int8=True), OuterRule(delay=2, keep=0.5)):
        straight, _, _ = train(seed, 8, 3, rule, 2)
        model, optimizer, fragments = train(seed, 4, 3, rule, 2)
        saved = copy.deepcopy([fragment.state_dict() for fragment in fragments])
        under_way = [state["sent"] is not None for state in saved]
        expect.equal(under_way, [rule.delay > 0] * 2, "sums that are under way")
        resumed = network(seed + 1)
        own = adamw(resumed)
        again = ls.make_fragments(resumed.parameters(), 2)
        resumed.load_state_dict(model.state_dict())
        own.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for fragment, state in zip(again, saved, strict=True):
            fragment.load_state_dict(state)
        for step in range(4, 8):
            inner_step(resumed, own, *batch(seed, step, rank))
            ls.agree(again, step + 1, 3, rule)
        equal = torch.equal(flat(resumed), flat(straight))
        expect.that(equal, f"other parameters with {rule}")
