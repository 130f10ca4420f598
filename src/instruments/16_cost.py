"""Count what rank 0 of a grid holds, and what it sends along each axis in a step.

    torchrun --standalone --nproc-per-node=4 src/instruments/16_cost.py \\
        src/16_fsdp_tensor_parallel.py 60
    torchrun --standalone --nproc-per-node=4 src/instruments/16_cost.py \\
        src/16_fsdp_tensor_parallel.py 60 --tensor-ranks 1 --replicas 2

It runs one step of the program, and prints what it counted beside the formulas.
"""

import math
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.byte_gpt import BYTES, Sizes, sizes_of
from common.cost.counting import (
    FLOAT32,
    compare,
    head_activations,
    load_program,
    model_states,
)
from common.cost.measure import Sent, Traffic, count_step
from common.distributed import log, one_line_errors
from common.gpt_training import Batches, run_and_exit
from common.process_group import join_or_alone

Shape = tuple[int, ...]


def block_shapes(sizes: Sizes, tensor: int) -> list[Shape]:
    """Shapes of the parameters of one block on a rank of a tensor group."""
    width, hidden = sizes.width, sizes.hidden
    cut, narrow = width // tensor, hidden // tensor
    norms = 4 * [(width,)]
    columns = 3 * [(cut, width), (cut,)] + [(narrow, width), (narrow,)]
    rows = [(width, cut), (width,), (width, narrow), (width,)]
    return norms + columns + rows


def whole_shapes(sizes: Sizes) -> list[Shape]:
    """Shapes of what a tensor group does not cut: embedding and head."""
    width = sizes.width
    embed = [(BYTES, width), (sizes.context, width)]
    return [*embed, (width,), (width,), (BYTES, width), (BYTES,)]


def shard_numel(shapes: list[Shape], data: int) -> int:
    """Elements that rank 0 keeps: the rows of each tensor are dealt out."""
    return sum(-(-rows // data) * math.prod(rest) for rows, *rest in shapes)


def held(sizes: Sizes, grid, batch_size: int) -> dict[str, int]:
    """Bytes on rank 0, in float32; ``batch_size`` is the global one."""
    blocks = sizes.blocks * shard_numel(block_shapes(sizes, grid.tensor), grid.data)
    numel = blocks + shard_numel(whole_shapes(sizes), grid.data)
    pieces = batch_size // grid.batch_parts
    inside = 12 * sizes.width + sizes.heads  # of attention and MLP: cut
    at_the_ends = 4 * sizes.width + 4  # norms and what goes into them: whole
    saved = (at_the_ends + inside // grid.tensor) * pieces * sizes.context
    activations = FLOAT32 * sizes.blocks * saved + head_activations(sizes, pieces)
    return model_states(numel) | {"activations": activations}


def sent(sizes: Sizes, grid, batch_size: int) -> dict[str, int]:
    """Bytes that rank 0 sends in a step along each axis, by the ring algorithms."""
    blocks = sizes.blocks * shard_numel(block_shapes(sizes, grid.tensor), grid.data)
    ends = shard_numel(whole_shapes(sizes), grid.data)
    shard = FLOAT32 * (blocks + ends)
    stream = FLOAT32 * (batch_size // grid.batch_parts) * sizes.context * sizes.width
    gathered = FLOAT32 * (2 * blocks + ends) * (grid.data - 1)
    scattered = shard * (grid.data - 1)
    bytes_on_axis = {
        "replica": 2 * shard * (grid.replicas - 1) / grid.replicas,
        "data": gathered + scattered,
        "tensor": 4 * sizes.blocks * 2 * stream * (grid.tensor - 1) / grid.tensor,
    }
    return {f"{axis} axis": round(value) for axis, value in bytes_on_axis.items()}


def calls(sizes: Sizes, grid) -> dict[str, int]:
    """Collectives of a rank in a step, along each axis of more than one rank."""
    per_step = {
        "replica": sizes.blocks + 1,  # all_reduce
        "data": 3 * sizes.blocks + 2,  # all_gather twice and once, reduce_scatter
        "tensor": 4 * sizes.blocks,  # all_reduce
    }
    return {
        f"{axis} axis": n for axis, n in per_step.items() if grid.axes.get(axis, 1) > 1
    }


def axis_ranks(mesh: DeviceMesh, axis: str) -> tuple[int, ...]:
    """The ranks of this rank's group along an axis, as they are numbered in the world.

    Its own rank alone where the grid has no such axis.
    """
    if axis not in (mesh.mesh_dim_names or ()):
        return (dist.get_rank(),)
    return tuple(dist.get_process_group_ranks(mesh[axis].get_group()))


def along_axes(
    sent_in_step: list[Sent], groups: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, int], dict[str, int]]:
    """(bytes, calls) of a step along each axis of more than one rank."""
    size, count = {}, {}
    for axis, ranks in groups.items():
        if len(ranks) > 1:
            along = [call for call in sent_in_step if call.ranks == ranks]
            size[f"{axis} axis"] = round(sum(call.on_the_wire for call in along))
            count[f"{axis} axis"] = len(along)
    return size, count


@one_line_errors
def main() -> None:
    program = load_program(__doc__, ["16_fsdp_tensor_parallel.py"])
    config = program.parse_arguments()
    device = join_or_alone("nothing is divided, and nothing is sent", announce=False)
    grid = program.plan(config)
    batches = Batches(config, device)
    mesh = program.make_mesh(grid, device)
    both = program.build(config, mesh, device)
    inputs, targets = (program.part_of(batch, grid) for batch in batches.of_step(0))
    with Traffic() as traffic:
        step = partial(program.train_step, *both, inputs, targets)
        on_rank = count_step(*both, step)
    sizes, batch_size = sizes_of(config), config.batch_size
    log(compare(on_rank, held(sizes, grid, batch_size), "bytes on rank 0"))
    groups = {axis: axis_ranks(mesh, axis) for axis in grid.axes}
    size, count = along_axes(traffic.calls, groups)
    if size:
        log(compare(size, sent(sizes, grid, batch_size), "bytes sent in a step"))
        log(compare(count, calls(sizes, grid), "calls in a step"))
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
