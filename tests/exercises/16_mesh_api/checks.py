"""Checks of exercises/16_mesh_api.py."""

import threading
import time
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from workshop.grader import expect

expect.nothing_is_averaged()
NODES = {6: [(2, 3), (3, 2)], 4: [(2, 2)]}  # (nodes, ranks per node), by ranks
OTHERS = [(1, 4), (4, 1)]  # on which 4 ranks continue


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, 0.05)


class Network(nn.Module):
    """Two blocks between two layers; dims that the ranks do not divide."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.enter = nn.Linear(5, 7)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(7), nn.Linear(7, 7), nn.Tanh()) for _ in range(2)
        )
        self.leave = nn.Linear(7, 2)
        self.double()

    def forward(self, x):  # [B, 5] -> [B, 2]
        x = self.enter(x)
        for block in self.blocks:
            x = x + block(x)
        return self.leave(x)


def batches(seed, world_size):
    """[4 steps, W, 4, 5]"""
    generator = torch.Generator().manual_seed(seed + 5000)
    return torch.randn(4, world_size, 4, 5, generator=generator, dtype=torch.float64)


def trainer(model, make):
    """The optimizer and a scheduler that halves its learning rate in each step."""
    optimizer = make(model.parameters())
    return optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)


def trained(model, optimizer, scheduler, steps):
    """The loss of each step, on this rank's batches [S, 4, 5]."""
    losses = []
    for inputs in steps:
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    return losses


def alone(seed, make, steps):
    """The losses [S, W] of one process, and its model."""
    model, losses = Network(seed), []
    optimizer, scheduler = trainer(model, make)
    for step in steps:
        optimizer.zero_grad()
        parts = torch.stack([model(part).square().mean() for part in step])
        parts.mean().backward()
        optimizer.step()
        scheduler.step()
        losses.append(parts.detach())
    return losses, model


def sharded(exercise, seed, nodes):
    model = Network(seed)
    exercise.shard(model, *nodes)
    for name, parameter in model.named_parameters():
        is_shard = isinstance(parameter, DTensor)
        expect.that(is_shard, f"{name} is whole: fully_shard has not reached it")
    is_root = isinstance(model, FSDPModule)
    expect.that(is_root, "the model itself was not given to fully_shard")
    return model


def members(nodes, rank):
    """The ranks of this rank's node, and the ranks with the same shards."""
    count, size = nodes
    node, place = divmod(rank, size)
    of_node = tuple(range(node * size, node * size + size))
    return of_node, tuple(place + size * k for k in range(count))


@pytest.mark.ranks(6, 4, limit=20)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """Losses and weights are those of one process on all batches."""
    steps = batches(seed, world_size)[:3]
    expected, whole = alone(seed, sgd, steps)
    for nodes in NODES[world_size]:
        model, grid = (
            sharded(exercise, seed, nodes),
            f"on {nodes[0]} x {nodes[1]} ranks",
        )
        of_node, place = list(members(nodes, rank)[0]), rank % nodes[1]
        apart, _ = alone(seed, sgd, steps[:, of_node])
        found = trained(model, *trainer(model, sgd), steps[:, rank])
        for number, loss in enumerate(found):
            what = f"the loss of step {number} {grid}"
            mistaken = {}
            if number:
                within = "that of gradients that are averaged within this node alone"
                mistaken[within] = apart[number][place]
            expect.close(loss, expected[number][rank], what, mistaken=mistaken)
        for key, value in whole.state_dict().items():
            full = model.state_dict()[key].full_tensor()
            expect.close(full, value, f"{key} after 3 steps of SGD {grid}")


@pytest.mark.ranks(6, limit=20)
def test_gathers_within_a_node(exercise, rank, world_size, seed, ledger):
    """Shards are gathered within a node, and gradients averaged between nodes."""
    for nodes in NODES[world_size]:
        check_groups(exercise, rank, world_size, seed, ledger, nodes)


def check_groups(exercise, rank, world_size, seed, ledger, nodes):
    grid = f"with {nodes[0]} nodes of {nodes[1]} ranks, "
    model = sharded(exercise, seed, nodes)
    ledger.clear()
    model(batches(seed, world_size)[0, rank]).square().mean().backward()
    of_node, same = members(nodes, rank)
    groups = {"all_gather": set(), "reduce_scatter": set(), "all_reduce": set()}
    for row in ledger.rows:
        for op, found in groups.items():
            if op in row.op:
                found.add(row.group)
    expect.right_way(
        groups["all_gather"] == {of_node} == groups["reduce_scatter"],
        f"{grid}shards are gathered from the ranks {told(groups['all_gather'])}; this "
        f"rank's node has the ranks {list(of_node)}",
    )
    expect.right_way(
        groups["all_reduce"] == {same},
        f"{grid}gradients are averaged over the ranks {told(groups['all_reduce'])}; "
        f"{list(same)} hold the same shards",
    )
    gathers = sum("all_gather" in op for op in ledger.ops())
    expect.right_way(
        gathers == 5,
        f"a step gathers {gathers} times: with each of two blocks twice and the rest "
        "of the model once, it is 5 times",
    )


