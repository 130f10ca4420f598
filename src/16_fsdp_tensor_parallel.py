"""Train the byte GPT on a grid of ranks: shards along one axis, columns along another.

Run from the folder of the workshop:

    torchrun --standalone --nproc-per-node=4 src/16_fsdp_tensor_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/16_fsdp_tensor_parallel.py 300 \\
        --tensor-ranks 1 --replicas 2                        # HSDP
    torchrun --standalone --nproc-per-node=4 src/16_fsdp_tensor_parallel.py 300 \\
        --checkpoints checkpoints --save-every 100 --async-save
"""

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from common.byte_gpt import ByteGPT, next_byte_loss, sizes_of
from common.checkpoint import Checkpoints, check_folder, fill
from common.distributed import (
    BadInput,
    is_rank_0,
    log,
    one_line_errors,
    positive_int,
)
from common.gpt_training import (
    SEED,
    Batches,
    Progress,
    TextConfig,
    check_divides,
    make_gpt,
    make_optimizer,
    parse_text_training,
    run_and_exit,
    show_config,
)
from common.parallel.mesh import Grid, make_mesh, plan_grid, split_blocks
from common.process_group import join_or_alone

ALONE = "nothing is divided, and nothing is sent"
TENSOR_RANKS = 2  # unless --tensor-ranks says otherwise


@dataclass(frozen=True)
class Config(TextConfig):
    """The command line; the same on all ranks."""

    tensor_ranks: int | None  # None: TENSOR_RANKS, or 1 for a single rank
    replicas: int
    checkpoints: Path | None  # folder
    save_every: int | None  # steps; None saves nothing
    async_save: bool


def part_of(batch: torch.Tensor, grid: Grid) -> torch.Tensor:
    """This rank's pieces of the global batch; a view would keep all of it in memory."""
    return batch.chunk(grid.batch_parts)[grid.batch_part(dist.get_rank())].clone()


def shard(model: ByteGPT, mesh: DeviceMesh) -> ByteGPT:
    """Leave this rank its part of the model: first its columns, then its shard."""
    axes = mesh.mesh_dim_names or ()
    if "tensor" in axes:
        split_blocks(model, mesh["tensor"])
    data = mesh["replica", "data"] if "replica" in axes else mesh["data"]
    for block in model.blocks:
        fully_shard(block, mesh=data)
    return fully_shard(model, mesh=data)  # what is left: embedding and head


def build(
    config: Config, mesh: DeviceMesh, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """The same model as on one device, in parts, and an optimizer of these parts."""
    with torch.device("meta"):  # shapes, and no memory for the numbers
        model = make_gpt(config, device)
    fill(shard(model, mesh), device, SEED)
    return model, make_optimizer(model.parameters(), config.learning_rate)


def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """One step on this rank's pieces, [B, T] each; their mean loss."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()


def plan(config: Config) -> Grid:
    """The grid that the command line asks for, if the batch can be divided on it."""
    ranks = dist.get_world_size()
    tensor_ranks = config.tensor_ranks or min(TENSOR_RANKS, ranks)
    grid = plan_grid(ranks, config.replicas, tensor_ranks)
    parts = "ranks that see different pieces"
    check_divides(config.batch_size, grid.batch_parts, "--batch-size", parts)
    log(f"Grid: {grid}")
    return grid


def train(config: Config, device: torch.device) -> str:
    """Train and print; returns why the last checkpoint is not saved, or ""."""
    show_config(config)
    grid = plan(config)
    batches = Batches(config, device)
    model, optimizer = build(config, make_mesh(grid, device), device)
    steps_run, checkpoints = 0, None
    if config.checkpoints:
        sizes = sizes_of(config)
        checkpoints = Checkpoints(config.checkpoints, model, optimizer, sizes)
        steps_run = checkpoints.load_newest()
    progress = Progress(config, batches.entropy)
    for step in progress.steps(steps_run):
        inputs, targets = (part_of(batch, grid) for batch in batches.of_step(step))
        # ranks of one tensor group have the same loss
        loss = train_step(model, optimizer, inputs, targets)
        progress.note(step, loss / dist.get_world_size())
        if checkpoints and config.save_every and (step + 1) % config.save_every == 0:
            checkpoints.save(step + 1, background=config.async_save)
    if checkpoints:
        checkpoints.wait()
    # Every rank scores all pieces: each needs the others' shards.
    progress.report(batches.test_loss(model))
    return checkpoints.not_saved if checkpoints else ""


def add_options(parser: argparse.ArgumentParser) -> None:
    add, number = parser.add_argument, {"metavar": "N", "type": positive_int}
    default = f"(default: {TENSOR_RANKS}, or 1 for a single rank)"
    tensor = f"ranks that share each block's columns and rows {default}"
    add("--tensor-ranks", **number, help=tensor)
    copies = "complete sets of shards (default: %(default)s)"
    add("--replicas", **number, default=1, help=copies)
    folder = "of checkpoint-STEPS; resumed from the newest complete one"
    add("--checkpoints", metavar="FOLDER", type=Path, help=folder)
    every = "steps between two checkpoints (default: none is saved)"
    add("--save-every", metavar="STEPS", type=positive_int, help=every)
    background = "continue training while a checkpoint is written"
    add("--async-save", action="store_true", help=background)


def parse_arguments() -> Config:
    # The loss does nothing in place to the scores, which is what this warns of.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
    config = parse_text_training(__doc__, Config, add_options)
    if config.save_every and not config.checkpoints:
        raise BadInput("--save-every needs --checkpoints FOLDER to save to")
    if config.async_save and not config.save_every:
        raise BadInput("--async-save needs --save-every STEPS, or nothing is saved")
    if config.checkpoints and is_rank_0():
        check_folder(config.checkpoints, "--checkpoints")
    return config


@one_line_errors
def main() -> None:
    config = parse_arguments()
    not_saved = train(config, join_or_alone(ALONE, timeout=None, announce=False))
    dist.destroy_process_group()
    if not_saved:
        raise BadInput(not_saved)


if __name__ == "__main__":
    run_and_exit(main)
