"""Checks of exercises/21_ulysses.py: against slices of the whole tensor."""

import time

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

from workshop.grader import expect

expect.nothing_is_averaged()

BATCH, WIDTH = 2, 3
TOKENS = 2  # of each rank
GATHERING = ("all_gather", "all_gather_into_tensor", "broadcast", "all_reduce")


def whole_of(seed, heads, tokens):
    """[B, heads, tokens, h], the same on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    shape = BATCH, heads, tokens, WIDTH
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def part(whole, dim, number, ranks):
    return whole.chunk(ranks, dim)[number]


def joined_wrongly(whole, number, ranks, joined, mine):
    """Wrong results of an exchange, of the right shape, by their names.

    ``joined``: the tensor dim to join along; ``mine``: the one that was cut.
    """
    right = part(whole, mine, number, ranks)
    pieces = right.chunk(ranks, joined)
    turned = torch.cat(pieces[::-1], joined)
    moved = torch.cat([*pieces[1:], pieces[0]], joined)
    alternating = torch.stack(pieces, joined + 1).flatten(joined, joined + 1)
    every_nth = whole.movedim(mine, 0)[number::ranks].movedim(0, mine)
    tokens, heads = ("tokens", "heads") if joined == 2 else ("heads", "tokens")
    names = {
        f"right, except that the {tokens} are joined in reverse order": turned,
        f"right, except that the {tokens} are joined from another rank on": moved,
        f"right, except that the {tokens} of the ranks alternate: keep those of a rank "
        "together": alternating,
        f"of {heads} {number}, {number + ranks} ...: a rank has consecutive ones": (
            every_nth
        ),
        f"of rank 0's {heads}: each rank has its own": part(whole, mine, 0, ranks),
        f"of the {heads} of the next rank": part(
            whole, mine, (number + 1) % ranks, ranks
        ),
    }
    own = part(whole, joined, number, ranks)
    if right.numel() == own.numel():
        names["this rank's own numbers in a new shape: nothing was exchanged"] = (
            own.reshape(right.shape)
        )
        own_pieces = own.chunk(ranks, mine)
        names["made of this rank's own numbers: nothing was exchanged"] = torch.cat(
            own_pieces, joined
        )
        arrived = torch.stack(
            [
                part(part(whole, joined, r, ranks), mine, number, ranks)
                for r in range(ranks)
            ]
        )
        name = (
            "what arrived, in another shape: it has to be joined along its tensor dim"
        )
        names[name] = arrived.reshape(right.shape)
        everybody = [
            part(whole, joined, r, ranks).reshape(ranks, -1)[number]
            for r in range(ranks)
        ]
        cut = "cut along tensor dim 0, the batch, before it was sent"
        names[cut] = torch.stack(everybody).reshape(right.shape)
        shape = pieces[0].shape
        names[f"joined as it should be, but {cut}"] = torch.cat(
            [numbers.reshape(shape) for numbers in everybody], joined
        )
    return names


def check_shape(found, right, what, whole, ranks):
    """Say which shape was found, and what it would be the shape of."""
    is_tensor = torch.is_tensor(found)
    expect.that(is_tensor, f"{what} is a {type(found).__name__}, not a tensor")
    shape, wanted = list(found.shape), list(right.shape)
    world = dist.get_world_size()
    heads, tokens = whole.shape[1:3]
    because = ""
    if world > ranks and right.shape != found.shape:
        because = f": the group has {ranks} ranks, of {world}"
    elif shape == [BATCH, heads, tokens, WIDTH]:
        because = ": that is everything"
    elif shape == [BATCH, wanted[2], wanted[1], WIDTH]:
        because = ": heads and tokens are swapped"
    elif shape in (list(part(whole, dim, 0, ranks).shape) for dim in (1, 2)):
        because = ": that is the shape of what was given"
    elif len(shape) == 5:
        because = ": join the parts that arrived"
    message = f"{what} has shape {shape}, expected {wanted}{because}"
    expect.that(shape == wanted, message)


def check_group(ledger, what, ranks):
    """Say which call went to all ranks instead of the group's."""
    for row in () if ledger is None else ledger.rows:
        other = row.group is not None and len(row.group) != ranks
        told = f"{what}: {row.op} was called on ranks {row.group}: pass it the group"
        expect.that(not other, told)


def compare_heads(
    exercise, whole, rank, ranks, label, group=None, own=None, ledger=None
):
    if own is None:
        own = part(whole, 2, rank, ranks).clone()
    before = own.clone()
    found = exercise.to_heads(own, group)
    right = part(whole, 1, rank, ranks)
    what = f"to_heads {label}"
    check_shape(found, right, what, whole, ranks)
    check_group(ledger, what, ranks)
    names = joined_wrongly(whole, rank, ranks, 2, 1)
    expect.close(found, right, what, mistaken=names)
    expect.unchanged(own, before, "the tokens that were given, afterwards")


def compare_tokens(
    exercise, whole, rank, ranks, label, group=None, own=None, ledger=None
):
    if own is None:
        own = part(whole, 1, rank, ranks).clone()
    before = own.clone()
    found = exercise.to_tokens(own, group)
    right = part(whole, 2, rank, ranks)
    what = f"to_tokens {label}"
    check_shape(found, right, what, whole, ranks)
    check_group(ledger, what, ranks)
    names = joined_wrongly(whole, rank, ranks, 1, 2)
    expect.close(found, right, what, mistaken=names)
    expect.unchanged(own, before, "the heads that were given, afterwards")


