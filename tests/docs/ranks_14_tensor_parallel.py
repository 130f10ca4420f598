"""What docs/lessons/14_tensor_parallel says of mistakes and of torch, in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence on the page. test_14_tensor_parallel_claims.py has them run.
"""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import MLP, Attention, ByteGPT, Sizes, next_byte_loss
from common.parallel.tensor_parallel import (
    SLICES,
    Borders,
    kept_whole,
    own_bytes,
    vocabulary_loss,
    whole_scores,
)

ROOT = Path(__file__).resolve().parents[2]
tensor_by_hand = import_module("14_tensor_by_hand")
ParallelMLP, RowLinear = tensor_by_hand.ParallelMLP, tensor_by_hand.RowLinear
own_part, split_gpt = tensor_by_hand.own_part, tensor_by_hand.split_gpt
WHOLE = tensor_by_hand.WHOLE

SIZES = Sizes(width=12, heads=6, blocks=1, context=6)


def gpt(seed):
    torch.manual_seed(seed)
    return ByteGPT(SIZES).double()


def batch(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (2, 3, SIZES.context), generator=generator)


def everywhere(tensor):
    """[W, ...]: this tensor of each rank."""
    slots = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(slots, tensor.contiguous())
    return torch.stack(slots)


@pytest.mark.ranks(3)
def test_without_f_earlier_layers_learn_wrongly(rank, world_size, seed):
    """Without f loss and gradients of the layer are right; everything before it gets a
    wrong gradient, and a different one on each rank."""
    inputs, targets = batch(seed)
    whole, split = gpt(seed), gpt(seed)
    without_f = Borders(WHOLE.start, lambda x: x, WHOLE.leave, sliced=False)
    split_gpt(split, without_f)
    loss, expected = (
        vocabulary_loss(split(inputs), targets),
        next_byte_loss(whole(inputs), targets),
    )
    loss.backward()
    expected.backward()
    expect.close(loss, expected, "the loss")
    own = whole.head.score.weight.grad.chunk(world_size)[rank]
    expect.close(split.head.score.weight.grad, own, "the gradient of the head")
    found = split.embed.byte.weight.grad
    wrong = not torch.allclose(found, whole.embed.byte.weight.grad)
    expect.that(wrong, "the gradient of the embedding is right")
    others = everywhere(found)
    expect.that(not torch.allclose(others[0], others[1]), "it is the same on all ranks")


@pytest.mark.ranks(3)
def test_sum_that_sums_in_backward_too(rank, world_size, seed):
    """torch.distributed.nn.functional.all_reduce adds up in backward, too: gradients
    are t times too big."""
    torch.manual_seed(seed)
    mlp = MLP(SIZES).double()
    x = torch.randn(2, 6, 12, dtype=torch.float64)
    grads = []
    twice = replace(WHOLE, leave=differentiable.all_reduce)
    for borders in (WHOLE, twice):
        layer = ParallelMLP(mlp, borders)
        layer(x).square().sum().backward()
        grads.append(layer.up.weight.grad)
    expect.close(grads[1], world_size * grads[0], "the gradient of up")


@pytest.mark.ranks(3)
def test_bias_of_each_share(rank, world_size, seed):
    """The output is off by t - 1 times the bias if each rank adds it to its share;
    new layers whose bias is 0 do not show it."""
    torch.manual_seed(seed)
    whole = nn.Linear(6, 5).double()
    x = torch.randn(4, 6, dtype=torch.float64)
    row = RowLinear(whole, WHOLE.leave)
    mine = own_part(x, 1)
    wrong = WHOLE.leave(F.linear(mine, row.weight, row.bias))
    expected = whole(x) + (world_size - 1) * whole.bias
    expect.close(wrong, expected, "the output")


@pytest.mark.ranks(3)
def test_own_maximum_and_no_maximum(rank, world_size, seed):
    """The loss is inf, or wrong for large scores, if each rank subtracts its own
    maximum, or none."""
    generator = torch.Generator().manual_seed(seed)
    scores = 600 * torch.randn(4, 9, generator=generator, dtype=torch.float64)
    target = torch.zeros(4, dtype=torch.long)
    expected = F.cross_entropy(scores, target, reduction="none")
    mine = scores.chunk(world_size, 1)[rank]
    none = mine.exp().sum(1)
    dist.all_reduce(none)
    expect.that(none.log().isinf().any(), "without a maximum nothing overflows")
    largest = mine.max(1).values
    total = (mine - largest[:, None]).exp().sum(1)
    dist.all_reduce(total)
    losses = total.log() + largest - scores[:, 0]
    everybodys = everywhere(losses)
    wrong = [not torch.allclose(each, expected) for each in everybodys]
    expect.that(all(wrong), "the own maximum gives the right loss on some rank")


