"""What docs/lessons/15_sharded_data_parallel says of FSDP, tried out in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence on the page. test_15_sharded_data_parallel_claims.py has them run.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
)
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.measure import UnshardedBytes

fsdp = import_module("15_fsdp")
watch_a_step = import_module("instruments.15_timeline").watch_a_step

SIZES = Sizes(width=12, heads=3, blocks=3, context=6)  # 12: divides among 2, 3 and 4
CPU = torch.device("cpu")
PLAIN = argparse.Namespace(mixed_precision=False, keep_whole=False, prefetch=None)


def gpt(seed):
    torch.manual_seed(seed)
    return ByteGPT(SIZES)


def tokens(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(BYTES, (2, SIZES.context), generator=generator)


def take_a_step(model, optimizer, batch):
    optimizer.zero_grad()
    next_byte_loss(model(batch), batch).backward()
    optimizer.step()


@pytest.mark.ranks(3)
def test_optimizer_made_too_early_steps_nothing(rank, seed):
    """An optimizer that was made before fully_shard has the old parameters: nothing
    moves, and nothing fails. Afterwards the parameters are DTensors."""
    for early in (True, False):
        model = gpt(seed)
        optimizer = torch.optim.AdamW(model.parameters(), 0.1)
        fsdp.shard(model, PLAIN, CPU)
        if not early:
            optimizer = torch.optim.AdamW(model.parameters(), 0.1)
        for _ in range(2):
            take_a_step(model, optimizer, tokens(seed + rank))
        for (name, mine), old in zip(
            model.named_parameters(), gpt(seed).parameters(), strict=True
        ):
            expect.that(isinstance(mine, DTensor), f"{name} is no DTensor")
            whole = mine.full_tensor().detach()
            same = torch.equal(whole, old.detach())
            expect.equal(same, early, f"{name} where it was, optimizer early: {early}")


@pytest.mark.ranks(3)
def test_each_rank_keeps_its_rows_of_the_weights_that_it_has(rank, world_size, seed):
    """Unlike DDP, fully_shard doesn't send rank 0's weights to the others."""
    model = gpt(seed + rank)
    fsdp.shard(model, PLAIN, CPU)
    of_ranks = [
        gpt(seed + other).blocks[0].mlp.up.weight.detach()
        for other in range(world_size)
    ]
    rows = [whole.chunk(world_size)[r] for r, whole in enumerate(of_ranks)]
    mixed = model.blocks[0].mlp.up.weight.full_tensor().detach()
    expect.equal(mixed, torch.cat(rows), "rows of each rank's own weights")
    expect.that(not torch.equal(mixed, of_ranks[0]), "all rows are rank 0's")


@pytest.mark.ranks(2)
def test_whole_state_is_on_every_rank_unless_it_goes_to_the_cpu(rank, seed):
    """Without cpu_offload=True, every rank keeps the whole state; with it, rank 0."""
    model = gpt(seed)
    fsdp.shard(model, PLAIN, CPU)
    names = {name for name, _ in model.named_parameters()}
    for offload in (False, True):
        options = StateDictOptions(full_state_dict=True, cpu_offload=offload)
        state = get_model_state_dict(model, options=options)
        has = rank == 0 or not offload
        expect.equal(set(state), names if has else set(), f"the names on rank {rank}")
        for value in state.values():
            expect.that(not isinstance(value, DTensor), "a whole tensor")


@pytest.mark.ranks(3)
def test_norm_of_the_own_shards_is_another(rank, seed):
    """clip_grad_norm_ takes the norm over the shards of all ranks; the norm of a
    rank's own shards is smaller, and another on each rank."""
    model = gpt(seed)
    fsdp.shard(model, PLAIN, CPU)
    next_byte_loss(model(tokens(seed + rank)), tokens(seed)).backward()
    local = torch.stack(
        [p.grad.to_local().square().sum() for p in model.parameters()]
    ).sum()
    whole = torch.stack(
        [p.grad.full_tensor().square().sum() for p in model.parameters()]
    ).sum()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9).full_tensor()
    expect.close(norm, whole.sqrt(), "the norm", atol=1e-5, rtol=1e-5)
    expect.that(local < 0.9 * whole, "the own shards have nearly all of the norm")


@pytest.mark.ranks(2, 3)
def test_without_groups_everything_is_whole_at_once(rank, world_size, seed):
    """With fully_shard of the root alone the whole model is gathered at once."""
    peaks = []
    for blocks_too in (False, True):
        model = gpt(seed)
        numel = sum(p.numel() for p in model.parameters())
        if blocks_too:
            fsdp.shard(model, PLAIN, CPU)
        else:
            fully_shard(model)
        with UnshardedBytes() as whole:
            next_byte_loss(model(tokens(seed)), tokens(seed)).backward()
        peaks.append(whole.peak_bytes)
    expect.that(peaks[0] >= 4 * numel, f"{peaks[0]} of {4 * numel} bytes were whole")
    expect.that(peaks[1] < peaks[0], f"groups made no difference: {peaks}")


