"""17_speed.py in ranks: each option leaves the gradients what they were.

Each function runs in every rank, as a check of an exercise does; test_17_speed.py has
them run.
"""

import re
import sys
from importlib import import_module
from itertools import combinations
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.cost.links import describe_links
from common.cost.measure import Traffic

speed = import_module("instruments.17_speed")
CPU = torch.device("cpu")


class Small(speed.ByteGPT):
    """The program's model, of one small block."""

    def __init__(self, sizes):
        super().__init__(speed.Sizes(width=12, heads=3, blocks=1, context=8))


def training(rank, *chosen):
    """A training run with data of this rank's own, the same for all options."""
    speed.ByteGPT = Small
    made = speed.Training(set(chosen), CPU)
    generator = torch.Generator().manual_seed(rank)
    shape = speed.MICRO_BATCHES, 2, 9
    tokens = torch.randint(256, shape, generator=generator)
    made.batches = iter(tokens.repeat(3, 1, 1))
    return made


def gradients(rank, *chosen):
    made = training(rank, *chosen)
    made.step()
    return torch.cat([p.grad.flatten() for p in made.model.parameters()])


@pytest.mark.ranks(3, limit=30)
def test_options_leave_the_gradient_what_it_is(rank):
    plain = gradients(rank)
    for name in ("no-sync", "one-bucket", "bucket-view", "static-graph", "checkpoint"):
        found = gradients(rank, name)
        expect.that(
            torch.allclose(found, plain, atol=1e-6), f"{name} changes gradients"
        )
        expect.same_on_all_ranks(found, f"the gradient with {name}")
    for name, short in (("fp16-hook", torch.float16), ("bf16-hook", torch.bfloat16)):
        rough, most = gradients(rank, name), torch.finfo(short).eps * plain.abs().max()
        # at most half an eps in each rank's number, in each sum, and in each mean
        expect.that(torch.allclose(rough, plain, rtol=0, atol=4 * most.item()), name)
        expect.that(not torch.equal(rough, plain), f"{name}: nothing was rounded")
        expect.same_on_all_ranks(rough, f"the gradient with {name}")


@pytest.mark.ranks(3, limit=30)
def test_a_gradient_that_is_not_finite_on_one_rank_skips_the_step_on_all(rank):
    made = training(rank, "fp16", "no-sync")
    before = [p.detach().clone() for p in made.model.parameters()]
    scale = made.scaler.get_scale()
    if rank == 1:
        first = next(made.model.parameters())
        first.register_hook(lambda gradient: gradient * float("inf"))
    made.step()
    for old, new in zip(before, made.model.parameters(), strict=True):
        expect.that(torch.equal(old, new), "a rank has stepped")
    expect.that(made.scaler.get_scale() == scale / 2, "the scale is not halved")


EXACT = "no-sync", "one-bucket", "bucket-view", "static-graph", "checkpoint"
ROUNDED = {"fp16-hook": 2e-3, "bf16-hook": 2e-2, "bf16": 2e-2, "fp16": 2e-3}
RIVALS = [set(pair.split()) for pair in speed.RIVALS.split(", ")]


def wrong_pairs(names, usual):
    """Pairs that aren't refused, with a gradient that is further off than rounding."""
    for pair in combinations(names, 2):
        if not any(set(pair) <= one for one in RIVALS):
            found = gradients(dist.get_rank(), *pair)
            most = max(ROUNDED.get(name, 1e-6) for name in pair)
            wrong = (found - usual(pair)).abs().max().item()
            if not wrong <= most or not alike(found):
                yield f"{pair}: wrong by {wrong}"


def alike(mine):
    """Whether all ranks have the same tensor."""
    others = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(others, mine)
    return all(torch.equal(mine, other) for other in others)


@pytest.mark.ranks(2, limit=120)
def test_two_options_together_do_what_each_of_them_does(rank):
    """All but powersgd, whose calls the ledger misses, compile, and workers."""
    plain = gradients(rank)
    found = wrong_pairs((*EXACT, *ROUNDED), lambda pair: plain)
    expect.equal(list(found), [], "pairs")


@pytest.mark.ranks(2, limit=30)
def test_no_sync_reduces_once_and_two_ranks_have_one_link(rank):
    calls = {}
    for chosen in ((), ("no-sync",)):
        made = training(rank, *chosen)
        made.step()
        made.step()  # DDP has laid out its buckets
        with Traffic() as traffic:
            made.step()
        calls[chosen] = len(traffic.calls)
    expect.equal(calls[()], speed.MICRO_BATCHES * calls[("no-sync",)], "all-reduces")
    links = describe_links(CPU)
    least, most = re.fullmatch(
        r"all alike; round trips take (.+) to (.+) ms", links
    ).groups()
    expect.that(least == most, links)
    dist.barrier()
