"""Checks of exercises/12_split_network.py."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

# world size -> pairs of ranks (first layers, last layers); who is in none looks on
PAIRS = {3: [(2, 0)], 4: [(0, 1), (3, 2)]}
NOTHING_BACK = (
    "zeros came back for the activations, as for a received tensor that does not "
    "require a gradient"
)
OF_AGAIN = (
    "that of a second forward, in which dropout drops other numbers than in the one "
    "that was sent: run the layers once"
)
DROPOUT_CUT = 3  # behind a dropout, and before another one
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
}


def network(seed):
    """Layers that are not square, with biases; [B, 2, 3] to [B, 4]."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(6, 10),
        nn.Tanh(),
        nn.Unflatten(1, (2, 5)),
        nn.Linear(5, 7),
        nn.Sigmoid(),
        nn.Flatten(),
        nn.Linear(14, 4),
    ).double()


def batch(seed, size=5):
    generator = torch.Generator().manual_seed(seed + 900)
    images = torch.randn(size, 2, 3, generator=generator, dtype=torch.float64)
    return images, torch.randint(4, (size,), generator=generator)


def pair_of(rank, world_size):
    """The pair of this rank, or None."""
    pairs = [pair for pair in PAIRS[world_size] if rank in pair]
    return pairs[0] if pairs else None


def run(exercise, rank, pair, model, cut, images, labels):
    """(this rank's part, what the function returned)."""
    first, second = pair
    if rank == first:
        part = model[:cut]
        return part, exercise.run_first(part, images, second)
    part, shape = model[cut:], tuple(network(0)[:cut](images.detach()).shape[1:])
    return part, exercise.run_second(part, labels, shape, first)


def whole(model, images, labels):
    """(loss, gradient of each parameter) in one process."""
    alone = copy.deepcopy(model)
    loss = F.cross_entropy(alone(images), labels)
    loss.backward()
    return loss, {k: p.grad for k, p in alone.named_parameters()}


def compare(part, gradients, label, alone=None, again=None, others=()):
    """``alone``, ``again``, ``others``: the gradients of mistakes, see below."""
    for name, parameter in part.named_parameters():
        what = f"the gradient of {name} {label}"
        expect.that(parameter.grad is not None, f"{what} is None")
        mistaken = {f"zero: {NOTHING_BACK}": 0 * gradients[name]}
        if alone and name in alone:
            of_sum = (
                "that of the activations' sum: pass backward() the gradient received"
            )
            mistaken[of_sum] = alone[name]
        if again:
            mistaken[OF_AGAIN] = again[name]
        mistaken |= {words: of_other[name] for words, of_other in dict(others).items()}
        expect.close(parameter.grad, gradients[name], what, mistaken=mistaken)


def of_the_sum(layers, images):
    """The gradients of the sum of what ``layers`` gives, without any other layer."""
    layers = copy.deepcopy(layers)
    layers(images).sum().backward()
    return {name: parameter.grad for name, parameter in layers.named_parameters()}


def by_what_came_back(model, cut, images, labels):
    """The first part's gradients, if something else than the right one comes back."""
    first, last = copy.deepcopy(model[:cut]), copy.deepcopy(model[cut:])
    hidden = first(images)
    inputs = hidden.detach().requires_grad_()
    loss = F.cross_entropy(last(inputs), labels)
    right = torch.autograd.grad(loss, inputs)[0]
    named = dict(first.named_parameters())
    came_back = {
        "the activations themselves, not their gradient": inputs.detach(),
        "the gradient times the activations": right * inputs.detach(),
        "the activations minus their gradient": inputs.detach() - right,
        "the gradient with the other sign": -right,
        "the gradient of the sum of the images' losses": right * len(images),
        "the gradient of the loss, squared": 2 * loss.detach() * right,
    }
    found = {}
    for words, gradient in came_back.items():
        kept = torch.autograd.grad(hidden, [*named.values()], gradient, True)
        clause = f"what it would be if what comes back were {words}"
        found[clause] = dict(zip(named, kept, strict=True))
    return found


@pytest.mark.ranks(3, 4)
def test_loss_and_gradients(exercise, rank, world_size, seed):
    """The loss and all gradients are those of the network in one process."""
    if not (pair := pair_of(rank, world_size)):
        return
    model = network(seed + pair[0])
    images, labels = batch(seed + pair[0])
    loss, gradients = whole(model, images, labels)
    alone, others = None, {}
    if rank == pair[0]:
        alone = of_the_sum(model[:3], images)
        others = by_what_came_back(model, 3, images, labels)
    part, returned = run(exercise, rank, pair, model, 3, images, labels)
    if rank == pair[1]:
        size = len(images)
        of_losses = {
            "the sum of the images' losses, not their mean": loss * size,
            "the mean, divided once more by the number of images": loss / size,
        }
        what = "the loss that run_second returns"
        expect.close(returned, loss, what, mistaken=of_losses)
    expect.still_training(part, "the layers are")
    label = f"in the {'first' if rank == pair[0] else 'second'} part"
    compare(part, gradients, label, alone, others=others)


