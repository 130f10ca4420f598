"""Worlds of ranks that save, are killed, and load: for test_16_fsdp_tensor_parallel.py.

    python worlds_16_two_dimensions.py FOLDER layouts|kills

Ranks are forked from this process, which has torch loaded and never computes: so a
world costs a quarter of a second. What happened is printed as one line of JSON.
"""

import contextlib
import io
import itertools
import json
import multiprocessing
import os
import queue
import random
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

import torch
import torch._dynamo  # once, here: optimizers import it in each rank
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import ByteGPT, Sizes, batch_of_step, next_byte_loss
from common.checkpoint import Checkpoints, all_folders, complete, newest
from common.gpt_training import _sum_over_ranks
from common.parallel.mesh import Grid, make_mesh

fsdp_tensor_parallel = import_module("16_fsdp_tensor_parallel")

SIZES = Sizes(width=24, heads=4, blocks=2, context=5)
BATCH = 12
TEXT = torch.arange(4096).mul(2654435761).remainder(251).to(torch.uint8)
CPU = torch.device("cpu")
numbers = itertools.count()


def network():
    torch.manual_seed(0)
    return ByteGPT(SIZES).double()


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), 0.01)


def batch(step):
    return batch_of_step(TEXT, step, BATCH, SIZES.context)


def start_rank(rank, size, meeting, answers, function, arguments):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=size
    )
    with contextlib.redirect_stdout(io.StringIO()):
        answer = function(*arguments)
    if rank == 0:
        answers.put(answer)
        answers.close()
        answers.join_thread()
    dist.barrier()
    os._exit(0)


def start(folder, size, function, *arguments):
    """Ranks that run ``function``, and where rank 0 puts what it returns."""
    fork = multiprocessing.get_context("fork")
    answers, meeting = fork.Queue(), folder / f"meeting_{next(numbers)}"
    ranks = [
        fork.Process(
            target=start_rank,
            args=(rank, size, meeting, answers, function, arguments),
        )
        for rank in range(size)
    ]
    for process in ranks:
        process.start()
    return ranks, answers


def wait_for(ranks, answers):
    """What rank 0 has put there; at once an error if a rank ends with one."""
    while True:
        try:
            return answers.get(timeout=1)
        except queue.Empty:
            for process in ranks:
                if process.exitcode:
                    for other in ranks:
                        other.kill()
                    raise RuntimeError(f"{process} ended early") from None


def world(folder, grid, function, *arguments):
    """What ``function(grid, ...)`` returns on rank 0 of a world of the grid's size."""
    size = grid.replicas * grid.data * grid.tensor
    ranks, answers = start(folder, size, function, grid, *arguments)
    answer = wait_for(ranks, answers)
    for process in ranks:
        process.join(30)
        assert process.exitcode == 0, process
    return answer


def prepare(grid, folder, sizes=SIZES):
    mesh = make_mesh(grid, CPU)
    model = fsdp_tensor_parallel.shard(network(), mesh)
    optimizer = optimizer_of(model)
    return model, optimizer, Checkpoints(folder, model, optimizer, sizes)


def go_on(model, optimizer, grid, first, last):
    """The losses of these steps."""
    losses = []
    for step in range(first, last):
        parts = (fsdp_tensor_parallel.part_of(x, grid) for x in batch(step))
        loss = fsdp_tensor_parallel.train_step(model, optimizer, *parts)
        losses += _sum_over_ranks([loss / dist.get_world_size()])
    return losses


def weights(model):
    return [parameter.full_tensor().tolist() for parameter in model.parameters()]


def alone(steps):
    """Losses and last weights of one process that knows of no other."""
    torch.set_num_threads(1)
    model, losses = network(), []
    optimizer = optimizer_of(model)
    for step in range(steps):
        inputs, targets = batch(step)
        optimizer.zero_grad()
        loss = next_byte_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.tolist() for parameter in model.parameters()]


def train_alone(grid, steps):
    return alone(steps)


# one training, saved on one grid and continued on others


def save_and_go_on(grid, folder, background):
    model, optimizer, checkpoints = prepare(grid, folder)
    losses = go_on(model, optimizer, grid, 0, 3)
    checkpoints.save(3, background)
    # at once, while a save in the background still writes: it must not see this
    losses += go_on(model, optimizer, grid, 3, 6)
    checkpoints.wait()
    return losses, weights(model)


def load_and_go_on(grid, folder):
    model, optimizer, checkpoints = prepare(grid, folder)
    first = checkpoints.load_newest()
    losses = go_on(model, optimizer, grid, first, 6)
    return first, losses, weights(model)


def layouts(folder):
    saved = {}
    for name, background in (("sync", False), ("async", True)):
        (folder / name).mkdir()
        saved[name] = world(
            folder, Grid(1, 2, 2), save_and_go_on, folder / name, background
        )
    grids = [Grid(1, 2, 2), Grid(1, 1, 2), Grid(1, 2, 1), Grid(2, 1, 1), Grid()]
    grids += [Grid(1, 3, 1), Grid(2, 2, 1)]
    loaded = [
        (str(grid), name, *world(folder, grid, load_and_go_on, folder / name))
        for grid, name in zip(grids, 4 * ["async", "sync"], strict=False)
    ]
    return {
        "alone": world(folder, Grid(), train_alone, 6),
        "saved": saved,
        "loaded": loaded,
    }


# all ranks killed while they save


def save_for_ever(grid, folder):
    model, optimizer, checkpoints = prepare(grid, folder)
    for step in itertools.count(checkpoints.load_newest()):
        go_on(model, optimizer, grid, step, step + 1)
        checkpoints.save(step + 1, background=True)


def load_and_compare(grid, folder):
    """Steps run, the loss of the next one, and whether nothing incomplete is left."""
    model, optimizer, checkpoints = prepare(grid, folder)
    first = checkpoints.load_newest()
    [loss] = go_on(model, optimizer, grid, first, first + 1)
    return first, loss, list(all_folders(folder)) == list(complete(folder))


def kill_in_a_save(ranks, folder, draw):
    """SIGKILL to all at a random moment while a folder is there that is not complete.

    Returns the newest complete checkpoint before, and whether one was incomplete after.
    """
    before = len(complete(folder))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        finished = complete(folder)
        if len(finished) > before and len(all_folders(folder)) > len(finished):
            break
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.05))
    known = max(complete(folder))
    for process in ranks:
        os.kill(process.pid, signal.SIGKILL)
    for process in ranks:
        process.join()
    return known, len(all_folders(folder)) > len(complete(folder))


def kills(folder):
    draw = random.Random(16)
    saves = folder / "saves"
    saves.mkdir()
    rounds = []
    for number in range(10):
        grid = [Grid(1, 2, 2), Grid(1, 2, 1), Grid(1, 1, 2)][number % 3]
        size = grid.data * grid.tensor
        ranks, _ = start(folder, size, save_for_ever, grid, saves)
        known, torn = kill_in_a_save(ranks, saves, draw)
        found = newest(saves)
        steps, loss, clean = world(folder, Grid(), load_and_compare, saves)
        rounds.append([known, torn, found.name, steps, loss, clean])
    losses, _ = world(folder, Grid(), train_alone, rounds[-1][3] + 1)
    return {"rounds": rounds, "alone": losses}


if __name__ == "__main__":
    kind = {"layouts": layouts, "kills": kills}[sys.argv[2]]
    print(json.dumps(kind(Path(sys.argv[1]))))