@pytest.mark.ranks(1)
def test_heads_that_do_not_divide(exercise):
    """check_heads: a ValueError that names heads and ranks, or nothing."""
    for heads, ranks in ((6, 4), (3, 2), (4, 8), (12, 5)):
        expect.raises(
            ValueError,
            exercise.check_heads,
            heads,
            ranks,
            words=[str(heads), str(ranks)],
            what=f"{heads} heads on {ranks} ranks",
        )
    for heads, ranks in ((6, 3), (8, 8), (5, 1), (12, 4)):
        exercise.check_heads(heads, ranks)


@pytest.mark.ranks(3, 4)
def test_tokens_become_heads(exercise, rank, world_size, seed):
    """to_heads: all tokens, in order, of this rank's heads."""
    for heads in (world_size, 2 * world_size):
        whole = whole_of(seed, heads, TOKENS * world_size)
        label = f"of {heads} heads"
        if rank == 1:
            time.sleep(0.05)
        compare_heads(exercise, whole, rank, world_size, label)


@pytest.mark.ranks(3, 4)
def test_heads_become_tokens(exercise, rank, world_size, seed):
    """to_tokens: all heads, in order, of this rank's tokens."""
    for heads in (world_size, 2 * world_size):
        whole = whole_of(seed, heads, TOKENS * world_size)
        label = f"of {heads} heads"
        compare_tokens(exercise, whole, rank, world_size, label)


@pytest.mark.ranks(3)
def test_views(exercise, rank, world_size, seed):
    """Tensors that aren't contiguous, as after transpose(1, 2)."""
    whole = whole_of(seed, 2 * world_size, TOKENS * world_size)
    turned = whole.transpose(1, 2).contiguous().transpose(1, 2)
    own = part(turned, 2, rank, world_size)
    compare_heads(exercise, whole, rank, world_size, "of a view", own=own)
    own = part(turned, 1, rank, world_size)
    compare_tokens(exercise, whole, rank, world_size, "of a view", own=own)


@pytest.mark.ranks(4)
def test_heads_are_refused_before_anything_is_sent(exercise, rank, seed, ledger):
    """6 heads on 4 ranks: a ValueError on every rank, and no message."""
    own = whole_of(seed, 6, TOKENS)
    ledger.clear()
    what = "to_heads of 6 heads on 4 ranks"
    expect.raises(ValueError, exercise.to_heads, own, words=["6", "4"], what=what)
    called = ", ".join(ledger.ops())
    expect.that(not called, f"{called} was called before the refusal")


@pytest.mark.ranks(4)
def test_two_groups(exercise, rank, world_size, seed, ledger):
    """Ranks 0 and 2 share one batch, 1 and 3 another: only the group exchanges."""
    groups = [dist.new_group([first, first + 2]) for first in (0, 1)]
    group, place = groups[rank % 2], rank // 2
    label = f"in the group of ranks {rank % 2} and {rank % 2 + 2}"
    for heads in (4, 6):  # 4 ranks couldn't share 6
        whole = whole_of(seed + rank % 2, heads, 8)
        ledger.clear()
        compare_heads(exercise, whole, place, 2, label, group, ledger=ledger)
        compare_tokens(exercise, whole, place, 2, label, group, ledger=ledger)
    uneven = part(whole_of(seed, 3, 8), 2, place, 2).clone()
    what = "to_heads of 3 heads, in a group of 2 ranks"
    words = ["3", "2"]
    expect.raises(ValueError, exercise.to_heads, uneven, group, words=words, what=what)


@pytest.mark.ranks(4)
def test_attention_of_all_tokens(exercise, rank, world_size, seed):
    """There and back, with causal attention between: as on one device."""
    whole = [whole_of(seed + n, 4, 8) for n in range(3)]
    heads = [exercise.to_heads(part(x, 2, rank, world_size).clone()) for x in whole]
    out = F.scaled_dot_product_attention(*heads, is_causal=True)
    found = exercise.to_tokens(out)
    right = F.scaled_dot_product_attention(*whole, is_causal=True)
    what = "attention of own tokens to all"
    expect.close(found, part(right, 2, rank, world_size), what)


@pytest.mark.ranks(4)
def test_each_rank_gets_what_it_needs(exercise, rank, world_size, seed, ledger):
    """An all-to-all, each way: gathering everything sends c times as much."""
    whole = whole_of(seed, 8, TOKENS * world_size)
    for function, cut, kept in (("to_heads", 2, 1), ("to_tokens", 1, 2)):
        own = part(whole, cut, rank, world_size).clone()
        ledger.clear()
        found = getattr(exercise, function)(own)
        rows = list(ledger.rows)
        right = part(whole, kept, rank, world_size)
        expect.close(found, right, f"{function} of 8 heads")
        used = sorted({row.op for row in rows if row.op in GATHERING})
        expect.right_way(
            not used,
            f"{function} called {', '.join(used)}: that gives every rank everything, "
            "and an all_to_all_single only what it needs",
        )
        sent = sum(row.numel for row in rows if row.op.startswith("all_to_all"))
        expect.right_way(
            sent <= own.numel(),
            f"{function} sends {sent} numbers and has {own.numel()}: each rank needs "
            "1 / c of them",
        )
