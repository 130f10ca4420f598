"""Checks of exercises/01_resume.py."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from workshop.grader import expect

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


class Training:
    """A float64 network with its optimizer, loader and order of images."""

    def __init__(self, seed, optimizer="SGD", dropout=0.0, shuffle=False):
        torch.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Linear(5, 8),
            nn.BatchNorm1d(8),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(8, 3),
        ).double()
        first, *others = self.model.parameters()
        slow = {"params": others, "lr": 0.03}  # a second group, with its own settings
        self.optimizer = OPTIMIZERS[optimizer]([{"params": [first]}, slow])
        self.generator = torch.Generator().manual_seed(seed)
        data = torch.Generator().manual_seed(5)
        images = torch.randn(22, 5, dtype=torch.float64, generator=data)
        labels = torch.randint(3, (22,), generator=data)
        self.loader = DataLoader(
            TensorDataset(images, labels), 4, shuffle=shuffle, generator=self.generator
        )

    def train(self, epochs):
        for _ in range(epochs):
            for images, labels in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(images), labels).backward()
                self.optimizer.step()
        return self

    def slow_down(self):
        """The optimizer's settings change while it trains, as a schedule does."""
        for divisor, group in enumerate(self.optimizer.param_groups, start=2):
            group["lr"] /= divisor
        return self

    def parts(self):
        return self.model, self.optimizer, self.generator


def still_its_parameters(training):
    """What the optimizer updates are the parameters of the model."""
    held = {id(p) for g in training.optimizer.param_groups for p in g["params"]}
    expect.that(
        held == {id(p) for p in training.model.parameters()},
        "after load_snapshot the optimizer and the model hold different parameters, so "
        "its steps don't change the model: copy the values into those of the model",
    )


def not_of_the_new_process(loaded, fresh):
    """No tensor that differs in ``fresh`` is still what the new process began with."""
    before = fresh.model.state_dict()
    for key, value in loaded.model.state_dict().items():
        expect.that(
            not torch.equal(value, before[key]),
            f"{key}, after loading, is what the new process had before: load_snapshot "
            "didn't restore it, or it isn't in the file",
        )


def memory_of(training):
    """What the next epochs depend on besides the weights, in words -> a copy of it."""
    optimizer = training.optimizer.state_dict()
    settings = [
        {name: value for name, value in group.items() if name != "params"}
        for group in optimizer["param_groups"]
    ]
    return {
        "the mode of the model": [m.training for m in training.model.modules()],
        "the optimizer's settings, such as its learning rates": settings,
        "what the optimizer remembers, such as its momentum": copy.deepcopy(
            optimizer["state"]
        ),
        "the state of loader_generator, the object that it is given": (
            training.generator.get_state()
        ),
        "the state of torch's global random numbers": torch.get_rng_state(),
    }


def first_difference(found, right):
    """The words of the first thing that differs; "" if none does."""
    for what, value in right.items():
        try:
            expect.equal(found[what], value, what)
        except expect.Mismatch:
            return what
    return ""


def not_restored(saved, loaded):
    """What load_snapshot has left as it was in the new process; "" if nothing."""
    what = first_difference(loaded, saved)
    return what and f"load_snapshot had not restored {what}"


def changed(before, after):
    """What save_snapshot has changed in the running job; "" if nothing."""
    what = first_difference(after, before)
    return what and f"save_snapshot had changed what the running job uses: {what}"


def stop_and_resume(exercise, again, path, seed, **settings):
    """Train 2 epochs, save, train on to 4; and continue the same from the file.

    ``again`` is the exercise as a new process has it, which knows of the file alone.

    Returns the run that was never stopped, the continued one, and the clause of what
    the continued one doesn't have.
    """
    whole = Training(seed, **settings).train(1).slow_down().train(1)
    saved = memory_of(whole)
    exercise.save_snapshot(path, *whole.parts(), 2)
    of_saving = changed(saved, memory_of(whole))
    expect.still_training(whole.model, "save_snapshot")
    expect.that(path.is_file(), "save_snapshot must write the file path")
    moved = path.rename(path.with_name(f"moved_{path.name}"))  # nothing moves with it
    whole.train(2)
    continued = Training(seed + 1000, **settings)  # a new process: all is different
    again.load_snapshot(moved, *continued.parts())
    cause = of_saving or not_restored(saved, memory_of(continued))
    still_its_parameters(continued)
    continued.train(2)
    return whole, continued, cause


