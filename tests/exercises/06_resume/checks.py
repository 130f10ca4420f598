"""Checks of exercises/06_resume.py."""

import copy

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from workshop.grader import expect, loaders, races

SAMPLES, BATCH_SIZE = 41, 3  # no world size divides them


class CountedDataset(Dataset):
    """Vectors with a label; counts how many were read."""

    def __init__(self):
        data = torch.Generator().manual_seed(5)
        self.x = torch.randn(SAMPLES, 6, dtype=torch.float64, generator=data)
        self.labels = torch.randint(3, (SAMPLES,), generator=data)
        self.read = 0

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        if isinstance(index, (slice, list, tuple)):
            raise TypeError(
                f"a dataset gives one sample for a number, none for {index}"
            )
        self.read += 1
        return self.x[index], self.labels[index], index


class Fading(nn.Module):
    """Multiplies by less in every step; how far it is, is in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(1.0, dtype=torch.float64))

    def forward(self, x):
        self.factor *= 0.9
        return x * self.factor


def new_training(exercise, seed, rank, optimizer="SGD", dropout=0.4, gamma=0.7):
    """Training state as a new process builds it; ``seed`` determines all of it."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(6, 7), nn.Tanh(), nn.Dropout(dropout), nn.Linear(7, 3), Fading()
    ).double()
    if optimizer == "SGD":
        chosen = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    else:
        chosen = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(chosen, step_size=4, gamma=gamma)
    torch.manual_seed(seed * 100 + rank)  # each rank drops other features
    return exercise.Training(model, chosen, scheduler, CountedDataset(), BATCH_SIZE)


def train(exercise, training, steps, save_after=(), path=None):
    """Take this many steps, across the ends of epochs.

    The gradients are averaged parameter by parameter, not by DDP: a new DDP object
    adds up its first step in another order than its later ones, which alone would
    change the last bit.
    """
    taken = 0
    while taken < steps:
        at_start = taken
        loader = exercise.batches_to_come(training)
        for x, labels, _ in loaders.batches(loader, 3, "what batches_to_come returns"):
            training.optimizer.zero_grad()
            F.cross_entropy(training.model(x), labels).backward()
            for parameter in training.model.parameters():
                dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
            training.optimizer.step()
            training.scheduler.step()
            training.steps_run += 1
            taken += 1
            if taken in save_after:
                before = copy.deepcopy(training.model.state_dict())
                exercise.save_snapshot(path, training)
                for key, value in training.model.state_dict().items():
                    expect.unchanged(value, before[key], f"{key} of the model it saved")
                training.numbers = torch.get_rng_state()  # as they were saved
                training.place = (training.epoch, training.steps_run)
                training.kept = memory_of(training)
            if taken == steps:
                return training
        given = taken > at_start or training.steps_run > 0
        expect.that(given, "batches_to_come gave no batch at all")
        training.epoch, training.steps_run = training.epoch + 1, 0
    return training


def memory_of(training):
    """What the next steps depend on besides the weights, in words -> a copy of it."""
    optimizer = training.optimizer.state_dict()
    return {
        "the scheduler, which counts the steps": training.scheduler.last_epoch,
        "the optimizer's learning rate": [g["lr"] for g in optimizer["param_groups"]],
        "what the optimizer remembers, such as its momentum": copy.deepcopy(
            optimizer["state"]
        ),
    }


def not_restored(kept, loaded):
    """What load_snapshot has left as it was in the new process; "" if nothing."""
    for what, value in kept.items():
        try:
            expect.equal(loaded[what], value, what)
        except expect.Mismatch:
            return f"load_snapshot had not restored {what}"
    return ""


