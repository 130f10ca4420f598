"""src/15_fsdp.py in ranks: what is whole when, the weights of one process, one file.

Each function runs in every rank, as a check of an exercise does; test_15_fsdp.py has
them run.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common import gpt_training
from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Activations, Traffic, UnshardedBytes, bytes_of
from common.gpt_training import _sum_over_ranks, local_batch
from common.parallel.full_state import (
    full_state_dict,
    load_full_state_dict,
    read_on_rank_0,
)
from common.snapshot import write_snapshot

fsdp_formula = import_module("instruments.15_cost").fsdp_formula
fsdp = import_module("15_fsdp")
train_gpt = import_module("13_train_gpt")

SIZES = Sizes(width=9, heads=3, blocks=3, context=5)
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
}


CPU = torch.device("cpu")


def options(**given):
    """The command line, as the script reads it."""
    defaults = {"mixed_precision": False, "keep_whole": False, "prefetch": None}
    return argparse.Namespace(**vars(SIZES), **(defaults | given))


def gpt(seed, dtype=torch.float64):
    torch.manual_seed(seed)
    model = ByteGPT(SIZES).to(dtype)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def batches(world_size, seed, steps=3):
    generator = torch.Generator().manual_seed(seed)
    shape = steps, 2, 2 * world_size, SIZES.context
    return torch.randint(BYTES, shape, generator=generator)


def train_sharded(model, optimizer, data, max_norm=None):
    """The losses of the global batches."""
    losses = []
    for inputs, targets in data:
        optimizer.zero_grad()
        loss = next_byte_loss(model(local_batch(inputs)), local_batch(targets))
        loss.backward()
        if max_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        losses += _sum_over_ranks([loss.detach() / dist.get_world_size()])
    return losses


def train_alone(model, optimizer, data, max_norm=None):
    losses = []
    for inputs, targets in data:
        optimizer.zero_grad()
        loss = next_byte_loss(model(inputs), targets)
        loss.backward()
        if max_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def by_hand(model):
    """The whole parameters, gathered without get_model_state_dict."""
    return {key: value.full_tensor() for key, value in model.state_dict().items()}


@pytest.mark.ranks(2, 3, limit=60)
def test_trains_like_one_process(rank, world_size, seed):
    """Three steps give the weights of one process, whatever the options, and with the
    gradients clipped by their global norm."""
    data = batches(world_size, seed)
    for name, make in OPTIMIZERS.items():
        for given in ({}, {"keep_whole": True, "prefetch": 2}):
            for max_norm in (None, 0.05):
                one, model = gpt(seed), gpt(seed)
                expected = train_alone(one, make(one.parameters()), data, max_norm)
                fsdp.shard(model, options(**given), CPU)
                optimizer = make(model.parameters())
                losses = train_sharded(model, optimizer, data, max_norm)
                what = f"{name}, {given}, max_norm {max_norm}"
                expect.close(torch.tensor(losses), torch.tensor(expected), what)
                found, before = by_hand(model), gpt(seed).state_dict()
                for key, value in one.state_dict().items():
                    expect.close(found[key], value, f"{key}, {what}")
                    expect.that(not torch.equal(value, before[key]), f"{key}: {what}")


@pytest.mark.ranks(2, 3)
def test_model_is_whole_on_rank_0_alone_and_on_the_cpu(rank, world_size, seed):
    """The others make it on the meta device; all get the weights of one process."""
    made, users = [], (fsdp, gpt_training)

    class Watched(ByteGPT):
        def __init__(self, sizes):
            super().__init__(sizes)
            made.append(next(self.parameters()).device.type)

    args = options(batch_size=world_size, learning_rate=0.1)
    for module in users:
        module.ByteGPT = Watched
    try:
        model, _ = fsdp.build(args, CPU)
    finally:
        for module in users:
            module.ByteGPT = ByteGPT
    expect.equal(made, ["meta", "cpu"] if rank == 0 else ["meta"], "models made")
    found = by_hand(model)
    one, _ = train_gpt.build(args, CPU)
    for key, value in one.state_dict().items():
        expect.equal(found[key], value, f"{key} at the beginning")


@pytest.mark.ranks(2, 3, limit=60)
def test_what_a_rank_holds_and_sends(rank, world_size, seed):
    """No rank holds more than its shard and the layers in flight; all counts of rank 0
    equal the formula."""
    inputs, targets = batches(world_size, seed)[0]
    for given in (
        {},
        {"prefetch": 1},
        {"prefetch": 2},
        {"keep_whole": True},
        {"mixed_precision": True},
    ):
        args = options(**given)
        model = gpt(seed, torch.float32)
        fsdp.shard(model, args, CPU)
        optimizer = torch.optim.AdamW(model.parameters())
        parts = local_batch(inputs), local_batch(targets)
        with (
            Traffic() as traffic,
            UnshardedBytes() as whole,
            Activations(model) as saved,
        ):
            fsdp.train_step(model, optimizer, *parts)
        formula = fsdp_formula(args, len(parts[0]))
        in_flight = formula["whole at once"]
        expect.that(whole.peak_bytes > 0, "nothing was seen to be gathered")
        expect.equal(whole.peak_bytes, in_flight, f"whole at once, {given}")
        expect.equal(whole.bytes(), 0, f"whole after the step, {given}")
        expect.equal(traffic.wire_bytes(), formula["sent in a step"], f"sent, {given}")
        if "activations" in formula:
            expect.equal(saved.peak_bytes, formula["activations"], f"saved, {given}")
        most = formula["parameters"]  # rank 0 has the largest shards
        expect.that(0 < bytes_of(model.parameters()) <= most, f"parameters of {given}")
        if rank == 0:
            expect.equal(bytes_of(model.parameters()), most, f"parameters, {given}")
        shares = torch.tensor(bytes_of(model.parameters()))
        dist.all_reduce(shares)
        numel = sum(parameter.numel() for parameter in model.parameters())
        expect.equal(shares.item(), 4 * numel, "the parameters of all ranks together")
        for parameter in model.parameters():
            expect.equal(parameter.dtype, torch.float32, f"a shard, {given}")
            expect.equal(parameter.grad.dtype, torch.float32, f"a gradient, {given}")


@pytest.mark.ranks(3, limit=30)
def test_one_block_is_whole_at_a_time(rank, world_size, seed):
    """While a block computes, the other blocks have their shards alone; embedding and
    head, the root's, are whole until backward has passed them."""
    model = gpt(seed)
    fsdp.shard(model, options(), CPU)
    whole_at = []

    def is_whole(module):
        return not any(isinstance(p, DTensor) for p in module.parameters())

    for block in model.blocks:
        block.attention.register_forward_hook(
            lambda *_: whole_at.append([is_whole(layer) for layer in model.layers()])
        )
    for inputs, targets in batches(world_size, seed):
        next_byte_loss(model(local_batch(inputs)), local_batch(targets)).backward()
        expected = [
            [True, *(number == other for other in range(3)), True]
            for number in range(3)
        ]
        expect.equal(whole_at, expected, "who is whole while block 0, 1, 2 compute")
        after = [is_whole(layer) for layer in model.layers()]
        expect.equal(after, [False] * 5, "who is whole after backward")
        whole_at.clear()


