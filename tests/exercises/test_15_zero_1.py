"""Checks of exercises/15_zero_1.py."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from grader import expect

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.1),
}


class Network(nn.Module):
    """71 trained numbers, which neither 3 nor 4 ranks divide, and a frozen one."""

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return nn.Parameter(
                torch.randn(*shape, generator=generator, dtype=torch.float64)
            )

        self.first, self.bias = draw(6, 7), draw(6)
        self.frozen = draw(6).requires_grad_(False)
        self.last, self.shift = draw(3, 6), draw(3)
        self.unused = draw(2)

    def forward(self, x):  # [B, 7] -> [B, 3]
        hidden = torch.tanh(x @ self.first.T / 3 + self.bias) * self.frozen
        return hidden @ self.last.T + self.shift


def batches(seed, world_size, steps=3):
    """[steps, W, 5, 7] inputs; targets are zero."""
    generator = torch.Generator().manual_seed(seed + 5000)
    shape = steps, world_size, 5, 7
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def loss_of(outputs):
    return outputs.square().mean()


def flat(parameters):
    return torch.cat([p.detach().flatten() for p in parameters if p.requires_grad])


def trained_alone(seed, make, inputs):
    """Every parameter after the steps that one process takes with all inputs."""
    network = Network(seed)
    optimizer = make([p for p in network.parameters() if p.requires_grad])
    for step in inputs:
        optimizer.zero_grad()
        loss_of(network(step.flatten(0, 1))).backward()
        network.unused.grad = torch.zeros_like(network.unused)
        optimizer.step()
    return network


def trained(exercise, seed, make, inputs, rank):
    network = Network(seed)
    optimizer = exercise.ShardedOptimizer(network.parameters(), make)
    for step in inputs:
        optimizer.zero_grad()
        loss_of(network(step[rank])).backward()
        optimizer.step()
    return network, optimizer


def own_part_only(before, after, rank, world_size):
    """What it looks like if the other ranks' shards never arrive."""
    numel = -(-len(before) // world_size)
    mixed = before.clone()
    mine = slice(rank * numel, (rank + 1) * numel)
    mixed[mine] = after[mine]
    return mixed


@pytest.mark.ranks(3, 4)
def test_one_step(exercise, rank, world_size, seed):
    """One step gives every rank the parameters that one process has after it."""
    make = OPTIMIZERS["SGD"]
    inputs = batches(seed, world_size)[:1]
    before = flat(Network(seed).parameters())
    after = flat(trained_alone(seed, make, inputs).parameters())
    network, _ = trained(exercise, seed, make, inputs, rank)
    found = flat(network.parameters())
    partly = own_part_only(before, after, rank, world_size)
    what = "all parameters, laid side by side, after one step of SGD"
    names = {
        "what it was before the step": before,
        "stepped in this rank's shard only: the others' shards did not arrive": partly,
    }
    expect.close(found, after, what, mistaken=names)
    expect.same_on_all_ranks(found, what)


@pytest.mark.ranks(3, 4)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """Three steps of SGD and of AdamW give the weights of one process."""
    for name, make in OPTIMIZERS.items():
        inputs = batches(seed, world_size)
        network, _ = trained(exercise, seed, make, inputs, rank)
        expected = trained_alone(seed, make, inputs)
        for (key, a), b in zip(
            network.named_parameters(), expected.parameters(), strict=True
        ):
            expect.close(a.detach(), b.detach(), f"{key} after 3 steps of {name}")


@pytest.mark.ranks(3, 4)
def test_each_rank_has_its_part_of_the_state(exercise, rank, world_size, seed):
    """Momentum and variance of a rank are those of its shard, and no more."""
    make = OPTIMIZERS["AdamW"]
    inputs = batches(seed, world_size)
    network, optimizer = trained(exercise, seed, make, inputs, rank)
    expected = flat(trained_alone(seed, make, inputs).parameters())
    expect.close(flat(network.parameters()), expected, "the parameters after 3 steps")
    numel = -(-len(expected) // world_size)
    state = sum(
        value.numel()
        for entry in optimizer.optimizer.state.values()
        for value in entry.values()
        if torch.is_tensor(value) and value.dim()
    )
    expect.right_way(
        0 < state <= 2 * numel,
        f"this rank's optimizer keeps {state} numbers of state; a shard of "
        f"{numel} parameters needs {2 * numel}: nothing is saved by a state that is "
        "whole on every rank",
    )


@pytest.mark.ranks(3, 4)
def test_no_more_travels_than_must(exercise, rank, world_size, seed, ledger):
    """Gradients are reduced to shards, and shards are gathered: half of it each."""
    make = OPTIMIZERS["SGD"]
    inputs = batches(seed, world_size)[:1]
    network = Network(seed)
    optimizer = exercise.ShardedOptimizer(network.parameters(), make)
    loss_of(network(inputs[0][rank])).backward()
    ledger.clear()
    optimizer.step()
    large = [row.op for row in ledger.rows if row.op == "all_reduce" and row.numel > 2]
    expected = flat(trained_alone(seed, make, inputs).parameters())
    expect.close(flat(network.parameters()), expected, "the parameters after a step")
    expect.right_way(
        not large,
        "the gradients went through an all_reduce, which gives every rank all of "
        "them. This rank needs its own shard: a reduce-scatter sends half as much",
    )
    dist.barrier()
