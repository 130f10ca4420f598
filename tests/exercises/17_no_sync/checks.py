"""Checks of exercises/17_no_sync.py."""

import time

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from workshop.grader import expect

expect.nothing_is_averaged()  # each value says itself what was divided wrongly
COUNTS = 1, 3, 5  # micro-batches
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.02),
}


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 3)).double()


def batches(seed, world_size, count=5, steps=3):
    """[steps, W, count, 2, 4] inputs."""
    generator = torch.Generator().manual_seed(seed + 5000)
    shape = steps, world_size, count, 2, 4
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def loss_of(outputs, targets):
    """Another number if the two are swapped; it is called by the learner's code."""
    for name, value in (("outputs", outputs), ("targets", targets)):
        if not torch.is_tensor(value):
            kind = type(value).__name__
            raise TypeError(f"loss_of got a {kind} for the {name}, expected a tensor")
    if outputs.shape != targets.shape:
        got = f"{list(outputs.shape)} and {list(targets.shape)}"
        raise ValueError(f"loss_of got outputs and targets of shapes {got}")
    return (outputs - 2 * targets).square().mean()


def targets_of(inputs):
    return inputs[..., 1:].sin()


def pairs(inputs):
    """The micro-batches of a rank: [count, 2, 4] -> [(inputs, targets), ...]"""
    return [(one, targets_of(one)) for one in inputs]


def whole_loss(model, inputs, swapped=False):
    """The mean loss of all these inputs [..., 4]."""
    rows = inputs.reshape(-1, 4)
    pair = model(rows), targets_of(rows)
    return loss_of(*(pair[::-1] if swapped else pair))


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def gradient(seed, inputs, swapped=False):
    """Of the mean loss of these inputs [..., 4], in one process."""
    alone = network(seed)
    whole_loss(alone, inputs, swapped).backward()
    return torch.cat([p.grad.flatten() for p in alone.parameters()])


def trained_alone(seed, make, inputs):
    alone = network(seed)
    optimizer = make(alone.parameters())
    for step in inputs:
        optimizer.zero_grad()
        whole_loss(alone, step).backward()
        optimizer.step()
    return flat(alone)


def trained(exercise, seed, make, inputs, rank):
    model = DDP(network(seed))
    optimizer = make(model.parameters())
    for step in inputs:
        if rank == 1:
            time.sleep(0.05)
        exercise.train_step(model, optimizer, pairs(step[rank]), loss_of)
    return flat(model)


@pytest.mark.ranks(3, 4)
def test_one_step(exercise, rank, world_size, seed):
    """One step leaves in .grad the gradient of one large batch."""
    for count in reversed(COUNTS):
        check_step(exercise, rank, seed, batches(seed, world_size, count)[0])


def check_step(exercise, rank, seed, inputs):
    """``inputs`` are those of all ranks, [W, count, 2, 4]."""
    count = inputs.shape[1]
    of = f" of {count} micro-batch{'es' * (count > 1)}"
    model = DDP(network(seed))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    passes = []  # each backward pass through the first weight
    next(model.parameters()).register_hook(lambda gradient: passes.append(1))
    exercise.train_step(model, optimizer, pairs(inputs[rank]), loss_of)
    gradients = [p.grad for p in model.parameters()]
    never = ", and no backward pass ran" * (not passes)
    expect.that(None not in gradients, f"a .grad is None after a step{of}{never}")
    found = torch.cat([one.flatten() for one in gradients])
    right, own = gradient(seed, inputs), inputs[rank]
    own = own if count > 1 else own.repeat(2, 1, 1)  # a mean of no batch is none
    mistaken = mistaken_gradients(seed, inputs, rank, right, own, len(passes))
    expect.close(found, right, f"the gradient{of}", mistaken=mistaken)
    expect.same_on_all_ranks(found, f"the gradient{of}")
    start = flat(network(seed))
    steps = {
        "what they were before: the optimizer took no step": start,
        "what two steps give: the step below the loop is the second": start
        - 0.2 * right,
    }
    what = "the parameters after one step of SGD"
    expect.close(flat(model), start - 0.1 * right, what, mistaken=steps)
    expect.still_training(model, "the model is")
    expect.that(
        model.require_backward_grad_sync,
        f"after a step{of}, DDP no longer reduces: the caller's next backward "
        "pass gives each rank its own gradients",
    )


