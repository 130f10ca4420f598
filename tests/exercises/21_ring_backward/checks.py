"""Checks of exercises/21_ring_backward.py: against autograd on whole sequences."""

import time

import pytest
import torch

from workshop.grader import expect

expect.nothing_is_averaged()

BATCH, HEADS, OWN, WIDTH = 2, 3, 4, 5
NAMES = ("query", "key", "value")


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def whole_inputs(seed, world_size):
    """Query, key, value and the gradient of the output, of all tokens."""
    return [
        drawn(seed + n, BATCH, HEADS, OWN * world_size, WIDTH).requires_grad_(n < 3)
        for n in range(4)
    ]


def softmax_attention(query, key, value):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    return scores.softmax(-1) @ value, scores.logsumexp(-1, keepdim=True)


def of_rank(tensor, rank, world_size):
    return tensor.detach().chunk(world_size, -2)[rank]


class Whole:
    """Attention on one device, and the shares of the gradients of each pair of ranks.

    ``shares[i][j]``: what the queries of rank i add with the keys of rank j, to the
    gradients of query, key and value.
    """

    def __init__(self, seed, world_size):
        self.inputs = whole_inputs(seed, world_size)
        *inputs, grad_out = self.inputs
        self.out, self.log_sum = softmax_attention(*inputs)
        self.out.backward(grad_out)
        self.grads = [tensor.grad for tensor in inputs]
        self.world_size = world_size

    def of(self, rank):
        """(query, log_sum, out, grad_out) of a rank's tokens, and (key, value)."""
        query, key, value, grad_out = (
            of_rank(tensor, rank, self.world_size) for tensor in self.inputs
        )
        out = of_rank(self.out, rank, self.world_size)
        log_sum = of_rank(self.log_sum, rank, self.world_size)
        return (query, log_sum, out, grad_out), torch.stack([key, value])

    def shares(self, rank, sender):
        (query, log_sum, out, grad_out), _ = self.of(rank)
        _, (key, value) = self.of(sender)
        return by_hand(query, log_sum, out, grad_out, key, value)

    def sum_to(self, rank, senders):
        """What several ranks' queries add to the gradients of this rank's keys."""
        both = [torch.stack(self.shares(sender, rank)[1:]) for sender in senders]
        return torch.stack(both).sum(0)


def by_hand(
    query,
    log_sum,
    out,
    grad_out,
    key,
    value,
    *,
    part=False,
    no_mean=False,
    own_mean=False,
    scaled=(True, True),
    signs=1,
):
    """Gradients of query, key and value; the keywords are what goes wrong."""
    scale = query.shape[-1] ** -0.5
    scores = query @ key.mT * scale
    weights = scores.softmax(-1) if part else (scores - log_sum).exp()
    mean = 0 if no_mean else (grad_out * out).sum(-1, keepdim=True)
    grad_weights = grad_out @ value.mT
    if own_mean:
        mean = (weights * grad_weights).sum(-1, keepdim=True)
    grad_scores = weights * (grad_weights - signs * mean)
    to_query = grad_scores * (scale if scaled[0] else 1) @ key
    to_key = (grad_scores * (scale if scaled[1] else 1)).mT @ query
    return to_query, to_key, weights.mT @ grad_out


MISTAKEN_PAIR = {
    "as with a softmax over the keys of this part alone": {"part": True},
    "without grad_out . out, which the softmax subtracts": {"no_mean": True},
    "with the sum over the keys of this part in place of grad_out . out": {
        "own_mean": True
    },
    "as if grad_out . out were added, not subtracted": {"signs": -1},
    "without the scale that the scores have": {"scaled": (False, False)},
}


def add_up(pairs):
    return [torch.stack(found).sum(0) for found in zip(*pairs, strict=True)]


