"""Checks of exercises/05_exact_evaluation.py."""

import operator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import Dataset, Subset

from workshop.grader import expect

SIZE = 22  # neither 3 nor 4 ranks divide it


class Images(Dataset):
    """Vectors with labels, the same on all ranks; notes which ones are read."""

    def __init__(self, seed, size=SIZE):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randn(size, 6, generator=generator, dtype=torch.float64)
        self.labels = torch.randint(3, (size,), generator=generator)
        self.read = []

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        if isinstance(index, (slice, list, tuple)):
            raise TypeError(f"a dataset gives one image for a number, none for {index}")
        self.read.append(int(index))
        return self.images[index], self.labels[index]


def make_model(seed):
    """A network with BatchNorm, whose running statistics are buffers."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)).double()
    with torch.no_grad():
        model(3 * torch.randn(50, 6, dtype=torch.float64))
    return model


def truth(seed, dataset):
    """(recognized, all) in one process."""
    predicted = make_model(seed).eval()(dataset.images).argmax(dim=1)
    return int((predicted == dataset.labels).sum()), len(dataset)


def settings(ddp_model):
    """What can be set from outside to say what DDP sends, and when."""
    names = "broadcast_buffers", "require_backward_grad_sync"
    return {name: getattr(ddp_model, name) for name in names}


def miscounted(found, total, batch_size, world_size):
    """The clause for a number of images that a known mistake gives, or ""."""
    sizes = [len(range(rank, total, world_size)) for rank in range(world_size)]
    batches = sum(-(-size // batch_size) for size in sizes)
    mistakes = {
        batches * batch_size: (
            f"each batch had batch_size images, {batch_size}: the last one of a rank "
            "may have fewer"
        ),
        batches: "batches were counted, not images",
        total * world_size: (
            "each image were counted on every rank, or the counts summed twice"
        ),
        max(sizes) * world_size: "images that a sampler repeats were counted, too",
        **dict.fromkeys(
            sizes, "these were the images of one rank: sum the counts of all ranks"
        ),
    }
    is_number = isinstance(found, int) and found != total
    return mistakes.get(found, "") if is_number else ""


def compare(exercise, seed, dataset, batch_size):
    """What evaluate counts, and the truth; returns what this rank has read."""
    correct, total = truth(seed, dataset)
    ddp_model = DDP(make_model(seed))
    before = settings(ddp_model)
    result = exercise.evaluate(ddp_model, dataset, batch_size)
    expect.that(
        isinstance(result, tuple) and len(result) == 2,
        f"evaluate must return (images recognized, images), not {result!r}",
    )
    world_size = dist.get_world_size()
    label = f"of {total} on {world_size} ranks"
    cause = miscounted(result[1], total, batch_size, world_size)
    expect.equal(result[1], total, f"the number of images {label}", cause=cause)
    expect.number(result[1], total, f"the number of images {label}")
    expect.number(result[0], correct, f"the number recognized {label}")
    left = [name for name, part in ddp_model.named_modules() if part.training]
    which = f"; still in training mode: {', '.join(left)}" if all(left) else ""
    expect.that(not left, f"the model must be left in evaluation mode{which}")
    for name, value in settings(ddp_model).items():
        expect.that(
            value == before[name],
            f"evaluate left {name} of DDP as {value}, it was {before[name]}: training "
            "continues with it",
        )


@pytest.mark.ranks(3, 4)
def test_shares(exercise, rank, world_size, seed):
    """Every image is in one share, and in no other."""
    torch.manual_seed(seed + rank)
    before = torch.get_rng_state()
    share = exercise.my_share(Images(seed))
    same = torch.equal(torch.get_rng_state(), before)
    expect.that(share is not None, "my_share returned None: is a `return` missing?")
    kind = type(share).__name__
    is_subset = isinstance(share, Subset)
    expect.that(is_subset, f"my_share returned a {kind}, expected a Subset")
    try:
        mine = [operator.index(i) for i in share.indices]
    except TypeError:
        mine = None
    found = share.indices
    shown = repr(found)
    if len(shown) > 40 or " object at 0x" in shown:
        shown = f"an object of type {type(found).__name__} as its second argument"
    numbers = "expected the numbers of this rank's images"
    expect.that(mine is not None, f"the Subset has {shown}, {numbers}")
    everyone = [None] * world_size
    dist.all_gather_object(everyone, mine)
    everything = sorted(i for indices in everyone for i in indices)
    repeated = sorted({i for i in everything if everything.count(i) > 1})
    expect.that(not repeated, f"images in more than one share: {repeated}")
    missing = sorted(set(range(SIZE)) - set(everything))
    expect.that(not missing, f"images in no share: {missing}")
    sizes = [len(indices) for indices in everyone]
    expect.that(max(sizes) - min(sizes) <= 1, f"unequal shares: {sizes} images")
    expect.right_way(
        same,
        "my_share changed torch's global random numbers: the next epoch would train "
        "with others than without evaluation",
    )


@pytest.mark.ranks(3, 4)
def test_whole_batches(exercise, rank, world_size, seed):
    """One batch on every rank: the numbers of one process."""
    # no number of images is also one of a batch, nor that number on each rank
    compare(exercise, seed, Images(seed), SIZE + 1)
    many = 359  # more than eight bits hold
    compare(exercise, seed, Images(seed, many), many + 1)


@pytest.mark.ranks(3, 4)
def test_unequal_numbers_of_batches(exercise, rank, world_size, seed):
    """With 2 batches on some ranks and 1 on others: the numbers of one process."""
    compare(exercise, seed, Images(seed), SIZE // world_size)


@pytest.mark.ranks(4)
def test_fewer_images_than_ranks(exercise, rank, world_size, seed):
    """A rank without images returns the same numbers, too."""
    dataset = Images(seed, size=2)
    # all are recognized, so a mean over the ranks would show
    dataset.labels = make_model(seed).eval()(dataset.images).argmax(dim=1)
    compare(exercise, seed, dataset, 4)


@pytest.mark.ranks(4)
def test_work_is_shared(exercise, rank, world_size, seed):
    """No rank reads more images than its share."""
    dataset = Images(seed)
    compare(exercise, seed, dataset, 3)
    share = -(-SIZE // world_size)
    expect.right_way(
        len(dataset.read) <= share,
        f"this rank read {len(dataset.read)} images of {SIZE}: its share is at most "
        f"{share}, the others count the rest",
    )
