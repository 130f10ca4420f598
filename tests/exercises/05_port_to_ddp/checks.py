"""Checks of exercises/05_port_to_ddp.py."""

import copy
import os
from urllib.parse import parse_qs, urlparse

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset, DistributedSampler

from workshop.grader import expect, loaders

OPTIMIZERS = {  # *p: what torch refuses is the line's fault that passes it
    "SGD": lambda *p: torch.optim.SGD(*p, lr=0.2, momentum=0.9),
    "AdamW": lambda *p: torch.optim.AdamW(*p, lr=0.02),
}
SIZE, BATCH_SIZE, EPOCHS = 22, 3, 2  # neither 3 nor 4 ranks divide 22


class Images(Dataset):
    """22 vectors with labels, the same on all ranks; notes which ones are read."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(SIZE, 6, generator=generator, dtype=torch.float64)
        self.labels = torch.randint(3, (SIZE,), generator=generator)
        self.read = []

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        if isinstance(index, (slice, list, tuple)):
            raise TypeError(f"a dataset gives one image for a number, none for {index}")
        self.read.append(int(index))
        return self.images[index], self.labels[index]


def rendezvous_as_under_spawn():
    """mp.spawn sets no RANK: what init_process_group does then, but by a file."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)
    handlers = dist.rendezvous.__globals__["_rendezvous_handlers"]
    by_file = handlers["env"]

    def env(url, *args, **kwargs):
        given = parse_qs(urlparse(url).query)
        for name in ("rank", "world_size"):
            if name not in given and name.upper() not in os.environ:
                raise ValueError(
                    "Error initializing torch.distributed using env:// rendezvous: "
                    f"environment variable {name.upper()} expected, but not set"
                )
        store, _, _ = next(by_file(url, *args, **kwargs))
        rank = given.get("rank") or [os.environ["RANK"]]
        world_size = given.get("world_size") or [os.environ["WORLD_SIZE"]]
        yield store, int(rank[0]), int(world_size[0])

    handlers["env"] = env


def join(exercise, rank, world_size):
    rendezvous_as_under_spawn()
    exercise.setup(rank, world_size)
    expect.that(dist.is_initialized(), "after setup there must be a process group")