def stop_and_resume(exercise, again, path, seed, rank, before, after, **settings):
    """(the run that was never stopped, the one continued, a clause of what it lacks).

    ``again`` is the exercise as a new process has it, which knows of the file alone.
    """
    whole = new_training(exercise, seed, rank, **settings)
    train(exercise, whole, before + after, {before}, path)
    numbers_at_end = torch.get_rng_state()
    continued = new_training(again, seed + 1000, rank, **settings)
    again.load_snapshot(path, continued)
    restored = torch.equal(torch.get_rng_state(), whole.numbers)
    same_place((continued.epoch, continued.steps_run), *whole.place)
    cause = not_restored(whole.kept, memory_of(continued))
    train(again, continued, after)
    if settings.get("dropout") != 0:
        expect.still_training(whole.model, "save_snapshot: the model was")
        expect.still_training(continued.model, "load_snapshot: the model was")
        same_numbers(restored, torch.equal(torch.get_rng_state(), numbers_at_end))
    return whole, continued, cause


def same_place(found, epoch, steps_run):
    """The run continues where it was saved: its end is the next epoch's beginning."""
    expect.that(
        found in ((epoch, steps_run), (epoch + 1, 0)),
        f"after load_snapshot, training.epoch and training.steps_run are {found}: "
        f"they were {(epoch, steps_run)} when save_snapshot was called",
    )


def same_numbers(restored, at_end):
    """Whether this rank has drawn for dropout what it would have drawn unstopped."""
    expect.that(
        restored,
        "after load_snapshot, this rank's random numbers are not those that it had "
        "when save_snapshot returned: its steps with dropout differ",
    )
    expect.that(
        at_end,
        "load_snapshot restored this rank's random numbers, but something has drawn "
        "from them since: a loader does at its start, unless it has its own generator",
    )


def same_training(whole, continued, cause, what):
    found = continued.model.state_dict()
    for key, expected in whole.model.state_dict().items():
        expect.equal(found[key], expected, f"{key}, {what}", cause=cause)
    for name in ("epoch", "steps_run"):
        expect.equal(getattr(continued, name), getattr(whole, name), f"{name}, {what}")
    expect.equal(
        continued.scheduler.get_last_lr(),
        whole.scheduler.get_last_lr(),
        f"the learning rate, {what}",
        cause=cause,
    )


def expected_batches(rank, world_size, epoch, steps_run, left_out=0):
    """The indices of each batch to come, as DistributedSampler orders them.

    ``left_out`` is what goes wrong: so many samples are left out.
    """
    sampler = DistributedSampler(range(SAMPLES), world_size, rank, seed=0)
    sampler.set_epoch(epoch)
    indices = list(sampler)[left_out:]
    batches = [indices[i : i + BATCH_SIZE] for i in range(0, len(indices), BATCH_SIZE)]
    return batches[steps_run:]


def why_other_batches(found, rank, world_size, epoch, steps_run):
    """The clause of the mistake that gives these batches; "" if none does."""
    place = rank, world_size
    mistaken = {
        "the sampler were still in epoch 0: call its set_epoch": expected_batches(
            *place, 0, steps_run
        ),
        "steps_run counted samples: it counts batches": expected_batches(
            *place, epoch, 0, left_out=steps_run
        ),
        "the epoch began from its first batch: leave out steps_run batches": (
            expected_batches(*place, epoch, 0)
        ),
    }
    if found == expected_batches(*place, epoch, steps_run):
        return ""
    causes = [words for words, batches in mistaken.items() if batches == found]
    return "".join(causes[:1])


@pytest.mark.ranks(3, 4, limit=15)
def test_batches_to_come(exercise, rank, world_size, seed):
    """The loader has the batches of this epoch that aren't trained on yet, in order."""
    training = new_training(exercise, seed, rank)
    for epoch, steps_run in ((0, 0), (3, 0), (3, 2), (seed, 4)):
        training.epoch, training.steps_run = epoch, steps_run
        loader = exercise.batches_to_come(training)
        read = loaders.batches(loader, 3, "what batches_to_come returns")
        found = [index.tolist() for _, _, index in read]
        expected = expected_batches(rank, world_size, epoch, steps_run)
        what = f"the batches of epoch {epoch} after {steps_run} steps"
        cause = why_other_batches(found, rank, world_size, epoch, steps_run)
        expect.equal(found, expected, what, cause=cause)