def same_weights(whole, continued, what, cause=""):
    found = continued.model.state_dict()
    for key, expected in whole.model.state_dict().items():
        expect.equal(found[key], expected, f"{key}, {what}", cause=cause)


@pytest.mark.ranks(1, init=False)
def test_weights_and_epoch_come_back(exercise, exercise_again, shared_dir, seed):
    """A new process restores the weights and the epochs from the file alone."""
    saved, loaded = Training(seed).train(1), Training(seed + 1000)
    (shared_dir / "runs").mkdir()
    path, later = shared_dir / "runs" / "first.newest", shared_dir / "later.pt"
    exercise.save_snapshot(path, *saved.parts(), 7)
    expect.that(path.is_file(), "save_snapshot must write the file path")
    exercise.save_snapshot(later, *Training(seed + 50).parts(), 8)
    epochs_run = exercise_again.load_snapshot(path, *loaded.parts())
    not_of_the_new_process(loaded, Training(seed + 1000))
    same_weights(saved, loaded, "after loading")
    expect.number(epochs_run, 7, "the number of epochs that load_snapshot returns")


@pytest.mark.ranks(1, init=False)
def test_file_is_read_without_running_code(exercise, shared_dir, seed):
    """torch.load(path, weights_only=True) reads the file."""
    exercise.save_snapshot(shared_dir / "snapshot.pt", *Training(seed).parts(), 1)
    try:
        torch.load(shared_dir / "snapshot.pt", weights_only=True)
    except Exception:
        expect.that(
            False,
            "torch.load(path, weights_only=True) refuses the file: it holds an object "
            "that is not a tensor, number, string, list or dict (whole modules, say)",
        )


@pytest.mark.ranks(1, init=False)
def test_optimizer_goes_on(exercise, exercise_again, shared_dir, seed):
    """Without dropout or shuffling, the resumed run equals the uninterrupted one."""
    for name in OPTIMIZERS:
        whole, continued, cause = stop_and_resume(
            exercise, exercise_again, shared_dir / f"{name}.pt", seed, optimizer=name
        )
        what = f"2 epochs after the snapshot, {name}"
        same_weights(whole, continued, what, cause)


@pytest.mark.ranks(1, init=False)
def test_order_of_images_goes_on(exercise, exercise_again, shared_dir, seed):
    """With a loader that shuffles, the resumed run sees the same order of images."""
    whole, continued, cause = stop_and_resume(
        exercise, exercise_again, shared_dir / "shuffled.pt", seed, shuffle=True
    )
    same_weights(whole, continued, "2 shuffled epochs after the snapshot", cause)


@pytest.mark.ranks(1, init=False)
def test_dropout_goes_on(exercise, exercise_again, shared_dir, seed):
    """With dropout, shuffling and AdamW, the resumed run still matches bit for bit."""
    whole, continued, cause = stop_and_resume(
        exercise,
        exercise_again,
        shared_dir / "snapshot.pt",
        seed,
        optimizer="AdamW",
        dropout=0.3,
        shuffle=True,
    )
    what = "2 epochs with dropout after the snapshot"
    same_weights(whole, continued, what, cause)


@pytest.mark.ranks(1, init=False)
def test_saving_changes_nothing(exercise, exercise_again, shared_dir, seed):
    """A run that saves every epoch equals one that never saves; the last one counts."""
    plain = Training(seed, dropout=0.3, shuffle=True).train(3)
    saving = Training(seed, dropout=0.3, shuffle=True)
    cause = ""
    for epoch in range(3):
        saving.train(1)
        before = memory_of(saving)
        exercise.save_snapshot(shared_dir / "snapshot.pt", *saving.parts(), epoch + 1)
        cause = cause or changed(before, memory_of(saving))
    same_weights(plain, saving, "in a run that saves every epoch", cause)
    loaded = Training(seed + 1000)
    parts = loaded.parts()
    epochs_run = exercise_again.load_snapshot(shared_dir / "snapshot.pt", *parts)
    which = "from a file that was saved 3 times"
    expect.number(epochs_run, 3, f"the epochs {which}")
    same_weights(saving, loaded, which)