def make_model(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def modes_of(model):
    """Whether the model is in training mode, of each time that it computes."""
    modes = set()
    model.register_forward_pre_hook(lambda module, _: modes.add(module.training))
    return modes


def gathered(value, world_size):
    everyone = [None] * world_size
    dist.all_gather_object(everyone, value)
    return everyone


def train(exercise, rank, world_size, seed, make_optimizer):
    """(the trained model, rank 0's initial one, what each rank read in each epoch)."""
    dataset, model = Images(seed), make_model(seed + rank)
    start = gathered(copy.deepcopy(model).state_dict(), world_size)[0]
    modes = modes_of(model)
    exercise.train(model, dataset, EPOCHS, BATCH_SIZE, make_optimizer)
    expect.that(
        False not in modes,
        "the model was in evaluation mode while it was trained: dropout would be off",
    )
    first = make_model(seed)
    first.load_state_dict(start)
    reads = gathered(dataset.read, world_size)
    lengths = [len(read) for read in reads]
    expect.that(
        len(set(lengths)) == 1 and lengths[0] % EPOCHS == 0,
        f"in {EPOCHS} epochs the ranks read {lengths} images: it must be equally "
        "many on each, in each epoch",
    )
    n = lengths[0] // EPOCHS
    epochs = [[r[e * n : e * n + n] for r in reads] for e in range(EPOCHS)]
    for epoch, of_ranks in enumerate(epochs):
        read = {image for own in of_ranks for image in own}
        unread = sorted(set(range(SIZE)) - read)
        told = f"in epoch {epoch} of train, no rank reads the images {unread}"
        if n * world_size >= SIZE:  # others are read by two ranks
            told += ": do all ranks call set_epoch with the same number?"
        expect.that(not unread, told)
    return model, first, epochs


def reference(model, dataset, epochs, make_optimizer, factor=1.0, adds_up=False):
    """One process: each step takes the batches of all ``epochs[e][rank]`` as one.

    ``factor`` of the loss and ``adds_up``, without zero_grad, are what goes wrong.
    """
    optimizer = make_optimizer(model.parameters())
    for reads in epochs:
        for first in range(0, len(reads[0]), BATCH_SIZE):
            batch = [i for read in reads for i in read[first : first + BATCH_SIZE]]
            if not adds_up:
                optimizer.zero_grad()
            scores = model(dataset.images[batch])
            loss = F.cross_entropy(scores, dataset.labels[batch])
            (loss * factor).backward()
            optimizer.step()
    return model


def wrong_steps(start, epochs, make_optimizer, seed, world_size):
    """What comes of a mistake in the steps, in words -> the model."""
    mistakes = {
        "that of steps divided by world_size once more: DDP averages the gradients "
        "already": {"factor": 1 / world_size},
        "that of steps world_size times too large: DDP averages the gradients, and the "
        "learning rate stays": {"factor": world_size},
        "that of gradients added to those of the steps before: call zero_grad in "
        "every step": {"adds_up": True},
    }
    dataset = Images(seed)
    return {
        words: reference(
            copy.deepcopy(start), dataset, epochs, make_optimizer, **options
        )
        for words, options in mistakes.items()
    }


@pytest.mark.ranks(3, 4, init=False)
def test_setup(exercise, rank, world_size):
    """setup joins the process group, with the rank and world size it was given."""
    join(exercise, rank, world_size)
    expect.equal(dist.get_rank(), rank, "the rank in the group")
    expect.equal(dist.get_world_size(), world_size, "the world size of the group")


@pytest.mark.ranks(3, 4, init=False)
def test_shares(exercise, rank, world_size, seed):
    """Together the ranks read all images, and all shares are equally large."""
    join(exercise, rank, world_size)
    dataset = Images(seed)
    loader = exercise.make_loader(dataset, BATCH_SIZE)
    expect.that(loader is not None, "make_loader returned None: is a `return` missing?")
    read = loaders.batches(loader, 2, "what make_loader returns")
    sizes = [len(labels) for _, labels in read]
    per_rank = -(-SIZE // world_size)
    share = (
        f"images of {SIZE} that this rank reads in an epoch, with {world_size} ranks"
    )
    expect.equal(len(dataset.read), per_rank, f"the number of {share}")
    reads = gathered(dataset.read, world_size)
    missing = set(range(SIZE)) - {i for read in reads for i in read}
    expect.equal(sorted(missing), [], "images that no rank reads")
    expect.equal(sizes[0], BATCH_SIZE, "images in a batch of this rank")
    expect.that(dataset.read != sorted(dataset.read), "the images are not shuffled")
    sampler = DistributedSampler(dataset, world_size, rank, seed=exercise.SEED)
    expect.that(
        dataset.read == list(sampler),
        "the images are in another order than that of a DistributedSampler with "
        "seed=SEED in epoch 0",
    )


@pytest.mark.ranks(3, 4, init=False)
def test_trains_as_one_process(exercise, rank, world_size, seed):
    """The weights of every rank equal those of one process with the global batches."""
    join(exercise, rank, world_size)
    for name, make_optimizer in OPTIMIZERS.items():
        model, start, epochs = train(exercise, rank, world_size, seed, make_optimizer)
        own = [[reads[rank]] for reads in epochs]
        dataset = Images(seed)
        alone = reference(copy.deepcopy(start), dataset, own, make_optimizer)
        wrong = wrong_steps(start, epochs, make_optimizer, seed, world_size)
        expected = reference(start, dataset, epochs, make_optimizer)
        apart = reference(make_model(seed + rank), dataset, own, make_optimizer)
        for (key, a), b, c, d, e in zip(
            model.named_parameters(),
            expected.parameters(),
            alone.parameters(),
            apart.parameters(),
            make_model(seed + rank).parameters(),
            strict=True,
        ):
            what = f"{key} after {EPOCHS} epochs, {name}"
            mistaken = {
                "that of a model which this rank trains for itself": d,
                "what it was before: train the model that is passed, no copy of it, "
                "and step while .grad holds its gradients": e,
            }
            for words, other in wrong.items():
                mistaken[words] = other.get_parameter(key)
            expect.close(a, b, what, local=c, mistaken=mistaken)


@pytest.mark.ranks(3, init=False)
def test_order_of_each_epoch(exercise, rank, world_size, seed):
    """Every epoch has its own order."""
    join(exercise, rank, world_size)
    _, _, epochs = train(exercise, rank, world_size, seed, OPTIMIZERS["SGD"])
    expect.that(
        epochs[0][rank] != epochs[1][rank],
        f"both epochs read {epochs[0][rank]} in this order: who tells the sampler "
        "which epoch it is, and before the loop over the batches begins?",
    )


@pytest.mark.ranks(3, init=False)
def test_gradients_travel_in_backward(exercise, rank, world_size, seed, ledger):
    """DDP averages: a few all_reduce calls per step, none by hand."""
    join(exercise, rank, world_size)
    dataset = Images(seed)
    exercise.train(make_model(seed), dataset, 1, BATCH_SIZE)
    steps = -(-len(dataset.read) // BATCH_SIZE)
    calls = ledger.count("all_reduce")
    # one for the only bucket; join() makes one more per step, and one at the end
    expect.right_way(
        calls <= 3 * steps + 2,
        f"{calls} all_reduce calls in {steps} steps: DDP needs one for each bucket",
    )
