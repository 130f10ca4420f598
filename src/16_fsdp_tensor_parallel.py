"""Train the byte GPT on a grid of ranks: shards along one axis, columns along another.

Run from the folder of the workshop:

    torchrun --standalone --nproc-per-node=4 src/16_fsdp_tensor_parallel.py 300
    torchrun --standalone --nproc-per-node=4 src/16_fsdp_tensor_parallel.py 300 \\
        --tensor-ranks 1 --replicas 2                        # HSDP
    torchrun --standalone --nproc-per-node=4 src/16_fsdp_tensor_parallel.py 300 \\
        --checkpoints checkpoints --save-every 100 --async-save
"""

import argparse
import os
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from common.accounting import (
    Activations,
    Traffic,
    compare,
    gradient_bytes,
    optimizer_bytes,
    parameter_bytes,
)
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import (
    BadInput,
    choose_backend,
    choose_device,
    describe_world,
    log,
    one_line_errors,
    positive_int,
    speaks_first,
    torchrun_local_rank,
)
from common.formulas import calls, held, sent
from common.gpt_training import (
    Text,
    check_divides,
    count_parameters,
    make_gpt,
    make_optimizer,
    parse_text_training,
    run_and_exit,
    sizes_of,
)
from common.mesh import Grid, axis_ranks, make_mesh, plan_grid
from common.sharded_checkpoint import Checkpoints, check_folder
from common.snapshot import check_saved
from common.tensor_plan import split_blocks


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--tensor-ranks",
        metavar="N",
        type=positive_int,
        default=2,
        help="ranks that share each block's columns and rows (default: %(default)s)",
    )
    add(
        "--replicas",
        metavar="N",
        type=positive_int,
        default=1,
        help="times that all shards are there (default: %(default)s)",
    )
    add(
        "--checkpoints",
        metavar="FOLDER",
        type=Path,
        help="of checkpoint-STEPS; the newest complete one is continued from",
    )
    add(
        "--save-every",
        metavar="STEPS",
        type=positive_int,
        help="steps between two checkpoints (default: none is saved)",
    )
    add(
        "--async-save",
        action="store_true",
        help="go on training while a checkpoint is written",
    )


def shard(model: ByteGPT, mesh: DeviceMesh) -> ByteGPT:
    """Leave this rank its part of the model: first its columns, then its shard."""
    axes = mesh.mesh_dim_names or ()
    if "tensor" in axes:
        split_blocks(model, mesh["tensor"])
    data = mesh["replica", "data"] if "replica" in axes else mesh["data"]
    for block in model.blocks:
        fully_shard(block, mesh=data)
    return fully_shard(model, mesh=data)  # what is left: embedding and head


def make_sharded(
    args: argparse.Namespace, mesh: DeviceMesh, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """The same model as on one device, in parts, and an optimizer of these parts."""
    model = shard(make_gpt(args, device), mesh)
    return model, make_optimizer(model.parameters(), args.learning_rate)


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


def mean_over_ranks(loss: torch.Tensor) -> float:
    """The loss of the global batch: all parts of it are equally large."""
    # Every rank: [] -> [], the ranks of a tensor group all bring the same number.
    dist.all_reduce(loss)
    return loss.item() / dist.get_world_size()


def part_of(batch: torch.Tensor, grid: Grid) -> torch.Tensor:
    """This rank's pieces of the global batch; a view would keep all of it in memory."""
    return batch.chunk(grid.batch_parts)[grid.batch_part(dist.get_rank())].clone()


def count_a_step(
    args: argparse.Namespace, grid: Grid, mesh: DeviceMesh, text: Text
) -> str:
    """The tables of what rank 0 holds and sends, counted on a second model."""
    model, optimizer = make_sharded(args, mesh, text.device)
    inputs, targets = (part_of(batch, grid) for batch in text.batch(0))
    with Traffic() as traffic, Activations(model) as activations:
        train_step(model, optimizer, inputs, targets)
    on_rank = {
        "parameters": parameter_bytes(model),
        "gradients": gradient_bytes(model),
        "optimizer state": optimizer_bytes(optimizer),
        "activations": activations.peak_bytes,
    }
    travels, meetings = {}, {}
    for axis, ranks in {name: axis_ranks(mesh, name) for name in grid.axes}.items():
        along = [call for call in traffic.calls if call.ranks == ranks]
        if len(ranks) > 1:
            travels[f"{axis} axis"] = round(sum(call.on_the_wire for call in along))
            meetings[f"{axis} axis"] = len(along)
    sizes = sizes_of(args)
    tables = [compare(on_rank, held(sizes, grid, args.batch_size), "bytes on rank 0")]
    if travels:
        formula = sent(sizes, grid, args.batch_size)
        tables.append(compare(travels, formula, "bytes sent in a step"))
        tables.append(compare(meetings, calls(sizes, grid), "calls in a step"))
    return "\n".join(tables)


def train(args: argparse.Namespace, device: torch.device) -> str:
    """Train and print; returns why the last checkpoint is not saved, or ""."""
    grid = plan_grid(dist.get_world_size(), args.replicas, args.tensor_ranks)
    sizes = sizes_of(args)
    parts = "ranks that see different pieces"
    check_divides(args.batch_size, grid.batch_parts, "--batch-size", parts)
    text = Text(args, device)
    mesh = make_mesh(grid, device)
    model, optimizer = make_sharded(args, mesh, device)
    log(f"{count_parameters(model):,} parameters on {describe_world(device)}")
    log(f"Grid: {grid}")
    log(count_a_step(args, grid, mesh, text))
    steps_run, checkpoints = 0, None
    if args.checkpoints:
        checkpoints = Checkpoints(args.checkpoints, model, optimizer, sizes)
        steps_run = checkpoints.load_newest()
    for step, inputs, targets in text.steps(steps_run):
        part = part_of(inputs, grid), part_of(targets, grid)
        text.note(step, mean_over_ranks(train_step(model, optimizer, *part)))
        if checkpoints and args.save_every and (step + 1) % args.save_every == 0:
            checkpoints.save(step + 1, background=args.async_save)
    if checkpoints:
        checkpoints.wait()
    # Every rank scores all pieces, for it needs the others' shards and they its own.
    text.report(text.test_loss(model))
    return checkpoints.not_saved if checkpoints else ""


def join_or_alone() -> torch.device:
    """Join the other ranks, if torchrun has started any; returns this rank's device."""
    if "RANK" in os.environ:
        device = choose_device(torchrun_local_rank())
        dist.init_process_group(choose_backend(device))  # every rank
        return device
    device, store = choose_device(), dist.HashStore()  # in this process
    dist.init_process_group(choose_backend(device), store=store, rank=0, world_size=1)
    return device


@one_line_errors
def main() -> None:
    # The loss does nothing in place to the scores, which is what this warns of.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
    args = parse_text_training(__doc__, add_options)
    if args.save_every and not args.checkpoints:
        raise BadInput("--save-every needs --checkpoints FOLDER to save to")
    if args.async_save and not args.save_every:
        raise BadInput("--async-save needs --save-every STEPS, or nothing is saved")
    if args.checkpoints and speaks_first():
        check_folder(args.checkpoints, "--checkpoints")
    not_saved = train(args, join_or_alone())
    dist.destroy_process_group()
    check_saved(not_saved)


if __name__ == "__main__":
    run_and_exit(main)