@pytest.mark.ranks(4)
def test_every_cut(exercise, rank, world_size, seed):
    """Wherever you cut the network, and for batches of two to seven images."""
    pair = pair_of(rank, world_size)
    for cut in range(2, 8):
        model = network(seed + cut)
        images, labels = batch(seed + cut, size=cut)
        _, gradients = whole(model, images, labels)
        part, _ = run(exercise, rank, pair, model, cut, images, labels)
        compare(part, gradients, f"(cut before layer {cut})")


@pytest.mark.ranks(3)
def test_three_steps(exercise, rank, world_size, seed):
    """Each rank steps its own optimizer, and the weights are the same."""
    if not (pair := pair_of(rank, world_size)):
        return
    for name, make in OPTIMIZERS.items():
        model, alone = network(seed), network(seed)
        mine = make((model[:5] if rank == pair[0] else model[5:]).parameters())
        theirs = make(alone.parameters())
        for step in range(3):
            images, labels = batch(seed + step)
            mine.zero_grad()
            run(exercise, rank, pair, model, 5, images, labels)
            mine.step()
            theirs.zero_grad()
            F.cross_entropy(alone(images), labels).backward()
            theirs.step()
        own = model[:5] if rank == pair[0] else model[5:]
        expected = dict(alone.named_parameters())
        for key, parameter in own.named_parameters():
            expect.close(parameter, expected[key], f"{key} after 3 steps, {name}")


def with_dropout(seed):
    """[B, 2, 3] to [B, 4], with a dropout on both sides of the cut."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(6, 10),
        nn.Dropout(0.5),
        nn.Dropout(0.2),
        nn.Linear(10, 7),
        nn.Tanh(),
        nn.Linear(7, 4),
    ).double()


@pytest.mark.ranks(4)
def test_dropout_on_both_sides(exercise, rank, world_size, seed):
    """With dropout beside the cut: backward goes through what forward has dropped."""
    pair = pair_of(rank, world_size)
    model = with_dropout(seed)
    images, labels = batch(seed, size=6)
    first, last = copy.deepcopy(model[:DROPOUT_CUT]), copy.deepcopy(model[DROPOUT_CUT:])
    torch.manual_seed(seed + 70)
    hidden, once_more = first(images), first(images)
    inputs = hidden.detach().requires_grad_()
    torch.manual_seed(seed + 71)
    loss = F.cross_entropy(last(inputs), labels)
    of_again = F.cross_entropy(last(inputs), labels)
    loss.backward()
    weights = dict(first.named_parameters())
    again = torch.autograd.grad(once_more, list(weights.values()), inputs.grad)
    hidden.backward(inputs.grad)
    if rank == pair[0]:
        part, whole_part = model[:DROPOUT_CUT], first
        torch.manual_seed(seed + 70)
        exercise.run_first(part, images, pair[1])
    else:
        part, whole_part = model[DROPOUT_CUT:], last
        torch.manual_seed(seed + 71)
        returned = exercise.run_second(part, labels, (10,), pair[0])
        what = "the loss that run_second returns, with dropout"
        expect.close(returned, loss, what, mistaken={OF_AGAIN: of_again})
    gradients = {name: p.grad for name, p in whole_part.named_parameters()}
    others = dict(zip(weights, again, strict=True)) if rank == pair[0] else None
    compare(part, gradients, "with dropout", again=others)


@pytest.mark.ranks(4)
def test_what_travels(exercise, rank, world_size, seed, ledger):
    """Activations are sent one way and their gradient the other, and nothing else."""
    pair = pair_of(rank, world_size)
    images, labels = batch(seed)
    model = network(seed)
    ledger.clear()
    run(exercise, rank, pair, model, 5, images, labels)
    expect.right_way(
        not any("uint8" in row.dtypes for row in ledger.rows),
        "this rank sends or receives pickled objects: send the tensor itself",
    )
    rows = [(row.op, row.numel) for row in ledger.rows]
    size = 5 * 2 * 7  # images x what passes the cut for one
    order = ["send", "recv"] if rank == pair[0] else ["recv", "send"]
    expect.right_way(
        [op for op, _ in rows] == order and {n for _, n in rows} == {size},
        f"calls (name, numbers) of this rank: {rows}; expected are "
        f"{order[0]} and {order[1]} of {size} numbers each",
    )