@pytest.mark.ranks(2)
def test_gradient_of_a_sum_is_one_number(rank, world_size, seed):
    """What sum() passes back is a single number with stride 0."""
    seen = []
    x = torch.ones(3, 4, requires_grad=True)
    y = x.view_as(x)
    y.register_hook(lambda gradient: seen.append(gradient))
    y.sum().backward()
    expect.equal(seen[0].stride(), (0, 0), "its strides")
    expect.equal(seen[0].untyped_storage().nbytes(), 4, "its bytes in memory")


@pytest.mark.ranks(3)
def test_norms_drift_apart_with_slices(rank, world_size, seed):
    """With slices, a rank has only a part of the gradient of what it holds whole."""
    inputs, targets = batch(seed)
    whole, split = gpt(seed), gpt(seed)
    split_gpt(split, SLICES)
    next_byte_loss(whole(inputs), targets).backward()
    vocabulary_loss(split(inputs), targets).backward()
    names = {id(p): name for name, p in split.named_parameters()}
    reference = dict(whole.named_parameters())
    for parameter in kept_whole(split):
        parts = everywhere(parameter.grad)
        name = names[id(parameter)]
        expect.close(parts.sum(0), reference[name].grad, f"the parts of {name}.grad")
        expect.that(not torch.allclose(parts[0], parts[1]), f"{name}.grad is equal")


@pytest.mark.ranks(3)
def test_places_start_again_if_tokens_are_cut_first(rank, world_size, seed):
    """If each rank embedded its own slice, its positions would start from 0 again,
    and nothing would fail."""
    inputs, _ = batch(seed)
    whole, split = gpt(seed), gpt(seed)
    split_gpt(split, replace(SLICES, start=lambda x: x))
    mine = inputs.chunk(world_size, 1)[rank]
    found = whole_scores(split(mine))
    expected = whole(inputs)
    expect.equal(found.shape, expected.shape, "the shape of the scores")
    expect.that(not torch.allclose(found, expected), "the scores are right")
    first = SIZES.context // world_size  # places that come before any cut
    expect.close(found[:, :first], expected[:, :first], "the scores of the first slice")


@pytest.mark.ranks(3)
def test_three_ranks_score_86_86_and_84_bytes(rank, world_size, seed):
    """The ranks score 86, 86 and 84 bytes, as torch.chunk divides."""
    first, end = own_bytes(world_size, rank, 256)
    expect.equal(end - first, (86, 86, 84)[rank], "bytes of this rank")
    own = torch.arange(256).chunk(world_size)[rank]
    expect.equal(list(range(first, end)), own.tolist(), "the bytes of this rank")


# by torch


def example():
    return run_path(str(ROOT / "docs" / "examples" / "14_one_layer.py"))


def one_layer(seed):
    """A mesh of all ranks, the layer and the input of the example."""
    from torch.distributed.device_mesh import init_device_mesh

    torch.manual_seed(seed)
    layer, x = nn.Linear(6, 12).double(), torch.randn(2, 6, dtype=torch.float64)
    return init_device_mesh("cpu", (dist.get_world_size(),)), layer, x


@pytest.mark.ranks(2, 3, limit=30)
def test_one_layer_by_columns_and_by_rows(rank, world_size, seed):
    """full_tensor() runs an all-gather for Shard and an all-reduce for Partial, and
    nothing else is sent once the tensors are distributed."""
    from torch.distributed.tensor.debug import CommDebugMode

    mesh, layer, x = one_layer(seed)
    for cut, sent in ("by_columns", "all_gather"), ("by_rows", "all_reduce"):
        with CommDebugMode() as mode:
            y = example()[cut](mesh, layer, x)
        expect.close(y, layer(x), f"the output {cut}")
        counts = {str(op): n for op, n in mode.get_comm_counts().items()}
        later = {op: n for op, n in counts.items() if "functional" in op}
        expect.equal([n for op, n in later.items() if sent in op], [1], f"{counts}")
        expect.equal(sum(later.values()), 1, f"collectives {cut}: {counts}")