def told(groups):
    return " and ".join(str(list(group)) for group in sorted(groups)) or "of no group"


SAVE = torch.save


def save_file_slowly(thing, file, *args, **kwargs):
    """As ``torch.save``; DCP gives it streams, a learner may give it a path."""
    if isinstance(file, (str, Path)):
        time.sleep(0.3)
    SAVE(thing, file, *args, **kwargs)


def save(exercise, folder, *objects):
    """Files are written slowly; when save returns, on any rank, all must be there."""
    write = dcp.FileSystemWriter.write_data

    def write_slowly(*args):
        time.sleep(0.3)
        return write(*args)

    threads = threading.active_count()
    with (
        mock.patch.object(dcp.FileSystemWriter, "write_data", write_slowly),
        mock.patch.object(torch, "save", save_file_slowly),
    ):
        exercise.save(folder, *objects)
    # before any collective: those of a save that still runs could be taken for it
    early = "save returned here before the checkpoint was complete"
    running = threading.active_count() > threads
    expect.that((folder / ".metadata").exists() or not running, early)
    found = set(folder.glob("**/*"))
    torch.distributed.barrier()
    later = sorted(path.name for path in set(folder.glob("**/*")) - found)
    expect.that(not later, f"{early}: {', '.join(later)} was written later")


@pytest.mark.ranks(4, limit=30)
def test_other_nodes_continue(
    exercise, exercise_again, rank, world_size, seed, shared_dir
):
    """Saved on 2 nodes after 2 steps, continued on 1 node of 4 and on 4 of 1."""
    steps, folder = batches(seed, world_size), shared_dir / "of_2_nodes"
    expected, _ = alone(seed, adamw, steps)
    model = sharded(exercise, seed, (2, 2))
    others = trainer(model, adamw)
    trained(model, *others, steps[:2, rank])
    save(exercise, folder, model, *others)
    expect.still_training(model, "the saved model is")
    parts = writers(folder)
    overwritten = f" (from files of {len(parts)} of 4 ranks: others overwrote theirs?)"
    from_files = overwritten if len(parts) in (1, 2, 3) else ""
    for nodes in OTHERS:
        how = f"on {nodes[0]} x {nodes[1]} ranks, after loading{from_files}"
        model = sharded(exercise_again, seed + 1, nodes)
        objects = trainer(model, adamw)
        exercise_again.load(folder, model, *objects)
        check_restored(*objects, how)
        expect.still_training(model, f"{how}, the model is")
        found = trained(model, *objects, steps[2:, rank])
        for number, loss in enumerate(found, 2):
            what = f"the loss of step {number} {how}"
            expect.close(loss, expected[number][rank], what)


def writers(folder):
    """The ranks in the names of a distributed checkpoint's files, as text."""
    names = [path.name for path in folder.glob("*.distcp")]
    return {name.split("_")[2] for name in names if name.count("_") > 2}


def check_restored(optimizer, scheduler, how):
    rates = [group["lr"] for group in optimizer.param_groups]
    first = scheduler.base_lrs[0]
    new = {"that of a new optimizer: what was loaded hasn't reached it": first}
    what = f"the optimizer's learning rate {how}"
    expect.close(rates[0], first / 4, what, mistaken=new)
    cause = ""
    if scheduler.last_epoch == 0:
        cause = "the scheduler were new: its state belongs to the checkpoint, too"
    what = f"the steps of the scheduler {how}"
    expect.equal(scheduler.last_epoch, 2, what, cause=cause)
    last = scheduler.get_last_lr()[0]
    expect.close(last, first / 4, f"the scheduler's get_last_lr() {how}")


@pytest.mark.ranks(4, limit=30)
def test_every_rank_writes(exercise, rank, world_size, seed, shared_dir, ledger):
    """The checkpoint is distributed: the ranks that hold shards write them."""
    model = sharded(exercise, seed, (1, 4))
    objects = trainer(model, adamw)
    trained(model, *objects, batches(seed, world_size)[:1, rank])
    ledger.clear()
    save(exercise, shared_dir / "saved", model, *objects)
    files = sorted(path.name for path in (shared_dir / "saved").glob("*"))
    written = writers(shared_dir / "saved")
    expect.right_way(
        ".metadata" in files and len(written) == 4,
        f"the folder has {files}: a distributed checkpoint has .metadata and files of "
        "each of the 4 ranks",
    )
    sent = {row.op for row in ledger.rows if "float64" in row.dtypes}
    expect.right_way(
        not sent,
        f"save sends shards through {', '.join(sorted(sent))}: a rank may lack memory "
        "for whole tensors, and writes what it holds",
    )
