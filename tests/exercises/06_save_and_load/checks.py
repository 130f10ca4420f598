"""Checks of exercises/06_save_and_load.py."""

import copy
from collections import OrderedDict

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from workshop.grader import expect, races

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def make_model(seed):
    torch.manual_seed(seed)
    layers = {
        "embed": nn.Linear(5, 4),
        "norm": nn.BatchNorm1d(4),  # which has buffers, one of them an int
        "tanh": nn.Tanh(),
        "head": nn.Sequential(OrderedDict(module=nn.Linear(4, 3))),
    }
    layers["head"].module.bias.requires_grad = False  # frozen
    return nn.Sequential(OrderedDict(layers)).double()


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


def gradients(training):
    named = training.model.named_parameters()
    return {name: p.grad.clone() for name, p in named if p.grad is not None}


def everything(training):
    """What a save must leave unchanged, as it is now."""
    model, optimizer = training.model, training.optimizer
    parts, modes = model.named_modules(), ("evaluation", "training")
    return {
        "the gradients": gradients(training),
        "the model": copy.deepcopy(dict(model.state_dict())),
        "the optimizer": copy.deepcopy(optimizer.state_dict()),
        "the mode of each part": {n: modes[m.training] for n, m in parts if n},
        "requires_grad": {n: p.requires_grad for n, p in model.named_parameters()},
    }


def state_of_rank_0(model):
    """Rank 0's state_dict: the buffers of batch norm differ from rank to rank."""
    state = {key: value.clone() for key, value in model.state_dict().items()}
    for value in state.values():
        dist.broadcast(value, src=0)
    return state


def same_weights(actual, expected, what, compare=expect.equal):
    for key, value in expected.items():
        compare(actual.state_dict()[key], value, f"{key}, {what}")


