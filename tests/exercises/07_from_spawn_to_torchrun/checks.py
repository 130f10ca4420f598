"""Checks of exercises/07_from_spawn_to_torchrun.py: two nodes, equal or not."""

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

from workshop.grader import expect, races

UNEQUAL = {4: (1, 3), 3: (2, 1)}  # world size -> ranks of each node


def as_torchrun_sets_it(rank, nodes=(2, 2)):
    """The environment of a rank; ``nodes``: how many ranks each node has."""
    places = [(node, local) for node, n in enumerate(nodes) for local in range(n)]
    node_rank, local_rank = places[rank]
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(local_rank),
        GROUP_RANK=str(node_rank),
        GROUP_WORLD_SIZE=str(len(nodes)),
        LOCAL_WORLD_SIZE=str(nodes[node_rank]),
        TORCHELASTIC_RUN_ID="check",
        MASTER_ADDR="node0.example",
        MASTER_PORT="23456",
    )
    return dict(os.environ)


def torchruns_own_address():
    """What init_process_group reads from the environment, in one word."""
    return f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"


@contextlib.contextmanager
def watched(exercise):
    """Note which device is chosen, how the group is joined, and what is spawned."""
    seen = {"devices": [], "joined": [], "spawned": 0}
    originals = exercise.choose_device, dist.init_process_group, mp.spawn

    def choose_device(local_rank):
        seen["devices"].append(local_rank)
        return torch.device("cpu")

    def init_process_group(backend=None, init_method=None, *args, **kwargs):
        seen["joined"].append(kwargs)
        expect.that(
            init_method in (None, "env://", torchruns_own_address()),
            "init_process_group was given an address: torchrun has set one already",
        )
        try:  # here the ranks meet through a file, wherever that address is
            return originals[1](backend, None, *args, **kwargs)
        except Exception as error:  # of the line that called this
            raise error.with_traceback(None) from None

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


def cause_of(chosen, rank, environ):
    """The one wrong rule that gives the device; "" if none does, or more than one."""
    of_node, node_rank = int(environ["LOCAL_WORLD_SIZE"]), int(environ["GROUP_RANK"])
    rules = {
        "all nodes had as many ranks as this one": (
            rank % of_node,
            rank - node_rank * of_node,
        ),
        "the rank over all nodes were meant": (rank,),
        "the number of this node were meant": (node_rank,),
        "each node had 2 ranks": (rank % 2,),
    }
    if chosen == [int(environ["LOCAL_RANK"])]:
        return ""
    found = [words for words, devices in rules.items() if {*chosen} <= {*devices}]
    return f"{found[0]}: take LOCAL_RANK" if len(found) == 1 else ""


@pytest.mark.ranks(4, 3, init=False, limit=15)
def test_setup_leaves_all_decisions_to_torchrun(exercise, rank, world_size):
    """On nodes of 1 and 3 ranks, or 2 and 1, all is taken from the environment."""
    nodes = UNEQUAL[world_size]
    before = as_torchrun_sets_it(rank, nodes)
    with watched(exercise) as seen:
        device = exercise.setup()
    expect.that(dist.is_initialized(), "setup joined no process group")
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        expect.equal(os.environ.get(name), before[name], f"{name} after setup()")
    joined = dict(*seen["joined"][-1:])  # init_device_mesh joins by a way of its own
    for name, value in (("rank", rank), ("world_size", world_size)):
        given = joined.get(name, -1)
        said = value if given == -1 else given
        expect.equal(said, value, f"the {name} given to init_process_group")
    chosen = sorted(set(seen["devices"]))  # a device may be asked for twice
    expect.that(chosen, "setup chose no device: choose_device was not called")
    own = int(before["LOCAL_RANK"])
    what = f"the device chosen on this node, where nodes have {nodes} ranks"
    expect.equal(chosen, [own], what, cause=cause_of(chosen, rank, before))
    expect.equal(device, torch.device("cpu"), "what setup returns")


@pytest.mark.ranks(4, limit=15)
def test_one_rank_of_all_nodes_saves(exercise, rank, shared_dir):
    """On 2 nodes x 2 ranks, only one rank writes, and all wait until it has."""
    as_torchrun_sets_it(rank)
    path = shared_dir / "weights.newest"
    races.leave_an_old_file(path, rank)
    with races.slow_writes(shared_dir) as written:
        exercise.save(nn.Linear(5, 3), path)
    there = races.complete(path)
    everyone = [None] * 4
    dist.all_gather_object(everyone, sorted(written))
    writers = [str(rank) for rank, names in enumerate(everyone) if names]
    named = ", ".join(writers) or "none"
    expect.that(len(writers) == 1, f"ranks that wrote: {named}; only one should")
    expect.that(there, f"save returned here before rank {named} had written the file")


@pytest.mark.ranks(4, init=False, limit=20)
def test_main_does_the_whole(exercise, rank, shared_dir):
    """Four processes call main once each; the weights equal those of one process."""
    as_torchrun_sets_it(rank)
    path = shared_dir / "weights.pt"
    with watched(exercise):
        exercise.main(path)
    expect.that(path.exists(), "main returned, and there is no file with the weights")
    try:
        found = torch.load(path, weights_only=True)
    except Exception:
        expect.that(False, "the file holds more than weights: a state_dict is wanted")
    kind = type(found).__name__
    expect.that(isinstance(found, dict), f"the file holds a {kind}: save a state_dict")
    weights = expected_weights()
    expect.equal(sorted(found), sorted(weights), "the keys of the file")
    for key, value in weights.items():
        expect.close(found[key], value, key)


@pytest.mark.ranks(4, init=False, limit=20)
def test_main_leaves_in_good_order(exercise, rank, shared_dir):
    """main destroys the process group, and no DDP object is left when it does."""
    as_torchrun_sets_it(rank)
    alive, left = weakref.WeakSet(), []
    ddp_class, destroy = exercise.DDP, dist.destroy_process_group

    def ddp(*args, **kwargs):
        made = ddp_class(*args, **kwargs)
        alive.add(made)
        return made

    def destroy_process_group(*args, **kwargs):
        for _ in range(20):  # whoever watches this rank may hold train's frame a moment
            if not alive:
                break
            time.sleep(0.05)
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
