"""Checks of exercises/07_from_spawn_to_torchrun.py: two nodes of two ranks."""

import contextlib
import os
import time
import weakref

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

from grader import expect


def as_torchrun_sets_it(rank):
    """The environment of a rank on one of two nodes with two ranks each."""
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank % 2),
        GROUP_RANK=str(rank // 2),
        LOCAL_WORLD_SIZE="2",
        TORCHELASTIC_RUN_ID="check",
        MASTER_ADDR="node0.example",
        MASTER_PORT="23456",
    )
    return dict(os.environ)


@contextlib.contextmanager
def watched(exercise):
    """Note which device is chosen, how the group is joined, and what is spawned."""
    seen = {"devices": [], "joined": [], "spawned": 0}
    originals = exercise.choose_device, dist.init_process_group, mp.spawn

    def choose_device(local_rank):
        seen["devices"].append(local_rank)
        return torch.device("cpu")

    def init_process_group(*args, **kwargs):
        seen["joined"].append(kwargs)
        return originals[1](*args, **kwargs)

    def spawn(*args, **kwargs):
        seen["spawned"] += 1
        expect.that(
            False,
            "mp.spawn was called in a process that torchrun has started: on 4 ranks, "
            "each would start ranks of its own",
        )

    exercise.choose_device = choose_device
    dist.init_process_group, mp.spawn = init_process_group, spawn
    try:
        yield seen
    finally:
        exercise.choose_device, dist.init_process_group, mp.spawn = originals


def expected_weights():
    """What one process computes from the data of four ranks."""
    torch.manual_seed(0)
    model = nn.Linear(5, 3, dtype=torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        batches = []
        for rank in range(4):
            data = torch.Generator().manual_seed(step * 1000 + rank)
            batches.append(torch.randn(8, 5, dtype=torch.float64, generator=data))
        x = torch.cat(batches)
        optimizer.zero_grad()
        F.mse_loss(model(x), x[:, :3].cumsum(dim=1)).backward()
        optimizer.step()
    return model.state_dict()


@pytest.mark.ranks(4, init=False, limit=15)
def test_setup_leaves_all_decisions_to_torchrun(exercise, rank):
    """On 2 nodes x 2 ranks, setup takes its place and its device from torchrun."""
    before = as_torchrun_sets_it(rank)
    with watched(exercise) as seen:
        device = exercise.setup()
    expect.that(dist.is_initialized(), "setup joined no process group")
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        expect.equal(os.environ.get(name), before[name], f"{name} after setup()")
    for name, value in (("rank", rank), ("world_size", 4)):
        given = seen["joined"][-1].get(name, -1)
        said = value if given == -1 else given
        expect.equal(said, value, f"the {name} given to init_process_group")
    expect.that(
        seen["joined"][-1].get("init_method") in (None, "env://"),
        "init_process_group was given a place to meet: torchrun has named one",
    )
    expect.equal(seen["devices"], [rank % 2], "the device chosen on this node")
    expect.equal(device, torch.device("cpu"), "what setup returns")


@pytest.mark.ranks(4, limit=15)
def test_one_rank_of_all_nodes_saves(exercise, rank, shared_dir):
    """Of 2 nodes x 2 ranks, rank 0 alone writes, and all wait until it has."""
    as_torchrun_sets_it(rank)
    model = nn.Linear(5, 3)
    if rank == 0:  # slow: its weights take a moment to collect
        model.register_state_dict_pre_hook(lambda *_: time.sleep(0.3))
    # each rank is told a place of its own, so a rank that writes leaves a file there
    exercise.save(model, shared_dir / f"written_by_rank_{rank}.pt")
    there = (shared_dir / "written_by_rank_0.pt").exists()
    expect.that(there, "save returned here before rank 0 had written the file")
    dist.barrier()
    writers = sorted(path.stem[-1] for path in shared_dir.glob("written_by_*"))
    expect.that(
        writers == ["0"], f"ranks {', '.join(writers)} wrote: only rank 0 should"
    )


@pytest.mark.ranks(4, init=False, limit=20)
def test_main_does_the_whole(exercise, rank, shared_dir):
    """Each of four processes calls main once; the weights are those of one process."""
    as_torchrun_sets_it(rank)
    path = shared_dir / "weights.pt"
    with watched(exercise):
        exercise.main(path)
    expect.that(path.exists(), "main returned, and there is no file with the weights")
    found = torch.load(path, weights_only=True)
    for key, value in expected_weights().items():
        expect.close(found[key], value, key)


@pytest.mark.ranks(4, init=False, limit=20)
def test_main_leaves_in_good_order(exercise, rank, shared_dir):
    """When the process group is destroyed, and it must be, no DDP object is left."""
    as_torchrun_sets_it(rank)
    alive, left = weakref.WeakSet(), []
    ddp_class, destroy = exercise.DDP, dist.destroy_process_group

    def ddp(*args, **kwargs):
        made = ddp_class(*args, **kwargs)
        alive.add(made)
        return made

    def destroy_process_group(*args, **kwargs):
        left.append(len(alive))
        return destroy(*args, **kwargs)

    exercise.DDP, dist.destroy_process_group = ddp, destroy_process_group
    try:
        with watched(exercise):
            exercise.main(shared_dir / "weights.pt")
    finally:
        exercise.DDP, dist.destroy_process_group = ddp_class, destroy
    expect.that(
        not dist.is_initialized(),
        "main returned, and this process is still in the process group",
    )
    expect.that(
        left == [0],
        "a DDP object was still alive when the process group was destroyed: the end "
        "of the program may hang",
    )
