"""What src/12_model_parallel.py and docs/lessons/12_model_parallel do in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence that is tried out. test_12_model_parallel_claims.py has them run.
"""

import copy
import sys
from argparse import Namespace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.parallel import DistributedDataParallel as DDP

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.cost.measure import count_step
from common.data import load_digits_split, make_model

two_processes = import_module("12_two_processes")
FirstPart = two_processes.FirstPart
SecondPart = two_processes.SecondPart
shape_at_cut = two_processes.shape_at_cut
TwoDevices = import_module("12_model_parallel").TwoDevices
formulas = import_module("instruments.12_cost").formulas

CPU = torch.device("cpu")


def uneven_network():
    """Float64, layers that are not square, with biases: [B, 7] to [B, 3]."""
    widths = [7, 5, 9, 4, 3]
    layers = []
    for wide, out in pairwise(widths):
        layers += [nn.Linear(wide, out), nn.Tanh()]
    return nn.Sequential(*layers[:-1]).double()


def networks(seed):
    """(network, one image's shape, images, labels): the digits', and an uneven one."""
    generator = torch.Generator().manual_seed(seed)
    for make, shape, classes in (
        (lambda: make_model().double(), (1, 8, 8), 10),
        (uneven_network, (7,), 3),
    ):
        torch.manual_seed(seed)
        images = torch.randn(11, *shape, generator=generator, dtype=torch.float64)
        yield make(), shape, images, torch.randint(classes, (11,), generator=generator)


def on_one_device(model, images, labels):
    """(loss, gradient of the images, gradients by name) of the whole network."""
    alone, images = copy.deepcopy(model), images.clone().requires_grad_()
    loss = F.cross_entropy(alone(images), labels)
    loss.backward()
    return loss, images.grad, {k: p.grad for k, p in alone.named_parameters()}


@pytest.mark.ranks(2, limit=30)
def test_two_processes_equal_one_device(rank, seed):
    """Loss, input gradient and weight gradients equal those of one device wherever
    the network is cut, with 1, 3 and 4 micro-batches, the last of which is smaller."""
    for model, shape, images, labels in networks(seed):
        loss, image_gradient, gradients = on_one_device(model, images, labels)
        for cut in range(1, len(model)):
            for micro_batches in (1, 3, 4):
                parts = copy.deepcopy(model)
                given = images.clone().requires_grad_()
                if rank == 0:
                    part = FirstPart(parts[:cut], CPU)
                else:
                    at_cut = shape_at_cut(parts, cut, torch.Size(shape))
                    part = SecondPart(parts[cut:], CPU, at_cut)
                found = part.run_batch(given, labels, micro_batches)
                where = f"cut after {cut}, {micro_batches} micro-batches"
                if rank == 0:
                    expect.close(given.grad, image_gradient, f"input gradient, {where}")
                else:
                    expect.close(found, loss, f"loss, {where}")
                mine = dict(part.layers.named_parameters())
                expect.that(set(mine) < set(gradients), "a part has names of the whole")
                for name, parameter in mine.items():
                    expect.close(parameter.grad, gradients[name], f"{name}, {where}")


@pytest.mark.ranks(2, limit=30)
def test_two_processes_step_like_one_device(rank, seed):
    """After three steps of SGD and of AdamW the weights are those of one device."""
    for model, shape, images, labels in networks(seed):
        for make in (
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            lambda p: torch.optim.AdamW(p, lr=0.02),
        ):
            alone, parts = copy.deepcopy(model), copy.deepcopy(model)
            if rank == 0:
                part = FirstPart(parts[:2], CPU)
            else:
                at_cut = shape_at_cut(parts, 2, torch.Size(shape))
                part = SecondPart(parts[2:], CPU, at_cut)
            mine, theirs = make(part.layers.parameters()), make(alone.parameters())
            for _ in range(3):
                mine.zero_grad()
                part.run_batch(images, labels, 3)
                mine.step()
                theirs.zero_grad()
                F.cross_entropy(alone(images), labels).backward()
                theirs.step()
            expected = dict(alone.named_parameters())
            for name, parameter in part.layers.named_parameters():
                expect.close(parameter, expected[name], f"{name} after three steps")