@pytest.mark.ranks(3)
def test_forward_communicates_also_without_gradients(rank, seed, ledger):
    """A forward pass gathers, in an evaluation, too: all ranks must make it."""
    model = gpt(seed)
    fsdp.shard(model, PLAIN, CPU)
    ledger.clear()
    with torch.no_grad():
        model(tokens(seed))
    gathers = [op for op in ledger.ops() if op.startswith("all_gather")]
    expect.equal(len(gathers), 1 + SIZES.blocks, "gathers in an evaluation")


@pytest.mark.ranks(2)
def test_a_part_of_the_model_called_by_itself(rank, seed):
    """model.head(x) before the root's forward: mixed torch.Tensor and DTensor.
    register_fsdp_forward_method makes another method gather first."""
    x = torch.randn(2, SIZES.context, SIZES.width)
    model = gpt(seed)
    fsdp.shard(model, PLAIN, CPU)
    expect.raises(RuntimeError, model.head, x, words=["mixed torch.Tensor and DTensor"])
    model = gpt(seed)
    type(model).score = lambda self, hidden: self.head(hidden)
    expected = model.head(x)
    fsdp.shard(model, PLAIN, CPU)
    register_fsdp_forward_method(model, "score")
    expect.close(model.score(x), expected, "the scores", atol=1e-6, rtol=1e-6)


@pytest.mark.ranks(2)
def test_state_dict_has_shards(rank, seed):
    """model.state_dict() has the shards, as DTensors; it sends nothing."""
    model = gpt(seed)
    fsdp.shard(model, PLAIN, CPU)
    for name, value in model.state_dict().items():
        expect.that(isinstance(value, DTensor), f"{name} is no DTensor")
        halves = 2 * value.to_local().numel()
        expect.equal(halves, value.numel(), f"twice a shard of {name}")


@pytest.mark.ranks(2)
def test_parameters_on_the_cpu_need_no_pinned_memory(rank, seed):
    """CPUOffloadPolicy(pin_memory=False) works without a GPU; pinned memory does
    not."""
    model = gpt(seed)
    fully_shard(model, offload_policy=CPUOffloadPolicy(pin_memory=False))
    take_a_step(model, torch.optim.SGD(model.parameters(), 0.1), tokens(seed))

    def pinned():
        model = gpt(seed)
        fully_shard(model, offload_policy=CPUOffloadPolicy())
        take_a_step(model, torch.optim.SGD(model.parameters(), 0.1), tokens(seed))

    if not torch.cuda.is_available():
        expect.raises(RuntimeError, pinned)


@pytest.mark.ranks(2)
def test_order_of_a_step(rank, seed):
    """A block is gathered, computes and is freed; in backward the block before it is
    gathered already when it computes; the root is whole from beginning to end."""
    model = gpt(seed)
    fsdp.shard(model, PLAIN, CPU)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = tokens(seed)
    take_a_step(model, optimizer, batch)
    events = watch_a_step(lambda: take_a_step(model, optimizer, batch))
    forward = [
        f"{w} blocks.{b}" for b in range(3) for w in ("gather", "forward", "free")
    ]
    begin = ["gather the root", "forward the root"]
    expect.equal(events[:11], begin + forward, "forward")
    backward = ["gather blocks.2", "backward the root", "gather blocks.1"]
    backward += ["backward blocks.2", "free blocks.2", "reduce-scatter blocks.2"]
    backward += ["gather blocks.0", "backward blocks.1", "free blocks.1"]
    backward += ["reduce-scatter blocks.1", "backward blocks.0", "free blocks.0"]
    backward += ["reduce-scatter blocks.0", "free the root", "reduce-scatter the root"]
    expect.equal(events[11:], backward, "backward")


@pytest.mark.ranks(2)
def test_prefetch_asks_for_one_block_more(rank, seed):
    """--prefetch 1 asks for one block more in forward: before this one is free."""
    for prefetch in (None, 1):
        model = gpt(seed)
        given = vars(PLAIN) | {"prefetch": prefetch}
        fsdp.shard(model, argparse.Namespace(**given), CPU)
        optimizer = torch.optim.AdamW(model.parameters())
        batch = tokens(seed)
        take_a_step(model, optimizer, batch)
        events = watch_a_step(lambda: take_a_step(model, optimizer, batch))  # noqa: B023
        early = events.index("gather blocks.1") < events.index("free blocks.0")
        expect.equal(early, prefetch == 1, f"early, with prefetch {prefetch}")


@pytest.mark.ranks(2)
def test_meta_device(rank, seed):
    """A model can be made on the meta device, sharded, and then filled shard by
    shard: no rank ever holds it whole."""
    with torch.device("meta"):
        model = gpt(seed)
    fsdp.shard(model, PLAIN, CPU)
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    batch = tokens(seed)
    before = next_byte_loss(model(batch), batch).item()
    for _ in range(5):
        take_a_step(model, optimizer, batch)
    after = next_byte_loss(model(batch), batch).item()
    expect.that(after < before - 0.5, f"the loss went from {before} to {after}")
