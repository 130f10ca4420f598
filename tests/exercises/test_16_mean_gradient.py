"""Checks of exercises/16_mean_gradient.py."""

import time

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from grader import expect

WIDTH, HIDDEN, BATCH, POSITIONS = 5, 12, 2, 6
GRIDS = {4: [(2, 2)], 6: [(2, 3), (3, 2)]}  # data x tensor
WHOLE = ("scale", "shift", "down_bias")


class Whole(nn.Module):
    """The block in one piece: [B, P, W] -> the same."""

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            numbers = torch.randn(*shape, generator=generator, dtype=torch.float64)
            return nn.Parameter(numbers)

        self.scale, self.shift = draw(WIDTH), draw(WIDTH)
        self.up, self.up_bias = draw(HIDDEN, WIDTH), draw(HIDDEN)
        self.down, self.down_bias = draw(WIDTH, HIDDEN), draw(WIDTH)

    def forward(self, x):
        normal = F.layer_norm(x, (WIDTH,), self.scale, self.shift)
        inside = F.gelu(F.linear(normal, self.up, self.up_bias))
        return x + F.linear(inside, self.down, self.down_bias)


def summed(x, group):
    x = x.clone()
    dist.all_reduce(x, group=group)
    return x


def joined(x, group):
    """All positions of a tensor group, from the share of each."""
    shares = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
    dist.all_gather(shares, x.contiguous(), group=group)
    return torch.cat(shares, 1)


def share(x, group):
    return x.chunk(dist.get_world_size(group), 1)[dist.get_rank(group)].contiguous()


class Enter(torch.autograd.Function):
    """Where what is whole goes into cut layers."""

    @staticmethod
    def forward(context, x, group, sequence_parallel):
        context.how = group, sequence_parallel
        return joined(x, group) if sequence_parallel else x.clone()

    @staticmethod
    def backward(context, gradient):
        group, sequence_parallel = context.how
        gradient = summed(gradient, group)
        return share(gradient, group) if sequence_parallel else gradient, None, None


class Leave(torch.autograd.Function):
    """Where the results of cut layers are added up."""

    @staticmethod
    def forward(context, x, group, sequence_parallel):
        context.how = group, sequence_parallel
        x = summed(x, group)
        return share(x, group) if sequence_parallel else x

    @staticmethod
    def backward(context, gradient):
        group, sequence_parallel = context.how
        if sequence_parallel:
            gradient = joined(gradient, group)
        return gradient.clone(), None, None


class Split(nn.Module):
    """The same block on a rank of a tensor group."""

    def __init__(self, seed, group, sequence_parallel):
        super().__init__()
        self.group, self.sequence_parallel = group, sequence_parallel
        for name, whole in Whole(seed).named_parameters():
            setattr(self, name, nn.Parameter(part_of(name, whole.data, group).clone()))

    def forward(self, x):
        how = self.group, self.sequence_parallel
        x = share(x, self.group) if self.sequence_parallel else x
        normal = F.layer_norm(x, (WIDTH,), self.scale, self.shift)
        entered = Enter.apply(normal, *how)
        inside = F.gelu(F.linear(entered, self.up, self.up_bias))
        left = Leave.apply(F.linear(inside, self.down), *how)
        return x + left + self.down_bias

    def lists(self):
        named = dict(self.named_parameters())
        whole = [named[name] for name in WHOLE]
        return [p for name, p in named.items() if name not in WHOLE], whole


def part_of(name, tensor, group):
    """What a rank of a tensor group holds of a parameter or its gradient."""
    if name in WHOLE:
        return tensor
    dim = 1 if name == "down" else 0
    return tensor.chunk(dist.get_world_size(group), dim)[dist.get_rank(group)]