@pytest.mark.ranks(1)
def test_contributions_of_one_pair(exercise, seed):
    """contributions: what each pair of ranks adds to the gradients."""
    parts = 3
    whole = Whole(seed, parts)
    for rank in range(parts):
        for sender in range(parts):
            mine, _ = whole.of(rank)
            _, pair = whole.of(sender)
            copies = [tensor.clone() for tensor in (*mine, pair)]
            found = exercise.contributions(*mine, pair)
            ok = isinstance(found, tuple) and len(found) == 2
            expect.that(ok, "contributions must return two: to query, and to the pair")
            to_query, to_pair = found
            for tensor, copy in zip((*mine, pair), copies, strict=True):
                expect.unchanged(tensor, copy, "what contributions was given")
            right = whole.shares(rank, sender)
            wrong = {
                name: by_hand(*mine, *pair, **options)
                for name, options in MISTAKEN_PAIR.items()
            }
            whole_pair = torch.stack(right[1:])
            expect.close(
                to_query,
                right[0],
                "what a pair adds to the gradient of the query",
                mistaken={name: grads[0] for name, grads in wrong.items()},
            )
            is_pair = torch.is_tensor(to_pair) and to_pair.shape == whole_pair.shape
            shape = list(to_pair.shape) if torch.is_tensor(to_pair) else to_pair
            expect.that(
                is_pair,
                f"what a pair adds to keys and values has shape {shape}, expected "
                f"{list(whole_pair.shape)}",
            )
            for n, name in ((1, "key"), (2, "value")):
                mistaken = {words: grads[n] for words, grads in wrong.items()}
                mistaken["that of the other of the two"] = right[3 - n]
                what = f"what a pair adds to the gradient of the {name}"
                expect.close(to_pair[n - 1], right[n], what, mistaken=mistaken)


def run(exercise, whole, rank):
    """This rank's tensors after forward and backward."""
    (query, _, out, grad_out), pair = whole.of(rank)
    mine = [tensor.clone().requires_grad_() for tensor in (query, *pair)]
    found = exercise.RingAttention.apply(*mine)
    expect.close(found, out, "the output")  # given
    found.backward(grad_out)
    return mine


def mistaken_keys(whole, rank):
    """What :func:`expect.gradient` calls the gradients of keys and values."""
    ranks = whole.world_size
    everyone = range(ranks)
    before, after = (rank - 1) % ranks, (rank + 1) % ranks
    own = torch.stack(whole.shares(rank, rank)[1:])
    names = {
        "what this rank's own queries add, and nothing of the other ranks": own,
        "without what this rank's own queries add": (
            whole.sum_to(rank, everyone) - own
        ),
        "what this rank's queries add to the keys of all ranks: these sums must go to "
        "the keys' owners": torch.stack(
            [torch.stack(whole.shares(rank, sender)[1:]) for sender in everyone]
        ).sum(0),
        f"1/{ranks} of the sum: nothing is to be averaged": (
            whole.sum_to(rank, everyone) / ranks
        ),
        "the sum over the keys of all ranks: each rank's keys have their own": (
            torch.stack([whole.sum_to(owner, everyone) for owner in everyone]).sum(0)
        ),
    }
    moves = {after: "once too few", before: "once too many"}
    if ranks == 2:  # the rank after is the rank before
        moves = {after: "once too few or too many"}
    for owner, words in moves.items():
        name = f"that of the keys of rank {owner}: passed on {words}"
        names[name] = whole.sum_to(owner, everyone)
    for left_out in everyone:
        if left_out != rank and ranks > 2:
            rest = [sender for sender in everyone if sender != left_out]
            names[f"without what the queries of rank {left_out} add"] = whole.sum_to(
                rank, rest
            )
    return names


