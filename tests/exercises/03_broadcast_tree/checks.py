"""Checks of exercises/03_broadcast_tree.py."""

import time

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()


def own_tensor(seed, rank):
    generator = torch.Generator().manual_seed(100 * seed + rank)
    return torch.randn(3, 2, generator=generator, dtype=torch.float64)


def check_broadcast(exercise, rank, seed, root):
    expected = own_tensor(seed, root)
    memory = torch.stack([own_tensor(seed, rank)] * 2)
    exercise.tree_broadcast(memory[0], root)  # a part of a larger tensor
    tensor = memory[0].clone()
    local = None if rank == root else own_tensor(seed, rank)
    others = [r for r in range(dist.get_world_size()) if r not in (root, rank)]
    mistaken = {f"what rank {r} began with": own_tensor(seed, r) for r in others}
    what = f"the tensor of root {root}"
    expect.close(tensor, expected, what, local=local, mistaken=mistaken)
    # so that a message left over is not taken by the broadcast from the next root
    dist.barrier()


def rounds(calls):
    """Rounds until all messages are through, one message per rank and round.

    ``calls`` has for each rank its list of ("send" or "recv", peer), in order. The
    peer of a ``recv`` without a source is None: it takes what comes.
    """
    ready, done = [0] * len(calls), [0] * len(calls)
    waiting = True
    while waiting:
        waiting = False
        for rank, row in enumerate(calls):
            if done[rank] < len(row) and row[done[rank]][0] == "send":
                peer = row[done[rank]][1]
                following = calls[peer][done[peer] : done[peer] + 1]
                if following in ([("recv", rank)], [("recv", None)]):
                    ready[rank] = ready[peer] = 1 + max(ready[rank], ready[peer])
                    done[rank] += 1
                    done[peer] += 1
                    waiting = True
    return max(ready)


@pytest.mark.ranks(4)
def test_four_ranks_from_rank_0(exercise, rank, seed):
    """Four ranks, root 0: every rank gets the tensor of rank 0."""
    check_broadcast(exercise, rank, seed, root=0)


@pytest.mark.ranks(4)
def test_four_ranks_from_any_root(exercise, rank, seed):
    """Four ranks: each rank in turn is the root."""
    for root in range(4):
        check_broadcast(exercise, rank, seed, root)


@pytest.mark.ranks(3, 6, 7)
def test_not_a_power_of_two(exercise, rank, world_size, seed):
    """Three, six and seven ranks: each rank in turn is the root."""
    for root in range(world_size):
        check_broadcast(exercise, rank, seed, root)


@pytest.mark.ranks(4)
def test_a_late_root(exercise, rank, seed):
    """The tensor has arrived when the function returns, even from a late root."""
    if rank == 2:
        time.sleep(0.3)
    check_broadcast(exercise, rank, seed, root=2)


@pytest.mark.ranks(5)
def test_whole_numbers(exercise, rank, seed):
    """The tensor may have another dtype, such as int64: no number is rounded."""
    root = 3
    tensor, expected = (
        2**53 + 1 + (1000 * own_tensor(seed, r)).long() for r in (rank, root)
    )
    exercise.tree_broadcast(tensor, root)
    expect.equal(tensor, expected, f"the whole numbers of root {root}")


@pytest.mark.ranks(4, 5, 7)
def test_rounds_and_messages(exercise, rank, world_size, seed, ledger):
    """N - 1 messages in all, sent in log2(N) rounds, rounded up."""
    root = world_size - 2
    tensor = own_tensor(seed, rank)
    ledger.clear()
    exercise.tree_broadcast(tensor, root)
    others = sorted(set(ledger.ops()) - {"send", "recv"})
    mine = [(row.op, row.peer) for row in ledger.rows if row.op in ("send", "recv")]
    calls = [None] * world_size
    dist.all_gather_object(calls, mine)
    expect.close(tensor, own_tensor(seed, root), f"the tensor of root {root}")
    expect.right_way(
        others != ["barrier"],
        "barrier makes all ranks wait for each other, again and again: send and recv "
        "wait for the one rank that matters",
    )
    expect.right_way(
        not others, f"{', '.join(others)} does the work: build it from send and recv"
    )
    messages = sum(op == "send" for row in calls for op, _ in row)
    expect.right_way(
        messages == world_size - 1,
        f"{messages} messages were sent: {world_size - 1} are enough, "
        "one for each rank but the root",
    )
    needed = (world_size - 1).bit_length()
    found = rounds(calls)
    expect.right_way(
        found == needed,
        f"it takes {found} rounds: a tree needs {needed}, because every "
        "rank that has the tensor sends it on",
    )