@pytest.mark.ranks(2, 3, limit=30)
def test_a_part_of_what_every_rank_holds_is_not_sent(rank, world_size, seed):
    """From Replicate to Shard, nothing is sent: each rank just keeps its part."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.debug import CommDebugMode

    mesh, _, x = one_layer(seed)
    whole = distribute_tensor(x, mesh, [Replicate()])
    with CommDebugMode() as mode:
        part = whole.redistribute(mesh, [Shard(1)])
    expect.equal(mode.get_total_counts(), 0, "collectives from Replicate to Shard")
    expect.equal(part.to_local(), whole.to_local().chunk(world_size, 1)[rank], "a part")


@pytest.mark.ranks(2, 3, limit=30)
def test_placements_of_one_layer(rank, world_size, seed):
    """Columns give Shard(1), [2, 12/t] on each rank; rows give Partial(), [2, 12]; the
    parts are of rank 0's tensor."""
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    mesh, layer, x = one_layer(seed)
    whole = distribute_tensor(x, mesh, [Replicate()])
    part = distribute_tensor(x, mesh, [Shard(1)])
    expect.equal(list(part.to_local().shape), [2, 6 // world_size], "a part of x")
    columns = distribute_tensor(layer.weight, mesh, [Shard(0)])
    rows = distribute_tensor(layer.weight, mesh, [Shard(1)])
    some, shares = F.linear(whole, columns), F.linear(part, rows)
    expect.equal(some.placements, (Shard(1),), "placements of the columns")
    expect.equal(list(some.to_local().shape), [2, 12 // world_size], "some outputs")
    expect.equal(shares.placements, (Partial(),), "placements of the rows")
    expect.equal(list(shares.to_local().shape), [2, 12], "shares")
    own = distribute_tensor(torch.full((2,), float(rank)), mesh, [Replicate()])
    expect.equal(own.to_local().tolist(), [0.0, 0.0], "what rank 0 had")


def parallel_attention(seed, once):
    """Attention cut by parallelize_module, with one f or with three."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    from common.parallel.mesh import block_plan

    torch.manual_seed(seed)
    attention = Attention(SIZES).double()
    plan = {
        name.partition(".")[2]: style
        for name, style in block_plan(False).items()
        if name.startswith("attention") and (once or "." in name)
    }
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return parallelize_module(attention, mesh, plan)


@pytest.mark.ranks(3, limit=30)
def test_one_f_for_query_key_and_value(rank, world_size, seed):
    """Without the PrepareModuleInput the results are the same, with three all-reduces
    in backward instead of one; CommDebugMode counts them."""
    from torch.distributed.tensor.debug import CommDebugMode

    x = torch.randn(2, 6, 12, dtype=torch.float64, requires_grad=True)
    found = []
    for once in (True, False):
        attention = parallel_attention(seed, once)
        x.grad = None
        y = attention(x)
        with CommDebugMode() as mode:
            y.square().sum().backward()
        counts = {str(op): n for op, n in mode.get_comm_counts().items()}
        found.append((sum(counts.values()), y.detach(), x.grad))
        expect.that(all("all_reduce" in op for op in counts), f"calls: {counts}")
    expect.equal([found[0][0], found[1][0]], [1, 3], "all-reduces in backward")
    expect.close(found[1][1], found[0][1], "the output")
    expect.close(found[1][2], found[0][2], "the gradient of the input")


@pytest.mark.ranks(2, limit=30)
def test_heads_that_the_ranks_do_not_divide(rank, world_size, seed):
    """unflatten: Provided sizes ..., if the ranks do not divide the heads."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    from common.parallel.mesh import block_plan

    block = ByteGPT(Sizes(12, 3, 1, 6)).blocks[0]
    mesh = init_device_mesh("cpu", (world_size,))
    parallelize_module(block, mesh, block_plan(False))
    x = torch.randn(2, 6, 12)
    expect.raises(RuntimeError, block, x, words=["unflatten: Provided sizes"])


@pytest.mark.ranks(2, limit=30)
def test_backward_belongs_into_loss_parallel(rank, world_size, seed):
    """got mixed torch.Tensor and DTensor: backward() is outside of loss_parallel()."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import loss_parallel

    split_by_torch = import_module("14_tensor_parallel").split_gpt

    inputs, targets = batch(seed)
    split = gpt(seed)
    split_by_torch(split, init_device_mesh("cpu", (world_size,)), False)
    with loss_parallel():
        loss = next_byte_loss(split(inputs), targets)
    words = ["got mixed torch.Tensor and DTensor"]
    expect.raises(RuntimeError, loss.backward, words=words)
