"""Checks of exercises/22_combine.py: against all outputs in one process."""

import time
from dataclasses import dataclass

import pytest
import torch

from workshop.grader import expect

expect.nothing_is_averaged()

WIDTH = 3
TOKENS = [4, 0, 6, 3]  # of each rank: one has none
OWN_EXPERTS = 2


@dataclass
class Scene:
    """All rows of all ranks, and what each rank is given of them."""

    rank: int
    tokens: list[int]
    source: torch.Tensor  # [rows] the rank of each row's token
    token: torch.Tensor  # [rows] that token's number on its rank
    expert: torch.Tensor  # [rows]
    outputs: torch.Tensor  # [rows, H] of the experts
    gates: torch.Tensor  # [rows]

    @property
    def ranks(self):
        return len(self.tokens)

    def is_sent(self):
        """Rows of this rank's tokens, sorted by expert."""
        return (self.source == self.rank).nonzero().flatten()

    def is_received(self):
        """Rows for this rank's experts, by rank, then by expert."""
        return (self.expert // OWN_EXPERTS == self.rank).nonzero().flatten()

    def order(self):
        return self.expert[self.is_received()].argsort(stable=True)

    def trip(self, exercise):
        of_rank = self.expert[self.is_sent()] // OWN_EXPERTS
        sent = of_rank.bincount(minlength=self.ranks).tolist()
        from_rank = self.source[self.is_received()]
        received = from_rank.bincount(minlength=self.ranks).tolist()
        token = self.token[self.is_sent()]
        return exercise.Trip(sent, received, self.order(), token)

    def mixed(self, outputs, gates):
        """The right result of this rank, from all rows."""
        sent = self.is_sent()
        weighted = gates[sent, None] * outputs[sent]
        mixed = torch.zeros(self.tokens[self.rank], WIDTH, dtype=torch.float64)
        return mixed.index_add(0, self.token[sent], weighted)


def scene(seed, rank, tokens, k=2, only=None):
    """Each token chooses k experts; ``only``: the experts that are chosen."""
    generator = torch.Generator().manual_seed(seed)
    experts = OWN_EXPERTS * len(tokens)
    rows = []
    for source, count in enumerate(tokens):
        for token in range(count):
            allowed = torch.arange(experts) if only is None else torch.tensor(only)
            picked = allowed[torch.randperm(len(allowed), generator=generator)[:k]]
            rows += [(source, int(expert), token) for expert in picked]
    rows.sort()
    table = torch.tensor(rows, dtype=torch.int64).view(-1, 3)
    outputs = torch.randn(len(rows), WIDTH, generator=generator, dtype=torch.float64)
    gates = torch.rand(len(rows), generator=generator, dtype=torch.float64)
    columns = table[:, 0], table[:, 2], table[:, 1]
    return Scene(rank, tokens, *columns, outputs, gates)


def without_token(found, weighted, count):
    """The sums of rows that are added to tokens in some order of their own.

    The one that was found, else any.
    """
    rows = torch.arange(len(weighted))
    every = max(1, len(rows) // max(1, count))
    results = []
    for to in (rows % max(1, count), rows // every):
        allowed = to < count
        zeros = torch.zeros(count, WIDTH, dtype=torch.float64)
        results.append(zeros.index_add(0, to[allowed], weighted[allowed]))
    for one in results:
        if one.shape == found.shape and torch.allclose(one, found.detach().to(one)):
            return one
    return results[0]


def mistaken(all_of, outputs, gates, found):
    """Wrong results of this rank, by their names."""
    sent = all_of.is_sent()
    token, count = all_of.token[sent], all_of.tokens[all_of.rank]
    weighted = gates[sent, None] * outputs[sent]
    last = torch.zeros(count, WIDTH, dtype=torch.float64)
    for row, to in zip(weighted, token.tolist(), strict=True):
        last[to] = row
    bare = torch.zeros_like(last).index_add(0, token, outputs[sent])
    of_token = torch.zeros(count, dtype=torch.float64).index_add(0, token, gates[sent])
    normed = torch.zeros_like(last).index_add(0, token, weighted)
    normed /= of_token.clamp(min=1e-300).unsqueeze(1)
    rows_of_token = token.bincount(minlength=count).clamp(min=1).unsqueeze(1)
    mean = torch.zeros_like(last).index_add(0, token, weighted) / rows_of_token
    names = {
        "only the last output of each token: the others are overwritten": last,
        "the sum of the outputs without their gates": bare,
        "the mean of each token's outputs, not their sum": mean,
        "as if rows were added to tokens in turn: `trip.token` has each row's token": (
            without_token(found, weighted, count)
        ),
        "with gates that add up to 1 for each token: use them as they are": normed,
    }
    forward = torch.zeros_like(outputs)
    unsorted = torch.zeros_like(outputs)
    for rank in range(all_of.ranks):
        there = Scene(rank, *list(vars(all_of).values())[1:])
        rows, order = there.is_received(), there.order()
        unsorted[rows] = outputs[rows][order]
        forward[rows] = outputs[rows][order][order]
    wrong = {
        "of outputs in the order of the experts: undo it before they return": unsorted,
        "of outputs that were put in order twice: `order` must be undone": forward,
    }
    for name, returned in wrong.items():
        weighted = gates[sent, None] * returned[sent]
        names[name] = torch.zeros_like(last).index_add(0, token, weighted)
    return names


def own_leaves(all_of):
    """This rank's outputs, as its experts computed them, and its gates."""
    outputs = all_of.outputs[all_of.is_received()][all_of.order()]
    gates = all_of.gates[all_of.is_sent()]
    return outputs.clone().requires_grad_(), gates.clone().requires_grad_()


def compare(exercise, all_of, label, gradients=True):
    outputs, gates = own_leaves(all_of)
    count = all_of.tokens[all_of.rank]
    trip = all_of.trip(exercise)
    found = exercise.combine(outputs, trip, gates, count)
    right = all_of.mixed(all_of.outputs, all_of.gates)
    names = {}
    if torch.is_tensor(found):
        names = mistaken(all_of, all_of.outputs, all_of.gates, found)
    expect.close(found, right, f"combine {label}", mistaken=names)
    if not gradients:
        return
    every_out = all_of.outputs.clone().requires_grad_()
    every_gate = all_of.gates.clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for rank in range(all_of.ranks):
        there = Scene(rank, *list(vars(all_of).values())[1:])
        mixed = there.mixed(every_out, every_gate)
        total = total + (mixed * gradient_of(there)).sum()
    total.backward()
    found.backward(gradient_of(all_of))
    rows, order = all_of.is_received(), all_of.order()
    right_out = every_out.grad[rows][order]
    what = f"the gradient of the outputs {label}"
    own_share = torch.zeros_like(every_out.grad)
    own_rows = all_of.is_sent()
    own_share[own_rows] = every_out.grad[own_rows]
    names = {
        "that of this rank's tokens alone: it must be sent": own_share[rows][order],
    }
    expect.close(outputs.grad, right_out, what, mistaken=names)
    right_gate = every_gate.grad[all_of.is_sent()]
    expect.close(gates.grad, right_gate, f"the gradient of the gates {label}")


def gradient_of(all_of):
    """The gradient of a rank's result: different on each."""
    count = all_of.tokens[all_of.rank]
    values = torch.arange(count * WIDTH, dtype=torch.float64)
    return (1 + all_of.rank + values.sin()).view(count, WIDTH)


@pytest.mark.ranks(3, 4)
def test_outputs_return(exercise, rank, world_size, seed):
    """combine: each token's outputs, times their gates, added up."""
    tokens = [4, 5, 6, 3][:world_size]
    for k in (2, 1, 3):
        all_of = scene(seed + k, rank, tokens, k)
        compare(exercise, all_of, f"with k = {k}", gradients=False)


@pytest.mark.ranks(3, 4)
def test_gradients_return(exercise, rank, world_size, seed):
    """Return.backward: gradients of outputs and of gates."""
    tokens = [4, 5, 6, 3][:world_size]
    for k in (1, 2):
        if rank == 1:
            time.sleep(0.05)
        compare(exercise, scene(seed + k, rank, tokens, k), f"with k = {k}")


@pytest.mark.ranks(3, 4)
def test_a_rank_without_tokens_and_experts_without_rows(
    exercise, rank, world_size, seed
):
    """Rank 1 has no tokens; then only rank 0's experts are chosen."""
    tokens = TOKENS[:world_size]
    compare(exercise, scene(seed, rank, tokens), "with a rank without tokens")
    all_of = scene(seed, rank, tokens, k=2, only=[0, 1])
    compare(exercise, all_of, "with all rows on rank 0")


@pytest.mark.ranks(3)
def test_tokens_without_a_row(exercise, rank, world_size, seed):
    """Tokens whose choices were all dropped get zeros."""
    all_of = scene(seed, rank, [4, 5, 6])
    more = [count + 2 for count in all_of.tokens]
    compare(exercise, Scene(rank, more, *list(vars(all_of).values())[2:]), "and zeros")


@pytest.mark.ranks(3)
def test_gradient_of_a_sum(exercise, rank, world_size, seed):
    """Return.backward of a plain sum, whose gradient is an expanded number."""
    all_of = scene(seed, rank, [4, 5, 6][:world_size])
    trip = all_of.trip(exercise)
    rows = all_of.outputs[all_of.is_received()].clone().requires_grad_()
    exercise.Return.apply(rows, trip.sent, trip.received).sum().backward()
    what = "the gradient of the rows, of the sum of all that was returned"
    expect.close(rows.grad, torch.ones_like(rows), what)