@pytest.mark.ranks(2, 3, limit=60)
def test_one_file_that_one_device_goes_on_from(rank, world_size, seed, shared_dir):
    """src/13_train_gpt.py loads the file and goes on; its losses are bit-equal to those
    of a one-device run from the same state, gathered shard by shard."""
    data = batches(world_size, seed, steps=6)
    model = gpt(seed, torch.float32)
    fsdp.shard(model, options(), CPU)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    train_sharded(model, optimizer, data[:3])
    path = shared_dir / "gpt.pt"
    snapshot = full_state_dict(model, optimizer) | {"steps_run": 3}
    expect.equal(bool(snapshot.get("model")), rank == 0, "who holds the whole state")
    if rank == 0:
        write_snapshot(snapshot, path)
    parameters = by_hand(model)
    moments = {
        name: {
            key: value.full_tensor() if isinstance(value, DTensor) else value
            for key, value in optimizer.state[parameter].items()
        }
        for name, parameter in model.named_parameters()
    }
    dist.barrier()
    from_file = gpt(seed + 1, torch.float32)
    its_optimizer = torch.optim.AdamW(from_file.parameters(), 0.5)
    steps = train_gpt.load_snapshot(from_file, its_optimizer, path)
    expect.equal(steps, 3, "steps run")
    expect.equal(its_optimizer.param_groups[0]["lr"], 0.01, "the learning rate")
    same_state = gpt(seed, torch.float32)
    same_state.load_state_dict(parameters)
    their_optimizer = torch.optim.AdamW(same_state.parameters(), 0.01)
    for name, parameter in same_state.named_parameters():
        their_optimizer.state[parameter] = {
            key: value.clone() for key, value in moments[name].items()
        }
    mine = train_alone(from_file, its_optimizer, data[3:])
    expected = train_alone(same_state, their_optimizer, data[3:])
    expect.equal(mine, expected, "the losses of the continued run, bit for bit")
    for key, value in same_state.state_dict().items():
        expect.equal(from_file.state_dict()[key], value, f"{key} after 3 more steps")


@pytest.mark.ranks(2, 3, limit=60)
def test_a_file_of_one_device_goes_on_in_ranks(rank, world_size, seed, shared_dir):
    """What src/13_train_gpt.py has saved is loaded bit for bit, and goes on as it would
    have on one device."""
    data = batches(world_size, seed, steps=6)
    one = gpt(seed)
    optimizer = torch.optim.AdamW(one.parameters(), 0.01)
    train_alone(one, optimizer, data[:3])
    path = shared_dir / "gpt.pt"
    if rank == 0:
        states = {"model": one.state_dict(), "optimizer": optimizer.state_dict()}
        write_snapshot(states | {"steps_run": 3}, path)
    dist.barrier()
    model = gpt(seed + 1)
    fsdp.shard(model, options(), CPU)
    sharded = torch.optim.AdamW(model.parameters(), 0.5)
    snapshot, steps = read_on_rank_0(path)
    expect.equal(steps, 3, "steps run")
    load_full_state_dict(model, sharded, snapshot)
    again = full_state_dict(model, sharded)
    if rank == 0:
        for key, value in one.state_dict().items():
            expect.equal(again["model"][key], value, f"{key} as loaded")
        theirs = optimizer.state_dict()
        expect.equal(again["optimizer"]["param_groups"], theirs["param_groups"], "lr")
        for number, values in theirs["state"].items():
            for key, value in values.items():
                mine = again["optimizer"]["state"][number][key]
                expect.equal(mine, value, f"{key} of parameter {number} as loaded")
    losses = train_sharded(model, sharded, data[3:])
    expected = train_alone(one, optimizer, data[3:])
    expect.close(torch.tensor(losses), torch.tensor(expected), "the losses")
    found = by_hand(model)
    for key, value in one.state_dict().items():
        expect.close(found[key], value, f"{key} after 3 more steps")