@pytest.mark.ranks(3, 4, limit=15)
def test_rank_0_writes_and_the_others_wait(exercise, rank, seed, shared_dir):
    """Only rank 0 writes, and no rank returns before the file is complete."""
    training = new_training(exercise, seed, rank)
    path = shared_dir / "snapshot.pt"
    races.leave_an_old_file(path, rank)
    with races.slow_writes(shared_dir) as written:
        exercise.save_snapshot(path, training)
    here = rank != 0 or (path.exists() and not races.is_old(path))
    expect.that(here, races.elsewhere(path, written))
    expect.that(
        races.complete(path),
        "save_snapshot returned here before rank 0 had written the file",
    )
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, sorted(written))
    writers = [rank for rank, names in enumerate(everyone) if names]
    expect.that(writers == [0], f"ranks {writers} wrote a file: only rank 0 should")


@pytest.mark.ranks(3, 4, limit=15)
def test_resume_between_epochs(
    exercise, exercise_again, rank, world_size, seed, shared_dir
):
    """After a stop at the end of an epoch, without dropout, every bit is the same."""
    steps = len(expected_batches(rank, world_size, 0, 0))
    for name in ("SGD", "AdamW"):
        path = shared_dir / f"{name}.pt"
        how = {"optimizer": name, "dropout": 0, "gamma": 1}
        both = stop_and_resume(
            exercise, exercise_again, path, seed, rank, steps, 3, **how
        )
        same_training(*both, f"3 steps after the snapshot, {name}")


@pytest.mark.ranks(3, 4, limit=15)
def test_learning_rate_goes_on(exercise, exercise_again, rank, seed, shared_dir):
    """A learning rate that falls with the steps continues to fall from where it was."""
    path = shared_dir / "a.pt"
    both = stop_and_resume(exercise, exercise_again, path, seed, rank, 7, 6, dropout=0)
    same_training(*both, "6 steps after the snapshot, with a scheduler")


@pytest.mark.ranks(3, 4, limit=15)
def test_dropout_goes_on_on_every_rank(
    exercise, exercise_again, rank, seed, shared_dir
):
    """With dropout, in the middle of an epoch, each rank draws its own next numbers."""
    path = shared_dir / "a.pt"
    both = stop_and_resume(exercise, exercise_again, path, seed, rank, 6, 9)
    same_training(*both, "9 steps with dropout after the snapshot")


@pytest.mark.ranks(3, limit=15)
def test_saving_changes_nothing(exercise, rank, seed, shared_dir):
    """A run that saves after every step equals one that never saves."""
    plain = train(exercise, new_training(exercise, seed, rank), 8)
    numbers = torch.rand(3)
    saving = new_training(exercise, seed, rank)
    train(exercise, saving, 8, range(1, 9), shared_dir / "snapshot.pt")
    same_training(plain, saving, "", "in a run that saves after every step")
    expect.equal(torch.rand(3), numbers, "the random numbers after 8 steps")


@pytest.mark.ranks(3, limit=15)
def test_nothing_is_read_to_be_left_out(exercise, rank, world_size, seed):
    """What was already trained on is skipped without reading it again."""
    training = new_training(exercise, seed, rank)
    training.steps_run = 3
    left = sum(len(b) for b in expected_batches(rank, world_size, 0, 3))
    loader = exercise.batches_to_come(training)
    found = sum(len(batch[-1]) for batch in loader)
    expect.equal(found, left, "the number of samples to come after 3 steps")
    expect.right_way(
        training.dataset.read == left,
        f"{training.dataset.read} samples were read for the {left} to come: "
        "leave out indices, not data",
    )
    told = f"batches_to_come returned {type(loader).__name__}, expected DataLoader"
    expect.that(isinstance(loader, DataLoader), told)
