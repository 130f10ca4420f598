"""What docs/lessons/16_two_dimensions says, tried out in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence on the page. test_16_two_dimensions_claims.py has them run.
"""

import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.gpt_training import _sum_over_ranks
from common.parallel.mesh import Grid, make_mesh, split_blocks

fsdp_tensor_parallel = import_module("16_fsdp_tensor_parallel")
part_of = fsdp_tensor_parallel.part_of
shard = fsdp_tensor_parallel.shard
train_step = fsdp_tensor_parallel.train_step

SIZES = Sizes(width=24, heads=12, blocks=1, context=5)
CPU = torch.device("cpu")
GRIDS = {4: Grid(data=2, tensor=2), 6: Grid(data=2, tensor=3)}

warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")


def network(seed):
    torch.manual_seed(seed)
    return ByteGPT(SIZES).double()


def batch(seed, step=0):
    generator = torch.Generator().manual_seed(1000 * seed + step)
    pieces = torch.randint(256, (12, SIZES.context + 1), generator=generator)
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()


def sharded(seed, grid):
    mesh = make_mesh(grid, CPU)
    return shard(network(seed), mesh), mesh


@pytest.mark.ranks(4, 6, limit=60)
def test_place_on_the_grid_by_arithmetic(rank, world_size, seed):
    """The last axis varies fastest: rank r is at data place r // t and tensor place
    r % t; its tensor group begins at r // t * t, its data group is r % t, r % t + t and
    so on."""
    grid = GRIDS[world_size]
    mesh, t = make_mesh(grid, CPU), grid.tensor
    expect.equal(tuple(mesh.get_coordinate()), (rank // t, rank % t), "the place")
    for axis, ranks in {
        "tensor": [rank // t * t + place for place in range(t)],
        "data": [rank % t + place * t for place in range(grid.data)],
    }.items():
        group = mesh[axis].get_group()
        expect.equal(dist.get_process_group_ranks(group), ranks, f"the {axis} group")


@pytest.mark.ranks(4, 6, limit=60)
def test_rank_holds_the_part_drawn_where_it_stands(rank, world_size, seed):
    """mlp.down.weight is on the axes data and tensor, as (Shard(dim=0), Shard(dim=1)):
    the data axis cuts its rows, the tensor axis its columns."""
    grid = GRIDS[world_size]
    model, mesh = sharded(seed, grid)
    weight = model.blocks[0].mlp.down.weight
    expect.equal(weight.device_mesh.mesh_dim_names, ("data", "tensor"), "its axes")
    expect.equal(tuple(weight.placements), (Shard(0), Shard(1)), "its placements")
    down, right = mesh.get_coordinate()
    whole = network(seed).blocks[0].mlp.down.weight.detach()
    part = whole.chunk(grid.data, 0)[down].chunk(grid.tensor, 1)[right]
    expect.equal(weight.to_local().detach().clone(), part.clone(), "the part")


@pytest.mark.ranks(4, 6, limit=60)
def test_strided_says_that_the_tensor_axis_has_cut_first(rank, world_size, seed):
    """mlp.up.weight is cut twice along tensor dim 0."""
    grid = GRIDS[world_size]
    model, mesh = sharded(seed, grid)
    weight = model.blocks[0].mlp.up.weight
    found = [repr(placement) for placement in weight.placements]
    cut_first = f"_StridedShard(dim=0, sf={grid.tensor})"
    expect.equal(found, [cut_first, repr(Shard(0))], "its placements")
    down, right = mesh.get_coordinate()
    whole = network(seed).blocks[0].mlp.up.weight.detach()
    part = whole.chunk(grid.tensor, 0)[right].chunk(grid.data, 0)[down]
    expect.equal(weight.to_local().detach().clone(), part.clone(), "the part")


@pytest.mark.ranks(4, limit=60)
def test_gradscaler_on_a_grid_lets_some_ranks_step(rank, world_size, seed):
    """Lesson 17: it asks only the ranks of the first gradient's mesh, here data, so one
    rank's infinite gradient of a cut weight stops only that rank's data group."""
    model, mesh = sharded(seed, GRIDS[4])
    model.float()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    inputs, targets = (part_of(x, GRIDS[4]) for x in batch(seed))
    scaler.scale(next_byte_loss(model(inputs), targets)).backward()
    if rank == 3:
        model.blocks[0].mlp.up.weight.grad.to_local().fill_(torch.inf)
    scaler.step(optimizer)
    scaler.update()
    with_rank_3 = mesh.get_coordinate()[1] == 1
    skipped = scaler.get_scale() < 4.0
    expect.equal(skipped, with_rank_3, "whether this rank skips the step")


@pytest.mark.ranks(4, 6, limit=60)
def test_norm_is_on_the_data_axis_alone(rank, world_size, seed):
    """The weight of a norm is on the data axis alone; the ranks of a tensor group have
    equal gradients of it."""
    model, mesh = sharded(seed, GRIDS[world_size])
    inputs, targets = (part_of(x, GRIDS[world_size]) for x in batch(seed))
    next_byte_loss(model(inputs), targets).backward()
    weight = model.blocks[0].mlp_norm.weight
    expect.equal(weight.device_mesh.mesh_dim_names, ("data",), "its axes")
    mine = weight.grad.to_local()
    first = mine.clone()
    group = mesh["tensor"].get_group()
    dist.broadcast(first, src=dist.get_process_group_ranks(group)[0], group=group)
    expect.close(mine, first, "the gradient of the norm")


@pytest.mark.ranks(4, limit=60)
def test_part_of_the_batch_by_rank_is_wrong_without_an_error(rank, world_size, seed):
    """If every rank takes a part of its own, shapes fit, the loss falls, and the
    gradients are wrong."""
    model, _ = sharded(seed, GRIDS[4])
    alone = network(seed)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    inputs, targets = batch(seed)
    next_byte_loss(alone(inputs), targets).backward()
    losses = []
    for step in range(8):
        parts = inputs.chunk(4)[rank].clone(), targets.chunk(4)[rank].clone()
        loss = train_step(model, optimizer, *parts)
        losses += _sum_over_ranks([loss / dist.get_world_size()])
        if step == 0:
            name = "the gradient of the first MLP"
            found = model.blocks[0].mlp.up.weight.grad.full_tensor()
            right = alone.blocks[0].mlp.up.weight.grad
            far = not torch.allclose(found, right, rtol=0.01)
            expect.that(far, f"{name} is right, although the text is mixed")
    expect.that(losses[-1] < losses[0], f"the loss does not fall: {losses}")


@pytest.mark.ranks(4, limit=60)
def test_sharding_before_cutting_is_refused(rank, world_size, seed):
    """Cannot distribute a DTensor with device mesh: fully_shard came before
    parallelize_module."""
    model, mesh = network(seed), make_mesh(GRIDS[4], CPU)
    fully_shard(model, mesh=mesh["data"])
    expect.raises(
        ValueError,
        split_blocks,
        model,
        mesh["tensor"],
        words=["Cannot distribute a DTensor with device mesh"],
    )


@pytest.mark.ranks(4, limit=60)
def test_clip_grad_norm_refuses_two_kinds_of_parameters(rank, world_size, seed):
    """All operands in aten.stack.default must have the same mesh: clip_grad_norm_ over
    norms, on the data axis alone, and columns, on both."""
    model, _ = sharded(seed, GRIDS[4])
    inputs, targets = batch(seed)
    next_byte_loss(model(inputs), targets).backward()
    expect.raises(
        RuntimeError,
        torch.nn.utils.clip_grad_norm_,
        model.parameters(),
        1.0,
        words=["All operands in aten.stack.default must have the same mesh"],
    )


@pytest.mark.ranks(4, limit=60)
def test_what_several_ranks_hold_is_written_once(rank, world_size, seed, shared_dir):
    """The norms within a tensor group are written once: two shards, not four; and of
    the replicas of HSDP, one writes."""
    kinds = {"grid": GRIDS[4], "hsdp": Grid(replicas=2, data=2)}
    for name, grid in kinds.items():
        model, _ = sharded(seed, grid)
        optimizer = torch.optim.AdamW(model.parameters())
        state, _ = get_state_dict(model, optimizer)
        dcp.save({"model": state}, checkpoint_id=shared_dir / name)
        metadata = dcp.FileSystemReader(shared_dir / name).read_metadata()
        for weight in ("mlp_norm.weight", "mlp.down.weight"):
            key = f"model.blocks.0.{weight}"
            chunks = metadata.state_dict_metadata[key].chunks
            stored = [i for i in metadata.storage_data if i.fqn == key]
            parts = 4 if (name, weight) == ("grid", "mlp.down.weight") else 2
            expect.equal(len(chunks), parts, f"shards of {weight}, {name}")
            expect.equal(len(stored), parts, f"written parts of {weight}, {name}")


@pytest.mark.ranks(4, limit=60)
def test_saved_shards_are_read_one_at_a_time(rank, world_size, seed, shared_dir):
    """Each rank reads the saved shards that overlap with its own, whole, and copies its
    part out of each."""
    mesh = init_device_mesh("cpu", (world_size,))
    whole = torch.arange(8.0 * world_size).view(world_size, 8)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    dcp.save({"rows": rows}, checkpoint_id=shared_dir / "rows")
    load, shapes = torch.load, []

    def watched(*arguments, **options):
        tensor = load(*arguments, **options)
        shapes.append(list(tensor.shape))
        return tensor

    torch.load = watched
    for cut, read in ((Shard(1), world_size), (Shard(0), 1)):
        shapes.clear()
        part = distribute_tensor(torch.zeros_like(whole), mesh, [cut])
        dcp.load({"rows": part}, checkpoint_id=shared_dir / "rows")
        expect.equal(shapes, [[1, 8]] * read, f"saved shards read, cut by {cut}")
        own = whole.chunk(world_size, cut.dim)[rank]
        expect.equal(part.to_local().clone(), own.clone(), "the rank's part")
    torch.load = load


@pytest.mark.ranks(4, limit=60)
def test_bias_of_the_layers_cut_by_rows_stays_whole(rank, world_size, seed):
    """The biases of the two layers cut by rows stay whole on the tensor axis."""
    model, _ = sharded(seed, GRIDS[4])
    for layer in (model.blocks[0].mlp.down, model.blocks[0].attention.out):
        expect.equal(tuple(layer.bias.placements), (Shard(0), Replicate()), "the bias")