@pytest.mark.ranks(3, 4, limit=15)
def test_rank_0_writes_and_nobody_else(exercise, rank, world_size, seed, shared_dir):
    """Only rank 0 writes, and no rank returns before the file is complete."""
    training = new_training(rank, seed)
    path = shared_dir / "snapshot.pt"
    races.leave_an_old_file(path, rank)
    with races.slow_writes(shared_dir) as written:
        exercise.save_snapshot(path, *training.parts(), 1)
    there = races.complete(path)
    everyone = [None] * world_size
    dist.all_gather_object(everyone, sorted(written))
    writers = [rank for rank, names in enumerate(everyone) if names]
    expect.that(len(writers) < 2, f"ranks {writers} all wrote the same file")
    expect.that(writers == [0], "rank 0 must write the file path")
    here = rank != 0 or (path.exists() and not races.is_old(path))
    expect.that(here, races.elsewhere(path, written))
    expect.that(
        there,
        "save_snapshot returned here before rank 0 had written the file: "
        "a rank that loads it now finds none, or an old one",
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
    kind = type(snapshot).__name__
    expect.that(isinstance(snapshot, dict), f"the file holds a {kind}, expected a dict")
    expect.equal(
        sorted(snapshot), ["epochs_run", "model", "optimizer"], "the file's keys"
    )
    expect.equal(snapshot["epochs_run"], 1, "epochs_run in the file")
    plain = state_of_rank_0(training.model)
    if set(snapshot["model"]) != set(plain):  # whose order is free
        keys = list(snapshot["model"])
        expect.equal(keys, list(plain), "the keys of the saved model")
    expect.equal(dict(snapshot["model"]), plain, "the saved model")


@pytest.mark.ranks(3, 4, limit=15)
def test_every_rank_loads_the_newest(exercise, exercise_again, rank, seed, shared_dir):
    """Of two saves to the same file, every rank loads the second, epoch included."""
    training = new_training(rank, seed)
    path = shared_dir / "snapshot.pt"
    for epochs_run in (6, 7):
        training.train(2).model.tanh.eval()
        before = everything(training)
        exercise.save_snapshot(path, *training.parts(), epochs_run)
        mode = "the model is in evaluation mode after saving it"
        expect.that(training.ddp_model.training, mode)
        for what, value in everything(training).items():
            expect.equal(value, before[what], f"{what} after saving")
    loaded = make_model(seed + 100 + rank)
    optimizer = OPTIMIZERS["SGD"](loaded.parameters())
    epochs_run = exercise_again.load_snapshot(path, loaded, optimizer)
    expect.equal(epochs_run, 7, "the number of epochs that load_snapshot returns")
    expect.that(loaded.training, "the model is in evaluation mode after loading it")
    same_weights(loaded, state_of_rank_0(training.model), "after loading")


@pytest.mark.ranks(3, 4, limit=15)
def test_training_goes_on(exercise, exercise_again, rank, seed, shared_dir):
    """After loading, the next steps are the same as those of the run that was saved."""
    for name in OPTIMIZERS:
        whole = new_training(rank, seed, name).train(3)
        whole.optimizer.param_groups[0]["lr"] *= 0.3  # as a scheduler does
        path = shared_dir / f"{name}.pt"
        exercise.save_snapshot(path, *whole.parts(), 1)
        whole.train(3)
        model = make_model(seed + 100 + rank)
        optimizer = OPTIMIZERS[name](model.parameters())
        exercise_again.load_snapshot(path, model, optimizer)
        continued = Training(model, optimizer, rank, seed)
        continued.steps_run = 3
        continued.train(3)
        # not bit for bit: a new DDP sums its first step in another order
        what = f"3 steps after loading, {name}"
        same_weights(model, whole.model.state_dict(), what, expect.close)


@pytest.mark.ranks(3, limit=15)
def test_a_file_of_a_machine_with_gpus(exercise, rank, seed, shared_dir):
    """A snapshot written on a GPU can be read on this machine, which may have none."""
    # what torch.save asks: where does this tensor live? As on a machine with a GPU
    home = ["cuda:7"]
    torch.serialization.register_package(5, lambda _: home[0], lambda *_: None)
    training = new_training(rank, seed)
    path = shared_dir / "snapshot.pt"
    training.ddp_model.eval()
    exercise.save_snapshot(path, *training.parts(), 3)
    kept = not training.ddp_model.training
    expect.that(kept, "the model was in evaluation mode, and isn't after saving it")
    home[0] = None  # from here on as on this machine
    loaded = make_model(seed + 100).eval()
    epochs_run = exercise.load_snapshot(
        path, loaded, OPTIMIZERS["SGD"](loaded.parameters())
    )
    mode = "the model was in evaluation mode, and isn't after loading it"
    expect.that(not any(part.training for part in loaded.modules()), mode)
    same_weights(loaded, training.model.state_dict(), "of a file written on cuda:7")
    expect.equal(epochs_run, 3, "the number of epochs that load_snapshot returns")


@pytest.mark.ranks(1, limit=15)
def test_file_that_does_not_fit_is_refused(exercise, seed, shared_dir):
    """Loading a file whose keys differ from the model's raises an error."""
    training = new_training(0, seed)
    plain = training.model.state_dict()
    without_head = {k: v for k, v in plain.items() if not k.startswith("head.")}
    files = {
        'keys that begin with "module."': training.ddp_model.state_dict(),
        "no key of the model's head": without_head,
        "a key more than the model": {**plain, "tail.weight": torch.zeros(3)},
    }
    rest = {"optimizer": training.optimizer.state_dict(), "epochs_run": 1}
    for words, weights in files.items():
        torch.save({"model": weights, **rest}, shared_dir / "other.pt")
        model = make_model(seed + 100)
        optimizer = OPTIMIZERS["SGD"](model.parameters())
        try:
            exercise.load_snapshot(shared_dir / "other.pt", model, optimizer)
        except NotImplementedError:
            raise
        except Exception:
            continue
        expect.that(
            False,
            f"load_snapshot took a file that has {words}, without an error: the model "
            "isn't restored, or not all of it. With strict=False, load_state_dict "
            "leaves out what doesn't fit",
        )


class Bomb:
    """Unpickling this runs its code, which makes the file ``exploded``."""

    def __reduce__(self):
        return (exec, ("open('exploded', 'w').close()",))


@pytest.mark.ranks(1, limit=15)
def test_code_in_a_file_is_not_run(exercise, rank, seed, shared_dir):
    """A file that contains code is refused, and the code isn't run."""
    training = new_training(rank, seed)
    model = training.model.state_dict()
    optimizer = training.optimizer.state_dict()
    bomb = {"model": model, "optimizer": optimizer, "epochs_run": Bomb()}
    torch.save(bomb, shared_dir / "bomb.pt")
    refused = False
    try:
        exercise.load_snapshot(
            shared_dir / "bomb.pt", training.model, training.optimizer
        )
    except Exception:
        refused = True
    expect.that(
        not (shared_dir / "exploded").exists(),
        "load_snapshot ran code that came with the file: with weights_only=True, "
        "torch.load takes tensors and plain values only",
    )
    expect.that(refused, "load_snapshot must not swallow the error of a refused file")