@pytest.mark.ranks(2, 3, 4)
def test_gradient_of_the_queries(exercise, rank, world_size, seed):
    """query.grad: the sum over the keys of all ranks."""
    whole = Whole(seed, world_size)
    query, _, _ = run(exercise, whole, rank)
    right = of_rank(whole.grads[0], rank, world_size)
    own = whole.shares(rank, rank)[0]
    mistaken = {
        "what this rank's own keys add, and nothing of the other ranks": own,
        "without what this rank's own keys add": right - own,
        f"1/{world_size} of the sum: nothing is to be averaged": right / world_size,
        "the sum, and what own keys add once more: passed on once too often": (
            right + own
        ),
        "what the queries of all ranks add: a query's gradient stays on its rank": sum(
            whole.shares(sender, rank)[0] for sender in range(world_size)
        ),
        f"{world_size} times what this rank's own keys add: the keys have to move on": (
            world_size * own
        ),
    }
    last = whole.shares(rank, (rank + 1) % world_size)[0]
    if world_size > 2:
        after = (rank + 1) % world_size
        mistaken[f"without what the keys of rank {after} add, which arrive last"] = (
            right - last
        )
    expect.gradient(query, right, "the queries", mistaken=mistaken)


@pytest.mark.ranks(2, 3, 4)
def test_gradients_of_keys_and_values(exercise, rank, world_size, seed):
    """key.grad and value.grad: the sums over the queries of all ranks, at home."""
    whole = Whole(seed, world_size)
    _, key, value = run(exercise, whole, rank)
    names = mistaken_keys(whole, rank)
    for n, (tensor, name) in enumerate(((key, "the keys"), (value, "the values"))):
        right = of_rank(whole.grads[n + 1], rank, world_size)
        mistaken = {words: both[n] for words, both in names.items()}
        other = of_rank(whole.grads[2 - n], rank, world_size)
        swapped = "that of the values" if n == 0 else "that of the keys"
        mistaken[f"{swapped}: key and value are swapped"] = other
        expect.gradient(tensor, right, name, mistaken=mistaken)


@pytest.mark.ranks(3)
def test_twice_with_a_late_rank(exercise, rank, world_size, seed):
    """Two passes in a row, with rank 1 late; the second adds to the gradients."""
    whole = Whole(seed, world_size)
    (query, _, _, grad_out), pair = whole.of(rank)
    mine = [tensor.clone().requires_grad_() for tensor in (query, *pair)]
    for _ in range(2):
        if rank == 1:
            time.sleep(0.1)
        exercise.RingAttention.apply(*mine).backward(grad_out)
    for tensor, grad, name in zip(mine, whole.grads, NAMES, strict=True):
        right = 2 * of_rank(grad, rank, world_size)
        expect.gradient(tensor, right, f"the {name} after two passes")


@pytest.mark.ranks(4)
def test_only_neighbors_talk(exercise, rank, world_size, seed, ledger):
    """Backward sends to the next rank only, and at most 4 W tensors."""
    whole = Whole(seed, world_size)
    (query, _, _, grad_out), pair = whole.of(rank)
    mine = [tensor.clone().requires_grad_() for tensor in (query, *pair)]
    found = exercise.RingAttention.apply(*mine)
    ledger.clear()
    found.backward(grad_out)
    rows = list(ledger.rows)
    for tensor, grad, name in zip(mine, whole.grads, NAMES, strict=True):
        right = of_rank(grad, rank, world_size)
        expect.gradient(tensor, right, f"the {name}")
    others = sorted({row.op for row in rows} - {"send", "recv"})
    expect.right_way(
        not others,
        f"backward called {', '.join(others)}: in a ring, pass_on is all that's needed",
    )
    neighbors = {(rank + 1) % world_size, (rank - 1) % world_size}
    peers = {row.peer for row in rows}
    away = "a rank of a ring sends to the next rank only, by pass_on"
    expect.right_way(peers <= neighbors, away)
    sent = sum(row.numel for row in rows if row.op == "send")
    most = 4 * world_size * query.numel()
    expect.right_way(
        sent <= most,
        f"this rank sent {sent} numbers: keys, values and both gradients, passed on "
        f"{world_size} times, are {most}",
    )