def mistaken_gradients(seed, inputs, rank, right, own, passes):
    """What :func:`expect.close` calls a gradient after ``passes`` backward passes."""
    world_size, count = inputs.shape[:2]
    parts = [gradient(seed, inputs[:, number]) for number in range(count)]
    last = parts[-1]
    others = "the others were zeroed" if passes > 1 else "the others ran no backward"
    return {
        "the gradient of this rank's own micro-batches: no backward has reduced": (
            gradient(seed, inputs[rank])
        ),
        "the sum over the micro-batches: the loss was not divided by their "
        "number": count * right,
        "the sum over the ranks, not their mean: divide by their number once, which "
        "DDP does": world_size * right,
        "the mean over the ranks divided by their number once more: DDP has divided "
        "by it": right / world_size,
        "the sum over micro-batches divided by the number of ranks, not by that of "
        "micro-batches": count / world_size * right,
        "the gradient of the last micro-batch alone": last,
        f"that of the last micro-batch alone, divided by their number: {others}": (
            last / count
        ),
        "the sum over the micro-batches with only the last loss divided by their "
        "number": sum(parts[:-1], last / count),
        "the mean of the first micro-batch over the ranks, and this rank's own of the "
        "others: what comes after the reduction stays local": (
            gradient(seed, inputs[:, 0]) + (count - 1) * gradient(seed, own[1:])
        )
        / count,
        "that of the outputs and targets swapped: loss_of takes the outputs first": (
            gradient(seed, inputs, swapped=True)
        ),
    }


@pytest.mark.ranks(3, 4)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """Three steps of SGD and of AdamW give the weights of one process."""
    inputs = batches(seed, world_size)
    for name, make in OPTIMIZERS.items():
        found = trained(exercise, seed, make, inputs, rank)
        expected = trained_alone(seed, make, inputs)
        expect.close(found, expected, f"the parameters after 3 steps of {name}")


@pytest.mark.ranks(3, 4)
def test_each_gradient_is_sent_once(exercise, rank, world_size, seed, ledger):
    """A step sends each gradient once, however many micro-batches it has."""
    for count in reversed(COUNTS):
        inputs = batches(seed, world_size, count)
        model = DDP(network(seed))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in inputs[:2]:  # DDP lays out its buckets in the first
            exercise.train_step(model, optimizer, pairs(step[rank]), loss_of)
        ledger.clear()
        exercise.train_step(model, optimizer, pairs(inputs[2, rank]), loss_of)
        sent = sum(row.numel for row in ledger.rows if row.op == "all_reduce")
        total = sum(parameter.numel() for parameter in model.parameters())
        micro = f"{count} micro-batch{'es' * (count > 1)}"
        expect.right_way(
            sent == total,
            f"{sent} numbers were all-reduced in a step of {micro}, and the "
            f"model has {total} gradients: DDP reduces in each backward pass whose "
            "forward pass was outside of no_sync()",
        )


def most_rows_at_once(model):
    """The most rows whose activations were kept at once, in a list of one number.

    A forward pass keeps those of its rows until a backward pass reaches the weights.
    """
    kept, most = [0], [0]

    def forward(module, args):
        if torch.is_grad_enabled():
            kept[0] += len(args[0])
            most[0] = max(most[0], kept[0])

    def backward(gradient):
        kept[0] = 0

    model.register_forward_pre_hook(forward)
    next(model.parameters()).register_hook(backward)
    return most


@pytest.mark.ranks(3)
def test_one_micro_batch_at_a_time(exercise, rank, world_size, seed):
    """Each micro-batch has a forward and a backward pass before the next one begins."""
    inputs = batches(seed, world_size)[0]
    model = DDP(network(seed))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    most = most_rows_at_once(model.module)
    exercise.train_step(model, optimizer, pairs(inputs[rank]), loss_of)
    count, rows = inputs.shape[1:3]
    expect.right_way(
        most[0] <= rows,
        f"the activations of {most[0]} rows were kept at once in a step of {count} "
        f"micro-batches with {rows} rows each: memory has room for one micro-batch, so "
        "call backward() for each before the next one's forward pass",
    )