@pytest.mark.ranks(1)
def test_one_process_equals_one_device(seed):
    """The same for two parts in one process."""
    for model, _, images, labels in networks(seed):
        loss, image_gradient, gradients = on_one_device(model, images, labels)
        scores = model(images)
        for cut in range(1, len(model)):
            for micro_batches in (1, 3, 4):
                two = TwoDevices(copy.deepcopy(model), cut, [CPU, CPU])
                two.micro_batches = micro_batches
                given = images.clone().requires_grad_()
                where = f"cut after {cut}, {micro_batches} micro-batches"
                found = two(given)
                expect.close(found, scores, f"scores, {where}")
                mine = F.cross_entropy(found, labels)
                expect.close(mine, loss, f"loss, {where}")
                mine.backward()
                expect.close(given.grad, image_gradient, f"input gradient, {where}")
                for name, parameter in two.named_parameters():
                    name = name.split(".", 1)[1]
                    expect.close(parameter.grad, gradients[name], f"{name}, {where}")


@pytest.mark.ranks(2, 3)
def test_ddp_over_replicas_has_the_gradient_of_the_global_batch(rank, world_size, seed):
    """With device_ids=None the gradients are those of the global batch."""
    for model, shape, _, _ in networks(seed):
        generator = torch.Generator().manual_seed(seed + 1)
        size = 5 * world_size
        images = torch.randn(size, *shape, generator=generator, dtype=torch.float64)
        labels = torch.randint(3, (size,), generator=generator)
        _, _, gradients = on_one_device(model, images, labels)
        two = TwoDevices(copy.deepcopy(model), 2, [CPU, CPU])
        two.micro_batches = 3
        ddp_model = DDP(two, device_ids=None)
        mine = slice(rank, None, world_size)
        F.cross_entropy(ddp_model(images[mine]), labels[mine]).backward()
        for name, parameter in two.named_parameters():
            expected = gradients[name.split(".", 1)[1]]
            expect.close(parameter.grad, expected, f"the gradient of {name}")
        del ddp_model


@pytest.mark.ranks(2, limit=30)
def test_table_is_right_wherever_the_network_is_cut(rank, seed):
    """What is counted on each device equals the formulas, for every cut and number of
    micro-batches."""
    torch.manual_seed(seed)
    model = make_model()
    images, labels = torch.randn(12, 1, 8, 8), torch.randint(10, (12,))
    for cut in range(1, len(model)):
        for micro_batches in (1, 4, 5):
            layers = copy.deepcopy(model)
            if rank == 0:
                part = FirstPart(layers[:cut], CPU)
            else:
                part = SecondPart(layers[cut:], CPU, shape_at_cut(layers, cut))
            optimizer = torch.optim.SGD(part.layers.parameters(), 0.1, momentum=0.9)

            def step(optimizer=optimizer, part=part, micro_batches=micro_batches):
                part.run_batch(images, labels, micro_batches)
                optimizer.step()

            counted = count_step(part.layers, optimizer, step)
            parts = len(images.chunk(micro_batches))
            args = Namespace(cut=cut, batch_size=12, micro_batches=parts)
            where = f"cut after {cut}, {parts} micro-batches"
            expect.equal(counted, formulas(model, rank, args), where)


@pytest.mark.ranks(2)
def test_ddp_refuses_device_ids(rank):
    """``device_ids`` is refused for a model on the CPU, and for one on two devices."""
    two = TwoDevices(make_model(), 5, [CPU, CPU])
    only = "device_ids can only be None or contain a single element"
    expect.raises(ValueError, lambda: DDP(two, device_ids=[0, 1]), words=[only])
    with FakeTensorMode():  # devices that are not there
        on_two = nn.ParameterList(
            nn.Parameter(torch.empty(2, device=f"cuda:{number}")) for number in (0, 1)
        )
    for model in (two, on_two):
        words = ["device_ids and output_device arguments only work with"]
        expect.raises(ValueError, lambda m=model: DDP(m, device_ids=[0]), words=words)
    dist.barrier()


def train_from(rank, seeds):
    """The loss of the last steps, if the ranks draw batches from these seeds."""
    torch.manual_seed(0)
    model = make_model()
    if rank == 0:
        part = FirstPart(model[:5], CPU)
    else:
        part = SecondPart(model[5:], CPU, shape_at_cut(model, 5))
    optimizer = torch.optim.SGD(part.layers.parameters(), 0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(seeds[rank])
    images, labels = load_digits_split()[0][:]
    losses = []
    for _ in range(60):
        batch = torch.randperm(len(labels), generator=generator)[:32]
        optimizer.zero_grad()
        losses.append(float(part.run_batch(images[batch], labels[batch])))
        optimizer.step()
    return sum(losses[-10:]) / 10


@pytest.mark.ranks(2, limit=60)
def test_ranks_that_draw_different_batches_learn_nothing(rank):
    """The loss stays where it was if the labels are those of other images."""
    together, apart = train_from(rank, [5, 5]), train_from(rank, [5, 6])
    if rank == 1:
        expect.that(together < 1, f"with the same batches the loss is {together}")
        expect.that(apart > 2, f"with different batches the loss is {apart}")