def batches(seed, count):
    generator = torch.Generator().manual_seed(seed + 5000)
    shape = count, BATCH, POSITIONS, WIDTH
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def prepare(shape, seed, sequence_parallel):
    """The split block after backward, its groups, the gradients of one process."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
    data, tensor = mesh.get_group("data"), mesh.get_group("tensor")
    inputs = batches(seed, shape[0])
    numbers = BATCH * POSITIONS * WIDTH
    alone = Whole(seed)
    (alone(inputs.flatten(0, 1)).square().sum() / numbers / shape[0]).backward()
    split = Split(seed, tensor, sequence_parallel)
    (split(inputs[mesh.get_local_rank("data")]).square().sum() / numbers).backward()
    return split, alone, data, tensor


def mistakes_in(own, data, tensor):
    """What a gradient becomes if it is added up or averaged over other ranks."""
    d, t = dist.get_world_size(data), dist.get_world_size(tensor)
    everywhere = summed(own, None)
    over_data, over_tensor = summed(own, data), summed(own, tensor)
    same = torch.allclose(own, over_tensor / t)  # what is computed from all positions
    own_name = "this rank's own gradient, not averaged with any other"
    if same:
        own_name += ", or the mean over the tensor group alone, which is the same"
    return {
        own_name: own,
        "the sum over the data group, divided by the size of the world": (
            over_data / (d * t)
        ),
        "the sum over all ranks of the world": everywhere,
        "the mean over all ranks of the world": everywhere / (d * t),
        "the mean over the data group, added up over the tensor group": summed(
            over_data / d, tensor
        ),
        "the sum over the data group": over_data,
        "the mean over the data group alone": over_data / d,
        "the sum over the tensor group alone": over_tensor,
        "the mean over the tensor group alone": over_tensor / t,
    }


def compare(exercise, shape, seed, sequence_parallel):
    split, alone, data, tensor = prepare(shape, seed, sequence_parallel)
    own = {name: p.grad.clone() for name, p in split.named_parameters()}
    cut, whole = split.lists()
    if dist.get_rank() == 1:
        time.sleep(0.1)
    exercise.average_gradients(cut, whole, data, tensor, sequence_parallel)
    how = "with" if sequence_parallel else "without"
    for name, parameter in split.named_parameters():
        kind = "whole" if name in WHOLE else "cut"
        expected = part_of(name, dict(alone.named_parameters())[name].grad, tensor)
        expect.close(
            parameter.grad,
            expected,
            f"{name}.grad ({kind}) on {shape[0]} x {shape[1]} ranks {how} sequence "
            "parallelism",
            mistaken=mistakes_in(own[name], data, tensor),
        )


@pytest.mark.ranks(6, 4)
def test_without_sequence_parallelism(exercise, rank, world_size, seed):
    """Each rank of a tensor group has computed the gradients from all positions."""
    for shape in GRIDS[world_size]:
        compare(exercise, shape, seed, False)


@pytest.mark.ranks(6, 4)
def test_with_sequence_parallelism(exercise, rank, world_size, seed):
    """Each rank of a tensor group has normalized its share of the positions."""
    for shape in GRIDS[world_size]:
        compare(exercise, shape, seed, True)


@pytest.mark.ranks(6, 4)
def test_norm_of_all_gradients(exercise, rank, world_size, seed):
    """The norm is that of the gradients of one process, on every rank."""
    for shape in GRIDS[world_size]:
        split, alone, _, tensor = prepare(shape, seed, False)
        for name, parameter in split.named_parameters():
            grad = dict(alone.named_parameters())[name].grad
            parameter.grad = part_of(name, grad, tensor).clone()
        cut, whole = split.lists()
        own = torch.stack([p.grad.square().sum() for p in cut + whole])
        count = len(cut)
        expected = torch.stack([p.grad.square().sum() for p in alone.parameters()])
        if rank == 1:
            time.sleep(0.1)
        found = exercise.gradient_norm(cut, whole, tensor)
        everything = summed(own.sum(), tensor)
        one_world = summed(own[:count].sum(), None) + own[count:].sum()
        expect.close(
            found,
            expected.sum().sqrt(),
            f"the norm on {shape[0]} x {shape[1]} ranks",
            local=own.sum().sqrt(),
            mistaken={
                "the norm with the whole parameters counted by each rank of the "
                "tensor group": everything.sqrt(),
                "the norm with the cut parameters added up over the whole "
                "world": one_world.sqrt(),
                "the sum of the squares, without the root": expected.sum(),
                "the norm without the whole parameters": (
                    summed(own[:count].sum(), tensor).sqrt()
                ),
            },
        )
        for name, parameter in split.named_parameters():
            grad = part_of(name, dict(alone.named_parameters())[name].grad, tensor)
            expect.unchanged(parameter.grad, grad, f"{name}.grad after gradient_norm")
