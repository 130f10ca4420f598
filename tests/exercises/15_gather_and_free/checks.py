"""Checks of exercises/15_gather_and_free.py."""

import gc
import time
from collections import Counter

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

ROWS, COLUMNS, BATCH = 7, 5, 4
LETTING_GO = 2  # seconds; gloo's thread has a collective's tensors a moment longer


def draw(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def shard_of(weight, rank, world_size):
    """The rows that this rank holds, zeros where there are none."""
    n = -(-len(weight) // world_size)
    padded = torch.zeros(n * world_size, weight.shape[1], dtype=weight.dtype)
    padded[: len(weight)] = weight
    return padded[rank * n : (rank + 1) * n].clone()


def inputs_of(seed, world_size):
    """[W, B, columns]: another part of the batch for each rank."""
    return draw(seed + 300, world_size, BATCH, COLUMNS)


def loss_of(y):
    return torch.tanh(y).square().mean()


def wrongly_joined(weight, rank, world_size):
    """What the shards become, if they are joined otherwise; by its name."""
    shards = [shard_of(weight, other, world_size) for other in range(world_size)]
    rows = len(weight)
    return {
        "this rank's own rows, again and again": (
            torch.cat([shards[rank]] * world_size)[:rows]
        ),
        "the first row of each rank, then the second: rank 0's rows are first": (
            torch.stack(shards, dim=1).flatten(0, 1)[:rows]
        ),
        "joined with the last rank's rows first": torch.cat(shards[::-1])[:rows],
        "rank 0's rows, again and again": torch.cat(shards[:1] * world_size)[:rows],
        "the last rank's rows, again and again": (
            torch.cat(shards[-1:] * world_size)[:rows]
        ),
        "the sum of the ranks' rows, again and again": (
            torch.stack(shards).sum(0).repeat(world_size, 1)[:rows]
        ),
        "cut at the wrong end: the padding comes after the last rows": (
            torch.cat(shards)[-rows:]
        ),
    }


@pytest.mark.ranks(3, 4)
def test_gather_joins_the_rows(exercise, rank, world_size, seed):
    """gather returns the whole weight on every rank, without the padding."""
    for rows in (ROWS, 2 * world_size, 1):
        weight = draw(seed + rows, rows, COLUMNS)
        weight[1:2] = 0  # a row of zeros isn't padding
        shard = shard_of(weight, rank, world_size)
        if rank == 1:
            time.sleep(0.05)
        whole = exercise.gather(shard.clone(), rows)
        mistaken = wrongly_joined(weight, rank, world_size)
        expect.close(whole, weight, f"the weight of {rows} rows", mistaken=mistaken)


@pytest.mark.ranks(3, 4)
def test_output_is_that_of_the_whole_weight(exercise, rank, world_size, seed):
    """Forward gives x @ weight.T for this rank's part of the batch."""
    weight, x = draw(seed, ROWS, COLUMNS), inputs_of(seed, world_size)[rank]
    shard = shard_of(weight, rank, world_size)
    y = exercise.ShardedLinear.apply(x, shard, ROWS)
    expect.close(y, x @ weight.T, "the output")


def reference(weight, inputs):
    """Gradient of the weight for the whole batch, and of each rank's input."""
    whole = weight.clone().requires_grad_()
    xs = [x.clone().requires_grad_() for x in inputs]
    losses = [loss_of(x @ whole.T) for x in xs]
    torch.stack(losses).mean().backward()
    # of a rank's own loss, which is W times its share of the mean
    return whole.grad, [len(xs) * x.grad for x in xs]


WEIGHTED = "weighted by each rank's number of samples: all ranks count the same"


def by_samples(weight, inputs):
    """The gradient of the weight, each rank's weighted by its samples."""
    whole, count = weight.clone().requires_grad_(), sum(map(len, inputs))
    total = sum(len(x) * loss_of(x @ whole.T) for x in inputs)
    return torch.autograd.grad(total, whole)[0] / count


@pytest.mark.ranks(3, 4)
def test_gradients_are_those_of_one_process(exercise, rank, world_size, seed):
    """grad_x is of this rank's loss; the shard's is the mean over the ranks."""
    weight, inputs = draw(seed, ROWS, COLUMNS), inputs_of(seed, world_size)
    grad_weight, grad_inputs = reference(weight, inputs)
    x = inputs[rank].clone().requires_grad_()
    shard = shard_of(weight, rank, world_size).requires_grad_()
    added = torch.zeros(len(x), ROWS, dtype=torch.float64, requires_grad=True)
    doubled = 2 * added  # before the layer, so that its backward comes after
    loss = loss_of(exercise.ShardedLinear.apply(x, shard, ROWS) + doubled)
    if rank == 1:
        time.sleep(0.1)
    loss.backward()
    own = inputs[rank].clone(), weight.clone().requires_grad_()
    of_y = (own[0] @ own[1].T).detach().requires_grad_()
    loss_of(of_y).backward()
    loss_of(own[0] @ own[1].T).backward()
    as_mean = "divided by the ranks, though it belongs to this rank's loss alone"
    of_mean = "the mean over the ranks, though it belongs to this rank's loss alone"
    of_sum = "the sum over the ranks, though it belongs to this rank's loss alone"
    averaged = {
        as_mean: grad_inputs[rank] / world_size,
        of_mean: sum(grad_inputs) / world_size,
        of_sum: sum(grad_inputs),
    }
    expect.gradient(x, grad_inputs[rank], "the input", mistaken=averaged)
    expect.gradient(
        shard,
        shard_of(grad_weight, rank, world_size),
        "this rank's rows",
        local=shard_of(own[1].grad, rank, world_size),
    )
    expect.that(
        torch.allclose(added.grad, 2 * of_y.grad, rtol=1e-10, atol=1e-12),
        "backward changed the gradient that autograd gave it: what was added to the "
        "output gets a wrong one; work on a copy",
    )


@pytest.mark.ranks(3, 4)
def test_trains_two_layers_like_one_process(exercise, rank, world_size, seed):
    """Three steps of SGD and AdamW give two layers the weights of one process."""
    for name, make in (
        ("SGD", lambda p: torch.optim.SGD(p, 0.3, momentum=0.9)),
        ("AdamW", lambda p: torch.optim.AdamW(p, 0.05)),
    ):
        sizes = ((ROWS, COLUMNS), (2, ROWS))
        weights = [draw(seed + 7 * k, *size) for k, size in enumerate(sizes)]
        shards = [shard_of(w, rank, world_size).requires_grad_() for w in weights]
        mine, theirs = make(shards), make([w.requires_grad_() for w in weights])
        for step in range(3):
            inputs = inputs_of(seed + step, world_size)
            mine.zero_grad()
            hidden = exercise.ShardedLinear.apply(inputs[rank], shards[0], ROWS)
            y = exercise.ShardedLinear.apply(torch.tanh(hidden), shards[1], 2)
            loss_of(y).backward()
            mine.step()
            theirs.zero_grad()
            hidden = torch.tanh(inputs.flatten(0, 1) @ weights[0].T)
            loss_of(hidden @ weights[1].T).backward()
            theirs.step()
        for number, (a, b) in enumerate(zip(shards, weights, strict=True), start=1):
            expected = shard_of(b.detach(), rank, world_size)
            expect.close(a.detach(), expected, f"weight {number} after 3 of {name}")


def memories():
    """How many numbers lie at each address that a tensor of Python's holds."""
    gc.collect()
    kinds = (torch.Tensor, torch.nn.Parameter)
    found = [thing for thing in gc.get_objects() if type(thing) in kinds]
    return dict(map(memory, (t for t in found if t.dtype == torch.float64)))


def memory(tensor):
    """(address, how many numbers) of what a tensor is a view of."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes() // 8


@pytest.mark.ranks(3, 4, limit=30)
def test_nothing_whole_is_held_between_forward_and_backward(
    exercise, rank, world_size, seed
):
    """After forward a rank holds its rows, and backward gathers the others again."""
    rows = 40  # more numbers than anything else here
    weight, inputs = draw(seed, rows, COLUMNS), inputs_of(seed, world_size)
    grad_weight, _ = reference(weight, inputs)
    x, shard = inputs[rank].clone(), shard_of(weight, rank, world_size)
    expected = shard_of(grad_weight, rank, world_size)
    del weight, grad_weight
    shard.requires_grad_()
    before = memories()
    saved = {}

    def keep(tensor):
        saved.update([memory(tensor)])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = exercise.ShardedLinear.apply(x, shard, rows)
    known = {*before, memory(y)[0]}

    def held():
        found = memories() | saved
        return sum(number for k, number in found.items() if k not in known)

    most = (rows - len(shard)) * COLUMNS
    end = time.monotonic() + LETTING_GO
    while held() >= most and time.monotonic() < end:
        time.sleep(0.01)
    still_held = held()
    loss_of(y).backward()
    expect.close(shard.grad, expected, "the gradient of this rank's rows")
    expect.right_way(
        still_held < most,
        f"after forward this rank still holds the whole weight, {rows * COLUMNS} "
        "numbers, or what the others sent: keep the shard for backward, and gather "
        "there again",
    )


def whole_ones(ledger, shard):
    """How many times each call gave every rank more numbers than a shard has."""
    gives_all = (
        "all_reduce",
        "all_gather",
        "all_gather_into_tensor",
        "broadcast",
        "gather",
    )
    rows = [row for row in ledger.rows if row.op in gives_all]
    return Counter(row.op for row in rows if row.elements > shard.numel())


@pytest.mark.ranks(3, 4)
def test_what_travels(exercise, rank, world_size, seed, ledger):
    """The gradient is reduced to shards, not to a whole gradient on every rank."""
    weight, inputs = draw(seed, ROWS, COLUMNS), inputs_of(seed, world_size)
    inputs = [x[: 2 + number % 3] for number, x in enumerate(inputs)]
    shard = shard_of(weight, rank, world_size).requires_grad_()
    ledger.clear()
    loss = loss_of(exercise.ShardedLinear.apply(inputs[rank], shard, ROWS))
    gathers = whole_ones(ledger, shard)  # of the weight; backward needs them again
    ledger.clear()
    loss.backward()
    whole = sorted((whole_ones(ledger, shard) - gathers).elements())
    grad_weight, _ = reference(weight, inputs)
    expected = shard_of(grad_weight, rank, world_size)
    what = "the gradient of this rank's rows, with unequal parts of the batch"
    mistaken = {WEIGHTED: shard_of(by_samples(weight, inputs), rank, world_size)}
    expect.close(shard.grad, expected, what, mistaken=mistaken)
    expect.right_way(
        not whole,
        f"backward sends the gradient through {', '.join(whole)}: every rank gets all "
        "rows and throws most of them away. A reduce-scatter sends half as much",
    )
    dist.barrier()


@pytest.mark.ranks(3)
def test_weight_in_float32(exercise, rank, world_size, seed):
    """A weight in float32, as most are, has outputs and gradients in float32."""
    weight, inputs = draw(seed, ROWS, COLUMNS).float(), inputs_of(seed, world_size)
    inputs = inputs.float()
    shard = shard_of(weight, rank, world_size).requires_grad_()
    y = exercise.ShardedLinear.apply(inputs[rank], shard, ROWS)
    right = inputs[rank] @ weight.T
    expect.close(y, right, "the output in float32", atol=1e-5, rtol=1e-5)
    loss_of(y).backward()
    rows = shard_of(reference(weight, inputs)[0], rank, world_size)
    what = "this rank's rows in float32"
    expect.gradient(shard, rows, what, atol=1e-5, rtol=1e-5)
