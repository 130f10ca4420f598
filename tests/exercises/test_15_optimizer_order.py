"""Checks of exercises/15_optimizer_order.py."""

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from grader import expect

OPTIMIZERS = {
    "SGD": lambda groups: torch.optim.SGD(groups, 0.2, momentum=0.9),
    "AdamW": lambda groups: torch.optim.AdamW(groups, 0.05, weight_decay=0),
}


class Network(nn.Module):
    """Three blocks between two layers; dims that neither 3 nor 4 ranks divide."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.enter = nn.Linear(5, 7)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(7), nn.Linear(7, 7), nn.Tanh()) for _ in range(3)
        )
        self.leave = nn.Linear(7, 2)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.7)
        self.double()

    def forward(self, x):  # [B, 5] -> [B, 2]
        x = self.enter(x)
        for block in self.blocks:
            x = x + block(x)
        return self.leave(x)


def batches(seed, world_size):
    """[3 steps, W, 4, 5]"""
    generator = torch.Generator().manual_seed(seed + 5000)
    return torch.randn(3, world_size, 4, 5, generator=generator, dtype=torch.float64)


def check_groups(network, optimizer):
    """The optimizer has every parameter that computes, with the right decay."""
    decays = {
        id(parameter): group["weight_decay"]
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    for name, parameter in network.named_parameters():
        expect.that(
            id(parameter) in decays,
            f"{name} as the model has it now is not in the optimizer: it stays what it "
            "was at the beginning, no step reaches it",
        )
        decay, matrix = decays[id(parameter)], parameter.dim() >= 2
        expect.that(decay or not matrix, f"{name} is trained without weight decay")
        expect.that(
            matrix or not decay,
            f"{name} is trained with weight decay, which is for matrices",
        )


def trained_alone(seed, make, inputs):
    network = Network(seed)
    matrices = [p for p in network.parameters() if p.dim() >= 2]
    others = [p for p in network.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others}]
    optimizer = make(groups)
    for step in inputs:
        optimizer.zero_grad()
        network(step.flatten(0, 1)).square().mean().backward()
        optimizer.step()
    return network


@pytest.mark.ranks(3, 4, limit=20)
def test_parameters_are_sharded(exercise, rank, world_size, seed):
    """Afterwards every parameter is in shards."""
    network = Network(seed)
    exercise.shard(network, OPTIMIZERS["SGD"])
    for name, parameter in network.named_parameters():
        expect.that(
            isinstance(parameter, DTensor),
            f"{name} is still whole on this rank: fully_shard has not reached it",
        )
    expect.that(
        isinstance(network, FSDPModule),
        "the model itself was not given to fully_shard: then each block is a root, and "
        "a root stays whole after forward",
    )


@pytest.mark.ranks(3, 4, limit=20)
def test_training_moves_the_parameters(exercise, rank, world_size, seed):
    """Three steps give the weights of one process."""
    for name, make in OPTIMIZERS.items():
        inputs = batches(seed, world_size)
        network = Network(seed)
        optimizer = exercise.shard(network, make)
        expect.that(
            isinstance(optimizer, torch.optim.Optimizer),
            "shard should return the optimizer, and returned "
            f"{'None' if optimizer is None else type(optimizer).__name__}",
        )
        check_groups(network, optimizer)
        expect.still_training(network, "the model is")
        for step in inputs:
            optimizer.zero_grad()
            network(step[rank]).square().mean().backward()
            optimizer.step()
        for key, value in trained_alone(seed, make, inputs).state_dict().items():
            found = network.state_dict()[key]
            found = found.full_tensor() if isinstance(found, DTensor) else found
            expect.close(found, value, f"{key} after 3 steps of {name}")


@pytest.mark.ranks(3, limit=20)
def test_one_block_is_whole_at_a_time(exercise, rank, world_size, seed, ledger):
    """Each block is a group, and the rest is one: others stay in shards meanwhile."""
    network = Network(seed)
    exercise.shard(network, OPTIMIZERS["SGD"])
    others_whole = []

    def look(number):
        others = [b for k, b in enumerate(network.blocks) if k != number]
        rest = [p for block in others for p in block.parameters()]
        others_whole.append(sum(not isinstance(p, DTensor) for p in rest))

    for number, block in enumerate(network.blocks):
        block[1].register_forward_hook(lambda *_, n=number: look(n))
    ledger.clear()
    outputs = network(batches(seed, world_size)[0][rank])
    groups = ledger.count("all_gather_single", "all_gather")
    outputs.square().mean().backward()
    expect.equal(len(others_whole), 3, "blocks that have computed")
    expect.right_way(
        others_whole == [0, 0, 0],
        f"while block 0, 1 and 2 compute, {others_whole} parameters of other blocks "
        "are whole, too: each block should be a group of its own",
    )
    expect.right_way(
        groups == 4,
        f"forward gathers {groups} times: with a group for each of the three blocks "
        "and one for the rest of the model, it is 4 times",
    )
