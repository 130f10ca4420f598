"""Checks of exercises/20_capstone.py."""

import os
import signal
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy
from torch.distributed.tensor import DTensor

from workshop.grader import expect

WIDTH, HEADS, BLOCKS, BYTES, TOKENS = 12, 12, 2, 7, 5
BATCH = 12  # sequences of a step, which 1 to 4 data ranks divide
CPU = torch.device("cpu")
EXACT = MixedPrecisionPolicy()
COLUMNS = "attention.query", "attention.key", "attention.value", "mlp.up"
ROWS = "attention.out", "mlp.down"
FOLDER = Path("run")
SLOWER = 0.004  # a learning rate that a schedule has reached
MOMENTS = 2  # of AdamW, for each number of a parameter


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.value, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = [
            layer(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        gathered = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(gathered.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.mlp_norm, self.mlp = nn.LayerNorm(WIDTH), MLP()

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Network(nn.Module):
    """A small GPT with the names of the capstone's, and the same numbers everywhere."""

    def __init__(self, seed, dtype=torch.float64):
        super().__init__()
        self.embed = nn.Embedding(BYTES, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, BYTES)
        self.to(dtype)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self.parameters():
                drawn = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(drawn / 4)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batch_of(seed, step):
    """Inputs and targets of a step, [BATCH, TOKENS] each."""
    generator = torch.Generator().manual_seed(1000 * seed + step)
    pieces = torch.randint(BYTES, (BATCH, TOKENS + 1), generator=generator)
    return pieces[:, :-1], pieces[:, 1:]


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer, batch, part=0, parts=1):
    """One step on a part of the batch."""
    inputs, targets = (tokens.chunk(parts)[part] for tokens in batch)
    optimizer.zero_grad()
    scores = model(inputs)
    loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()


def alone(seed, steps):
    """What one process has after these steps: name -> parameter."""
    model = Network(seed)
    optimizer = optimizer_of(model)
    for step in range(steps):
        train(model, optimizer, batch_of(seed, step))
    return dict(model.named_parameters())


class Run:
    """A model that the learner's code has laid out, with its optimizer."""

    def __init__(self, exercise, seed, tensor_ranks, model=None, policies=None):
        self.seed = seed
        self.model = model or Network(seed)
        mesh = exercise.lay_out(
            self.model, tensor_ranks, *(policies or (EXACT, EXACT)), CPU
        )
        kind = type(mesh).__name__
        expect.that(
            isinstance(mesh, DeviceMesh), f"lay_out returned {kind}, expected the mesh"
        )
        names = mesh.mesh_dim_names or ()
        expect.that(
            {"data", "tensor"} <= {*names},
            f"the axes of the mesh are called {names}, expected data and tensor",
        )
        self.mesh = mesh
        self.optimizer = optimizer_of(self.model)

    def train(self, step):
        data = self.mesh["data"]
        part, parts = data.get_local_rank(), data.size()
        batch = batch_of(self.seed, step)
        return train(self.model, self.optimizer, batch, part, parts)


def whole(parameter):
    """All of a parameter; every rank calls this."""
    if isinstance(parameter, DTensor):
        return parameter.detach().full_tensor()
    return parameter.detach()


def check_parameters(run, expected, when):
    """Every parameter is that of one process."""
    for name, parameter in run.model.named_parameters():
        expect.close(whole(parameter), expected[name].detach(), f"{name} {when}")


def layouts(world_size):
    """Numbers of tensor ranks to try."""
    return (1, 3) if world_size == 3 else (2, 4, 1)


# The layout


@pytest.mark.ranks(4, limit=30)
def test_tensor_groups_stay_on_a_node(exercise, rank, world_size, seed):
    """With two ranks on a node, the groups of the tensor axis are 0, 1 and 2, 3."""
    mesh = Run(exercise, seed, tensor_ranks=2).mesh
    group = sorted(mesh["tensor"].mesh.flatten().tolist())
    first = rank - rank % 2
    expect.that(
        group == [first, first + 1],
        f"the tensor group of rank {rank} is {group}, and ranks {first} and "
        f"{first + 1} share a node: the last axis of a mesh varies fastest",
    )


@pytest.mark.ranks(3, 4, limit=30)
def test_each_rank_holds_its_part(exercise, rank, world_size, seed):
    """Columns and rows along the tensor axis, and shards along the data axis."""
    for tensor_ranks in layouts(world_size):
        run = Run(exercise, seed, tensor_ranks)
        layout = f"with {tensor_ranks} tensor ranks of {world_size}"
        for name, parameter in run.model.named_parameters():
            check_part(name, parameter, tensor_ranks, layout)
        for module in [*run.model.blocks, run.model]:
            expect.that(
                isinstance(module, FSDPModule),
                f"fully_shard was not called for {type(module).__name__.lower()}",
            )
        expect.equal(run.mesh["tensor"].size(), tensor_ranks, "the tensor axis")


def check_part(name, parameter, tensor_ranks, layout):
    """What a rank should hold of a parameter, at most."""
    ranks = dist.get_world_size()
    layer = name.rpartition(".")[0].partition(".")[2].partition(".")[2]
    cut = layer in COLUMNS or (layer in ROWS and name.endswith("weight"))
    tensor_parts = tensor_ranks if cut else 1
    rows = parameter.shape[0]
    if layer in COLUMNS:
        rows //= tensor_ranks
    shards = -(-rows // (ranks // tensor_ranks))  # rows, rounded up
    each = parameter.numel() // parameter.shape[0]
    if layer in ROWS and cut:
        each //= tensor_parts
    held = parameter
    if isinstance(parameter, DTensor):
        held = parameter.to_local()
    expect.that(
        held.numel() <= shards * each,
        f"this rank holds {held.numel()} of the {parameter.numel()} values of {name} "
        f"{layout}: its part is at most {shards * each}",
    )


@pytest.mark.ranks(3, 4, limit=30)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """Three steps of AdamW end with the parameters of one process."""
    expected = alone(seed, 3)
    for tensor_ranks in layouts(world_size)[:2]:
        run = Run(exercise, seed, tensor_ranks)
        for step in range(3):
            run.train(step)
        when = f"after 3 steps with {tensor_ranks} tensor ranks of {world_size}"
        check_parameters(run, expected, when)


@pytest.mark.ranks(4, limit=30)
def test_policies_reach_their_groups(exercise, rank, world_size, seed):
    """The blocks compute with ``policy``; the model returns ``root_policy``'s type."""
    low = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
    policies = (
        MixedPrecisionPolicy(**low),
        MixedPrecisionPolicy(**low, output_dtype=torch.float32),
    )
    model = Network(seed, torch.float32)
    run = Run(exercise, seed, 2, model, policies)
    seen = []
    run.model.blocks[-1].mlp.register_forward_hook(
        lambda _module, _inputs, output: seen.append(output.dtype)
    )
    scores = run.model(batch_of(seed, 0)[0])
    expect.equal(seen, [torch.bfloat16], "the type in which the last block computes")
    expect.equal(scores.dtype, torch.float32, "the type of what the model returns")


# The saves


def named():
    """The steps of the folders that count as checkpoints."""
    return sorted(path.name for path in FOLDER.glob("checkpoint-*"))


def with_its_own_group_and_folder(save):
    """``async_save``, refused in the group of the steps, and under the last name."""

    def async_save(*args, **kwargs):
        expect.that(
            kwargs.get("process_group") is not None,
            "async_save got no process_group: the collectives of the save would run "
            "between those of the steps. Pass it self.group",
        )
        folder = Path(kwargs.get("checkpoint_id") or "")
        expect.that(
            not folder.name.startswith("checkpoint-"),
            f"async_save writes into {folder.name}, which has its name before it is "
            "complete: save in self.unfinished(steps_run)",
        )
        return save(*args, **kwargs)

    return async_save


def saver_of(exercise, run, every):
    dcp.async_save = with_its_own_group_and_folder(dcp.async_save)
    if dist.get_rank() == 0:
        FOLDER.mkdir(exist_ok=True)
    dist.barrier()
    return exercise.Saver(FOLDER, every, run.model, run.optimizer)


class HeldWriter:
    """Shards are written when ``go`` is set; from the main thread, at once."""

    def __init__(self):
        self.go, self.in_main = threading.Event(), False
        self.write, held = FileSystemWriter.write_data, self

        def write_data(writer, plan, planner):
            if threading.current_thread() is threading.main_thread():
                held.in_main = True
            elif dist.get_rank() == dist.get_world_size() - 1:
                held.go.wait(20)  # the last rank has the slowest disk
            return held.write(writer, plan, planner)

        FileSystemWriter.write_data = write_data

    def stop(self):
        self.go.set()
        FileSystemWriter.write_data = self.write


def finish(saver):
    saver.finish()
    dist.barrier()


@pytest.mark.ranks(3, 4, limit=40)
def test_saves_every_few_steps(exercise, rank, world_size, seed):
    """Every second of five steps, under the names of the steps."""
    run = Run(exercise, seed, layouts(world_size)[0])
    saver = saver_of(exercise, run, 2)
    for step in range(5):
        run.train(step)
        saver.after_step(step + 1)
    finish(saver)
    expect.equal(named(), ["checkpoint-2", "checkpoint-4"], "the checkpoints")
    left = sorted(path.name for path in FOLDER.glob("unfinished-*"))
    expect.equal(left, [], "the folders that are not finished at the end")
    for name in named():
        check_contents(FOLDER / name, run.model, world_size)


def check_contents(folder, model, world_size):
    """All parameters and moments, once, in files of all ranks."""
    expect.that(
        (folder / ".metadata").is_file(),
        f"{folder.name} has its name, and isn't complete: the next start trusts "
        "the name",
    )
    reader = dcp.FileSystemReader(folder)
    entries = reader.read_metadata().state_dict_metadata.values()
    tensors = [entry for entry in entries if isinstance(entry, TensorStorageMetadata)]
    saved = sum(entry.size.numel() for entry in tensors)
    least = sum(parameter.numel() for parameter in model.parameters())
    expect.that(
        saved >= least * (1 + MOMENTS),
        f"{folder.name} has {saved} values: the {least} of the parameters and as many "
        f"of both moments of AdamW are {least * (1 + MOMENTS)}",
    )
    writers = {path.name.split("_")[2] for path in folder.glob("__*.distcp")}
    silent = sorted({str(number) for number in range(world_size)} - writers)
    expect.that(
        not silent,
        f"{folder.name} has no file of rank {', '.join(silent)}: each rank saves its "
        "own shards",
    )


@pytest.mark.ranks(4, limit=40)
def test_name_waits_for_the_slowest_rank(exercise, rank, world_size, seed):
    """In the background; the folder gets its name when all of it is written."""
    run = Run(exercise, seed, layouts(world_size)[0])
    saver = saver_of(exercise, run, 2)
    writer = HeldWriter()
    try:
        run.train(0)
        run.train(1)
        saver.after_step(2)
        expect.right_way(
            not writer.in_main,
            "after_step wrote the checkpoint itself: training waits until all of it is "
            "on the disk",
        )
        expect.that(
            saver.pending is not None,
            "saver.pending is None after the step of a save: finish() waits for it",
        )
        run.train(2)  # the save must be of the parameters before it
        saver.after_step(3)
        dist.barrier()
        expect.equal(named(), [], "the checkpoints while a rank still writes")
        dist.barrier()
        writer.go.set()
        pending = saver.pending
        expect.that(pending is not None, "pending is None while a rank still writes")
        pending[1].result()
        dist.barrier()
        run.train(3)
        run.train(4)
        saver.after_step(5)
        dist.barrier()
        expect.equal(
            named(),
            ["checkpoint-2"],
            "the checkpoints at the first step after the last rank has written",
        )
        finish(saver)
    finally:
        writer.stop()
    again = Run(exercise, seed, layouts(world_size)[0])
    steps = exercise.resume(FOLDER, again.model, again.optimizer)
    expect.number(steps, 2, "what resume returns")
    check_parameters(again, alone(seed, 2), "in checkpoint-2, saved during step 3")


@pytest.mark.ranks(3, limit=40)
def test_signal_on_one_rank_saves_on_all(exercise, rank, world_size, seed):
    """One rank gets SIGUSR2 in step 3; all save once, and continue."""
    run = Run(exercise, seed, layouts(world_size)[0])
    saver = saver_of(exercise, run, 100)
    for step in range(5):
        run.train(step)
        if step == 2 and rank == world_size - 2:
            os.kill(os.getpid(), signal.SIGUSR2)
        saver.after_step(step + 1)
        if step == 2:
            check_all_save(saver)
    finish(saver)
    expect.equal(named(), ["checkpoint-3"], "the checkpoints after one signal")
    check_contents(FOLDER / "checkpoint-3", run.model, world_size)


def check_all_save(saver):
    """Else the ranks that save wait for the others, until the limit."""
    saving = [False] * dist.get_world_size()
    dist.all_gather_object(saving, saver.pending is not None)
    alone = [str(rank) for rank, begun in enumerate(saving) if begun]
    expect.that(
        all(saving),
        f"of ranks 0 to {len(saving) - 1}, those that save step 3 are: "
        f"{', '.join(alone) or 'none'}. One rank got the signal, but a save needs "
        "every rank",
    )


# The resume


@pytest.mark.ranks(3, 4, limit=60)
def test_resumes_on_another_mesh(exercise, rank, world_size, seed):
    """Saved on one mesh, loaded on others: the next steps are those of one process."""
    meshes = layouts(world_size)
    run = Run(exercise, seed, meshes[0])
    saver = saver_of(exercise, run, 2)
    for step in range(2):
        run.train(step)
        saver.after_step(step + 1)
    finish(saver)
    expected = alone(seed, 4)
    for tensor_ranks in meshes[1:]:
        layout = f"with {tensor_ranks} instead of {meshes[0]} tensor ranks"
        again = Run(exercise, seed, tensor_ranks, Network(seed + 1))
        steps = exercise.resume(FOLDER, again.model, again.optimizer)
        expect.number(steps, 2, f"what resume returns {layout}")
        for step in (2, 3):
            again.train(step)
        when = f"two steps after resuming {layout}"
        check_parameters(again, expected, when)


@pytest.mark.ranks(4, limit=60)
def test_resumes_from_the_newest_complete_one(exercise, rank, world_size, seed):
    """Of 9, 10 and an unfinished 11, it's 10; of no checkpoint, it's from the start."""
    run = Run(exercise, seed, 2)
    before = {name: whole(p).clone() for name, p in run.model.named_parameters()}
    saver = saver_of(exercise, run, 1)
    steps = exercise.resume(FOLDER, run.model, run.optimizer)
    expect.number(steps, 0, "what resume returns without a checkpoint")
    check_parameters(run, before, "after resume without a checkpoint")
    run.optimizer.param_groups[0]["lr"] = SLOWER
    for step in (9, 10):
        run.train(step - 1)
        saver.after_step(step)
    finish(saver)
    if rank == 0:
        (FOLDER / "unfinished-11").mkdir()
    dist.barrier()
    expected = {name: whole(p).clone() for name, p in run.model.named_parameters()}
    again = Run(exercise, seed, 2, Network(seed + 1))
    steps = exercise.resume(FOLDER, again.model, again.optimizer)
    expect.number(steps, 10, "what resume returns with the checkpoints of 9 and 10")
    check_parameters(again, expected, "in checkpoint-10")
    rate = float(again.optimizer.param_groups[0]["lr"])
    expect.that(
        rate == SLOWER,
        f"after resume, the optimizer has the learning rate {rate}, and it had "
        f"{SLOWER} when it was saved: put the loaded states in by set_state_dict",
    )
