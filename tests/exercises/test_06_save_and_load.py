"""Checks of exercises/06_save_and_load.py."""

import time

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from grader import expect

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def make_model(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double()


class Training:
    """A float64 network under DDP, other data on each rank."""

    def __init__(self, model, optimizer, rank, seed):
        self.model, self.optimizer, self.seed = model, optimizer, seed
        self.ddp_model, self.rank, self.steps_run = DDP(model), rank, 0

    def train(self, steps):
        for _ in range(steps):
            number = self.seed * 10_000 + self.steps_run * 10 + self.rank
            data = torch.Generator().manual_seed(number)
            x = torch.randn(6, 5, dtype=torch.float64, generator=data)
            self.optimizer.zero_grad()
            self.ddp_model(x).square().mean().backward()
            self.optimizer.step()
            self.steps_run += 1
        return self

    def parts(self):
        return self.ddp_model, self.optimizer


def new_training(rank, seed, optimizer="SGD"):
    model = make_model(seed)
    return Training(model, OPTIMIZERS[optimizer](model.parameters()), rank, seed)


def same_weights(actual, expected, what, compare=expect.equal):
    for key, value in expected.state_dict().items():
        compare(actual.state_dict()[key], value, f"{key}, {what}")


@pytest.mark.ranks(3, 4, limit=15)
def test_rank_0_writes_and_nobody_else(exercise, rank, world_size, seed, shared_dir):
    """Rank 0 writes its file; no other rank writes one."""
    training = new_training(rank, seed)
    # each rank is told a place of its own, so a rank that writes leaves a file there
    path = shared_dir / f"written_by_rank_{rank}.pt"
    exercise.save_snapshot(path, *training.parts(), 1)
    dist.barrier()
    writers = [path.name for path in sorted(shared_dir.glob("written_by_*"))]
    expect.that("written_by_rank_0.pt" in writers, "rank 0 must write the file path")
    expect.that(
        len(writers) == 1,
        f"{len(writers)} ranks wrote: each a file of its own here, but all over each "
        "other where path is the same for all",
    )


@pytest.mark.ranks(3, limit=15)
def test_file_fits_a_model_without_ddp(exercise, rank, seed, shared_dir):
    """The keys are those of the plain model, and reading the file runs no code."""
    training = new_training(rank, seed)
    exercise.save_snapshot(shared_dir / "snapshot.pt", *training.parts(), 1)
    dist.barrier()
    try:
        snapshot = torch.load(shared_dir / "snapshot.pt", weights_only=True)
    except Exception:
        expect.that(
            False,
            "torch.load(path, weights_only=True) refuses the file: it holds an object "
            "that is not a tensor, number, string, list or dict (whole modules, say)",
        )
    expect.equal(
        sorted(snapshot), ["epochs_run", "model", "optimizer"], "the file's keys"
    )
    keys = list(training.model.state_dict())
    expect.equal(list(snapshot["model"]), keys, "the keys of the saved model")


@pytest.mark.ranks(3, 4, limit=15)
def test_file_is_there_when_the_ranks_go_on(exercise, rank, seed, shared_dir):
    """Nobody returns from save_snapshot before rank 0, slow here, has written."""
    training = new_training(rank, seed)
    path = shared_dir / "snapshot.pt"
    if rank == 0:  # its weights take a moment to collect
        training.model.register_state_dict_pre_hook(lambda *_: time.sleep(0.3))
    exercise.save_snapshot(path, *training.parts(), 1)
    expect.that(
        path.is_file(),
        "save_snapshot returned here before rank 0 had written the file: "
        "who loads it now finds none, or an old one",
    )
    dist.barrier()


@pytest.mark.ranks(3, 4, limit=15)
def test_every_rank_loads_the_newest(exercise, rank, seed, shared_dir):
    """Of two saves to the same file, every rank loads the second, epoch included."""
    training = new_training(rank, seed)
    path = shared_dir / "snapshot.pt"
    for epochs_run in (6, 7):
        training.train(2)
        exercise.save_snapshot(path, *training.parts(), epochs_run)
    loaded = make_model(seed + 100 + rank)
    optimizer = OPTIMIZERS["SGD"](loaded.parameters())
    epochs_run = exercise.load_snapshot(path, loaded, optimizer)
    same_weights(loaded, training.model, "after loading")
    expect.equal(epochs_run, 7, "the number of epochs that load_snapshot returns")


@pytest.mark.ranks(3, 4, limit=15)
def test_training_goes_on(exercise, rank, seed, shared_dir):
    """A loaded training takes the same next steps as the one that was saved."""
    for name in OPTIMIZERS:
        whole = new_training(rank, seed, name).train(3)
        path = shared_dir / f"{name}.pt"
        exercise.save_snapshot(path, *whole.parts(), 1)
        whole.train(3)
        model = make_model(seed + 100 + rank)
        optimizer = OPTIMIZERS[name](model.parameters())
        exercise.load_snapshot(path, model, optimizer)
        continued = Training(model, optimizer, rank, seed)
        continued.steps_run = 3
        continued.train(3)
        # not bit for bit: a new DDP sums its first step in another order
        same_weights(model, whole.model, f"3 steps after loading, {name}", expect.close)


@pytest.mark.ranks(3, limit=15)
def test_a_file_of_a_machine_with_gpus(exercise, rank, seed, shared_dir):
    """A snapshot written on a GPU is read on this machine, which may have none."""
    # what torch.save asks: where does this tensor live? As on a machine with a GPU
    home = ["cuda:7"]
    torch.serialization.register_package(5, lambda _: home[0], lambda *_: None)
    training = new_training(rank, seed)
    path = shared_dir / "snapshot.pt"
    exercise.save_snapshot(path, *training.parts(), 3)
    home[0] = None  # from here on as on this machine
    loaded = make_model(seed + 100)
    epochs_run = exercise.load_snapshot(
        path, loaded, OPTIMIZERS["SGD"](loaded.parameters())
    )
    same_weights(loaded, training.model, "of a file written on cuda:7")
    expect.equal(epochs_run, 3, "the number of epochs that load_snapshot returns")


class Bomb:
    """Whoever unpickles this runs its code: it makes the file ``exploded``."""

    def __reduce__(self):
        return (exec, ("open('exploded', 'w').close()",))


@pytest.mark.ranks(3, limit=15)
def test_code_in_a_file_is_not_run(exercise, rank, seed, shared_dir):
    """A file that brings code along is refused; the code is not run."""
    training = new_training(rank, seed)
    if rank == 0:
        model = training.model.state_dict()
        optimizer = training.optimizer.state_dict()
        bomb = {"model": model, "optimizer": optimizer, "epochs_run": Bomb()}
        torch.save(bomb, shared_dir / "bomb.pt")
    dist.barrier()
    refused = False
    try:
        exercise.load_snapshot(
            shared_dir / "bomb.pt", training.model, training.optimizer
        )
    except Exception:
        refused = True
    dist.barrier()
    expect.that(
        not (shared_dir / "exploded").exists(),
        "load_snapshot ran code that came with the file: with weights_only=True, "
        "torch.load takes tensors and plain values only",
    )
    expect.that(refused, "load_snapshot must not swallow the error of a refused file")
