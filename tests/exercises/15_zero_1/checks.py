"""Checks of exercises/15_zero_1.py."""

import time

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect

OPTIMIZERS = {
    "SGD": lambda *p: torch.optim.SGD(*p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "AdamW": lambda *p: torch.optim.AdamW(*p, lr=0.02, weight_decay=0.1),
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


def trained_alone(seed, make, inputs, empties=True):
    """Every parameter after the steps that one process takes with all inputs.

    Unless it ``empties`` the gradients before each step, they add up.
    """
    network = Network(seed)
    optimizer = make([p for p in network.parameters() if p.requires_grad])
    for step in inputs:
        if empties:
            optimizer.zero_grad()
        loss_of(network(step.flatten(0, 1))).backward()
        network.unused.grad = torch.zeros_like(network.unused)
        optimizer.step()
    return network


def wrong_steps(seed, inputs, before, after, rank, world_size):
    """What the first step of SGD becomes by a wrong gradient, by its name."""
    still = before * (1 - 0.1 * 0.1)  # what weight decay alone leaves
    step = still - after  # 0.1 times the mean gradient
    own = still.clone()
    numel = -(-len(before) // world_size)
    for owner in range(world_size):
        network = Network(seed)
        loss_of(network(inputs[0][owner])).backward()
        network.unused.grad = torch.zeros_like(network.unused)
        grads = torch.cat(
            [p.grad.flatten() for p in network.parameters() if p.requires_grad]
        )
        part = slice(owner * numel, (owner + 1) * numel)
        own[part] -= 0.1 * grads[part]
        if owner == rank:
            gradients = grads
    partly = own_part_only(before, after, rank, world_size)
    without = torch.cat([after[:-2], before[-2:]])  # the two numbers of `unused`
    padded = nn.functional.pad(after, (0, numel * world_size - len(after)))
    shards = list(padded.split(numel))
    numbers_of = [p.numel() for p in Network(seed).parameters() if p.requires_grad]
    repeated = {
        f"the stepped shard of rank {owner}, in the place of every shard": (
            torch.cat([shard] * world_size)[: len(after)]
        )
        for owner, shard in enumerate(shards)
    }
    instead = {
        "this rank's gradients": gradients,
        "this rank's gradients, divided by the world size": gradients / world_size,
        "zeros": torch.zeros_like(after),
    }
    repeated |= {
        f"right in this rank's shard, and holds {words} elsewhere: gather the stepped "
        "shards": own_part_only(values, after, rank, world_size)
        for words, values in instead.items()
    }
    return repeated | {
        "stepped, but its shards are joined with the last rank's first": (
            torch.cat(shards[::-1])[: len(after)]
        ),
        "stepped, but each parameter got the first numbers of all: move on by its "
        "number after each": torch.cat([after[:count] for count in numbers_of]),
        "right except for a parameter whose grad is None: its gradient is 0, and "
        "weight decay changes it": without,
        "what it was before the step": before,
        "stepped in this rank's shard only: the others' shards did not arrive": partly,
        "stepped by the sum of the ranks' gradients, never divided by the world "
        "size": still - world_size * step,
        "stepped by the mean of the gradients, divided by the world size once "
        "more": still - step / world_size,
        "stepped in each shard by its own rank's gradient: the ranks' gradients were "
        "never averaged": own,
    }


def trained(exercise, seed, make, inputs, rank):
    network = Network(seed)
    optimizer = exercise.ShardedOptimizer(network.parameters(), make)
    for step in inputs:
        optimizer.zero_grad()
        loss_of(network(step[rank])).backward()
        if rank == 1:
            time.sleep(0.05)
        grads = {k: p.grad for k, p in network.named_parameters() if p.grad is not None}
        before = {key: grad.clone() for key, grad in grads.items()}
        shapes = {key: p.shape for key, p in network.named_parameters()}
        optimizer.step()
        for key, parameter in network.named_parameters():
            now, was = list(parameter.shape), list(shapes[key])
            expect.that(now == was, f"{key} has shape {now} after step, and had {was}")
        for key, grad in before.items():
            found = dict(network.named_parameters())[key].grad
            expect.that(found is not None, f"{key}.grad is gone after step")
            expect.unchanged(found, grad, f"{key}.grad after step")
        for key, parameter in network.named_parameters():
            kept = key in before or parameter.grad is None
            expect.that(kept, f"{key}.grad was None, and is a tensor after step")
            trains = parameter.requires_grad == (key != "frozen")
            expect.that(trains, f"step changed requires_grad of {key}")
    return network, optimizer


def own_part_only(before, after, rank, world_size):
    """What it looks like if the other ranks' shards never arrive."""
    numel = -(-len(before) // world_size)
    mixed = before.clone()
    mine = slice(rank * numel, (rank + 1) * numel)
    mixed[mine] = after[mine]
    return mixed


def check_shard(exercise, seed, rank, world_size):
    """self.shard is this rank's part of all parameters, a new nn.Parameter."""
    network = Network(seed)
    shard = exercise.ShardedOptimizer(network.parameters(), OPTIMIZERS["SGD"]).shard
    expect.that(isinstance(shard, nn.Parameter), "self.shard isn't an nn.Parameter")
    numel = -(-len(flat(network.parameters())) // world_size)
    whole = nn.functional.pad(flat(network.parameters()), (0, world_size))
    expect.that(
        shard.shape == (numel,),
        f"self.shard has shape {list(shard.shape)}, expected [{numel}]: a "
        "shard saves memory only with 1/N of all numbers, rounded up",
    )
    names = {
        f"one number of every {world_size}: a shard is a block of numbers that follow "
        "each other": whole[rank::world_size][:numel],
    }
    names |= {
        f"the shard of rank {other}": whole[other * numel : (other + 1) * numel]
        for other in range(world_size)
        if other != rank
    }
    right = whole[rank * numel : (rank + 1) * numel]
    expect.close(shard, right, "self.shard", mistaken=names)
    held = shard.untyped_storage().nbytes() // shard.element_size()
    expect.right_way(
        held == numel,
        f"self.shard is a view of a tensor of {held} numbers, and keeps the memory of "
        f"all of them: copy its {numel}",
    )


@pytest.mark.ranks(3, 4)
def test_one_step(exercise, rank, world_size, seed, ledger):
    """One step gives every rank the parameters that one process has after it."""
    check_shard(exercise, seed, rank, world_size)
    make = OPTIMIZERS["SGD"]
    inputs = batches(seed, world_size)[:1]
    before = flat(Network(seed).parameters())
    after = flat(trained_alone(seed, make, inputs).parameters())
    network, _ = trained(exercise, seed, make, inputs, rank)
    found = flat(network.parameters())
    roots = {row.root for row in ledger.rows if row.op == "reduce"}
    expect.that(
        roots in (set(), set(range(world_size))),
        "reduce gives its sum to one rank only and leaves meaningless values on the "
        "others: every rank needs its own shard",
    )
    what = "all parameters, laid side by side, after one step of SGD"
    names = wrong_steps(seed, inputs, before, after, rank, world_size)
    expect.close(found, after, what, mistaken=names)
    expect.same_on_all_ranks(found, what)


def check_fewer_numbers_than_ranks(exercise, rank, world_size):
    """The step is right even if the last ranks hold only padding."""
    start = torch.tensor([0.5, -2.0], dtype=torch.float64)
    alone, mine = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    optimizer = exercise.ShardedOptimizer([mine], OPTIMIZERS["AdamW"])
    reference = OPTIMIZERS["AdamW"]([alone])
    for step in (1.0, 2.0):
        mine.grad = step * (rank + start)
        alone.grad = step * ((world_size - 1) / 2 + start)
        optimizer.step()
        reference.step()
    expect.close(
        mine, alone.detach(), "a parameter of 2 numbers after 2 steps of AdamW"
    )


@pytest.mark.ranks(3, 4)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """Three steps of SGD and of AdamW give the weights of one process."""
    for name, make in OPTIMIZERS.items():
        inputs = batches(seed, world_size)
        network, _ = trained(exercise, seed, make, inputs, rank)
        expected = trained_alone(seed, make, inputs)
        added = dict(trained_alone(seed, make, inputs, False).named_parameters())
        for (key, a), b in zip(
            network.named_parameters(), expected.parameters(), strict=True
        ):
            names = {
                "what gradients that add up from step to step lead to: step must "
                "replace self.shard.grad": added[key].detach()
            }
            if torch.equal(added[key], b):
                names = {}
            what = f"{key} after 3 steps of {name}"
            expect.close(a.detach(), b.detach(), what, mistaken=names)
    check_fewer_numbers_than_ranks(exercise, rank, world_size)


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
        f"{numel} parameters needs {2 * numel}: a whole state on "
        "every rank saves nothing",
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
    gives_all = (
        "all_reduce",
        "all_gather",
        "all_gather_into_tensor",
        "broadcast",
        "gather",
    )
    rows = [row for row in ledger.rows if row.op in gives_all]
    large = [row.op for row in rows if row.elements > optimizer.numel]
    expected = flat(trained_alone(seed, make, inputs).parameters())
    expect.close(flat(network.parameters()), expected, "the parameters after a step")
    expect.right_way(
        not large,
        f"the gradients went through an {', '.join(large)}, which gives every rank all "
        "of them. This rank needs its own shard: a reduce-scatter sends half as much, "
        "or less",
    )
    dist.barrier()


@pytest.mark.ranks(3)
def test_parameters_in_float32(exercise, rank, world_size, seed):
    """A model in float32, as most are, takes the step of one process, too."""
    mine, alone = Network(seed).float(), Network(seed).float()
    inputs, make = batches(seed, world_size, 1)[0].float(), OPTIMIZERS["SGD"]
    optimizer = exercise.ShardedOptimizer(mine.parameters(), make)
    loss_of(mine(inputs[rank])).backward()
    optimizer.step()
    theirs = make([p for p in alone.parameters() if p.requires_grad])
    loss_of(alone(inputs.flatten(0, 1))).backward()
    alone.unused.grad = torch.zeros_like(alone.unused)
    theirs.step()
    found, right = flat(mine.parameters()), flat(alone.parameters())
    what = "all parameters in float32, after one step of SGD"
    expect.close(found, right, what, atol=1e-5, rtol=1e-5)
