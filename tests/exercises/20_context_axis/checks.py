"""Checks of exercises/20_context_axis.py: against whole sequences on one process."""

import time

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

PADDING = -100
BATCH, HEADS, WIDTH, BYTES, BLOCKS = 2, 2, 4, 5, 2
TOKENS = 3  # of each context rank; its last rank has padding only, in one sequence


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


class Network(nn.Module):
    """A small GPT. It counts how many tokens of a sequence it was given."""

    def __init__(self, seed, tokens):
        super().__init__()
        self.embed = nn.Embedding(BYTES, HEADS * WIDTH)
        self.place = nn.Embedding(tokens, HEADS * WIDTH)
        self.mix = nn.ModuleList(
            nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH) for _ in range(BLOCKS)
        )
        self.head = nn.Linear(HEADS * WIDTH, BYTES)
        self.double()
        self.given = 0
        with torch.no_grad():
            for index, parameter in enumerate(self.parameters()):
                parameter.copy_(drawn(seed + index, *parameter.shape) / 2)

    def forward(self, tokens, positions, attend):
        """[B, t], [t] -> [B, t, bytes]"""
        self.given += tokens.shape[-1]
        x = self.embed(tokens) + self.place(positions)
        for layer in self.mix:
            query, key, value = (
                part.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
                for part in layer(x).chunk(3, -1)
            )
            x = x + attend(query, key, value).transpose(1, 2).flatten(2)
        return self.head(x)


def groups_of(rank, world_size, ranks):
    """The group of ``ranks`` consecutive ranks that has ``rank``; all make all."""
    own = None
    for first in range(0, world_size, ranks):
        members = list(range(first, first + ranks))
        group = dist.new_group(members)
        if rank in members:
            own = group
    return own


def orders(ranks):
    """Ways to place a sequence on ranks: name -> rank -> positions."""
    total = 2 * ranks
    return {
        "in order": [[2 * r, 2 * r + 1] for r in range(ranks)],
        "in zigzag": [[r, total - 1 - r] for r in range(ranks)],
        "in turn, backwards": [[r + ranks, r] for r in range(ranks)],
    }


def whole_attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def compare_attention(exercise, rank, ranks, context, seed):
    """``rank``: in the group ``context`` of ``ranks`` ranks."""
    shape = BATCH, HEADS, 2 * ranks, WIDTH
    for number, (name, of_ranks) in enumerate(orders(ranks).items()):
        whole = [
            drawn(seed + 10 * number + i, *shape).requires_grad_() for i in range(3)
        ]
        weights = drawn(seed + 10 * number + 7, *shape)
        right = whole_attention(*whole)
        (right * weights).sum().backward()
        positions = torch.tensor(of_ranks[rank])
        own = [x.detach()[:, :, positions].requires_grad_() for x in whole]
        before = positions.clone()
        found = exercise.attend(*own, positions, context)
        what = f"what attend returns, tokens placed {name}"
        query, key, value = (x.detach() for x in whole)
        joined = torch.cat([torch.tensor(p) for p in of_ranks])
        index = torch.arange(2 * ranks).view(ranks, 2)[rank]
        by_index = torch.arange(2 * ranks) <= index[:, None]
        shuffled = (query[:, :, positions], key[:, :, joined], value[:, :, joined])
        local = torch.ones(2, 2).tril().bool()
        as_the_last = torch.ones(2, 2 * ranks).tril(2 * ranks - 2).bool()
        alone = [x[:, :, positions] for x in (query, key, value)]
        names = {
            "without a mask: a token sees those after it": (
                F.scaled_dot_product_attention(*shuffled)
            ),
            "masked by where a token was gathered, not by its position": (
                F.scaled_dot_product_attention(*shuffled, attn_mask=by_index)
            ),
            "masked as is_causal=True does, which takes this rank's queries for the "
            "first tokens of the sequence": (
                F.scaled_dot_product_attention(*shuffled, is_causal=True)
            ),
            "masked as if this rank's queries were the last tokens of the sequence": (
                F.scaled_dot_product_attention(*shuffled, attn_mask=as_the_last)
            ),
            "masked by positions for the queries only: a key's is not its index": (
                F.scaled_dot_product_attention(
                    *shuffled, attn_mask=torch.arange(2 * ranks) <= positions[:, None]
                )
            ),
            "attention to this rank's own keys only": (
                F.scaled_dot_product_attention(
                    *alone, attn_mask=positions <= positions[:, None]
                )
            ),
            "attention to this rank's own keys only, masked by their index": (
                F.scaled_dot_product_attention(*alone, attn_mask=local)
            ),
            "masked the wrong way round: a token sees itself and those after it": (
                F.scaled_dot_product_attention(
                    *shuffled, attn_mask=joined >= positions[:, None]
                )
            ),
            "without the token itself, which it also sees": (
                F.scaled_dot_product_attention(
                    *shuffled, attn_mask=joined < positions[:, None]
                )
            ),
        }
        expect.close(found, right.detach()[:, :, positions], what, mistaken=names)
        expect.unchanged(positions, before, "the positions that were given, afterwards")
        (found * weights[:, :, positions]).sum().backward()
        gradients_of_attention(own, whole, weights, of_ranks, rank, name)


def gradients_of_attention(own, whole, weights, of_ranks, rank, name):
    """Compare those of query, key and value, each with what people get."""
    positions = torch.tensor(of_ranks[rank])
    ranks = len(of_ranks)
    alone = [x.detach().requires_grad_() for x in whole]
    out = whole_attention(*alone)
    (out * weights)[:, :, positions].sum().backward()  # of this rank's queries only
    for found, right, single, label in zip(
        own, whole, alone, ("query", "key", "value"), strict=True
    ):
        what = f"the gradient of {label}, tokens placed {name}"
        expect.that(found.grad is not None, f"{what}, is None: nothing reached it")
        wanted = right.grad[:, :, positions]
        names = {
            "of this rank's queries only: those of other ranks use these keys, too": (
                single.grad[:, :, positions]
            ),
            "divided by the ranks: it's a sum": wanted / ranks,
            "the sum of all ranks' copies of one gradient": wanted * ranks,
        }
        expect.close(found.grad, wanted, what, mistaken=names)


def sequences(seed, data_ranks, tokens):
    """Inputs and targets of all data ranks, [data, B, T] each; some are padding."""
    generator = torch.Generator().manual_seed(seed)
    drawn_bytes = torch.randint(
        BYTES, (data_ranks, BATCH, tokens + 1), generator=generator
    )
    inputs, targets = drawn_bytes[..., :-1], drawn_bytes[..., 1:].clone()
    targets[0, :, tokens // 2 :] = PADDING  # a rank with no target that counts
    targets[-1, 0, -1] = PADDING
    return inputs, targets


def loss_of(model, inputs, targets, attend=whole_attention, positions=None):
    """The mean over what counts of [S, T] sequences on one process."""
    if positions is None:
        positions = torch.arange(inputs.shape[1])
    scores = model(inputs, positions, attend)
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def cut_attention(ranks):
    """Attention whose gradients don't reach the keys of other ranks."""

    def attend(query, key, value):
        own = query.shape[2] // ranks
        outs = []
        for rank in range(ranks):
            positions = torch.arange(query.shape[2])
            here = (positions // own == rank)[:, None]
            keys = torch.where(here, key, key.detach())
            values = torch.where(here, value, value.detach())
            queries = query[:, :, rank * own : (rank + 1) * own]
            seen = positions <= positions[rank * own : (rank + 1) * own, None]
            outs.append(
                F.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
            )
        return torch.cat(outs, 2)

    return attend


def gradients_of(model, loss):
    return torch.autograd.grad(loss, list(model.parameters()))


def wrong_losses(model, inputs, targets, ranks):
    """Losses of all sequences by known mistakes, name -> loss."""
    tokens = inputs.shape[-1]
    flat = inputs.flatten(0, 1), targets.flatten(0, 1)
    local = torch.arange(tokens) % (tokens // ranks)
    per_data = [loss_of(model, *both) for both in zip(inputs, targets, strict=True)]
    found = {
        "the mean of each data rank's mean: their sequences have other numbers of "
        "targets": sum(per_data) / len(per_data),
        "divided by all targets, padding included": loss_of(model, *flat)
        * ((flat[1] != PADDING).sum() / flat[1].numel()),
    }
    if ranks > 1:
        found["with positions that begin at 0 on every rank"] = loss_of(
            model, *flat, positions=local
        )
        found["as if no gradient reached the keys of other ranks"] = loss_of(
            model, *flat, attend=cut_attention(ranks)
        )
    return found


def compare_step(exercise, rank, world_size, ranks, seed):
    """``ranks``: context ranks of each group."""
    context = groups_of(rank, world_size, ranks)
    data_ranks, data_rank = world_size // ranks, rank // ranks
    tokens = TOKENS * ranks
    inputs, targets = sequences(seed, data_ranks, tokens)
    model, alone = Network(seed, tokens), Network(seed, tokens)
    own = inputs[data_rank].clone(), targets[data_rank].clone()
    loss = exercise.step_gradients(model, *own, context)
    label = f"on data {data_ranks} x context {ranks}"
    right = loss_of(alone, inputs.flatten(0, 1), targets.flatten(0, 1))
    wrong = wrong_losses(alone, inputs, targets, ranks)
    expect.that(
        model.given == TOKENS,
        f"the model was given {model.given} tokens of each sequence on rank {rank}, "
        f"expected {TOKENS}, its part of {tokens}",
    )
    what = f"the loss {label}"
    names = {name: value.detach() for name, value in wrong.items()}
    names["the sum over all ranks: each had the whole mean"] = right * world_size
    names["divided by the ranks, though it's a sum already"] = right / world_size
    names = {k: v for k, v in names.items() if not torch.isclose(v, right.detach())}
    value = torch.as_tensor(loss).detach()
    empty = (targets != PADDING).unflatten(-1, (ranks, TOKENS)).sum((1, 3)) == 0
    expect.that(
        not (value.isnan() and empty.any()),
        f"{what} is nan: a rank has only padding, so it counts 0 targets. Divide by "
        "the number of targets that count on all ranks together",
    )
    expect.close(value, right.detach(), what, mistaken=names)
    expect.equal(own[0], inputs[data_rank], "the inputs that were given, afterwards")
    expect.equal(own[1], targets[data_rank], "the targets that were given, afterwards")
    expected = gradients_of(alone, right)
    mistaken = {name: gradients_of(alone, value) for name, value in wrong.items()}
    if data_ranks > 1:
        own_share = loss_of(alone, *own) * (own[1] != PADDING).sum()
        share = own_share / (targets != PADDING).sum()
        only = "added up over the context ranks only: others have other sequences"
        mistaken[only] = gradients_of(alone, share)
    for index, (name, parameter) in enumerate(model.named_parameters()):
        gradient = parameter.grad
        what = f"the gradient of {name} {label}"
        expect.that(gradient is not None, f"{what} is None, expected a tensor")
        names = {key: values[index] for key, values in mistaken.items()}
        names["the sum of what each rank divided by its own targets"] = (
            expected[index] * world_size
        )
        names["divided by the ranks once more: it's a sum already"] = (
            expected[index] / world_size
        )
        right_one = expected[index]
        names = {k: v for k, v in names.items() if not torch.allclose(v, right_one)}
        expect.close(gradient, right_one, what, mistaken=names)
        expect.same_on_all_ranks(gradient, what)


@pytest.mark.ranks(3)
def test_attention_to_all_ranks_keys(exercise, rank, world_size, seed):
    """attend: a sequence over three ranks, placed in three ways, and gradients."""
    if rank == 1:
        time.sleep(0.05)
    compare_attention(exercise, rank, world_size, dist.group.WORLD, seed)


@pytest.mark.ranks(4)
def test_attention_within_its_group(exercise, rank, world_size, seed):
    """attend: two groups of two ranks have different sequences."""
    context = groups_of(rank, world_size, 2)
    compare_attention(exercise, rank % 2, 2, context, seed + 1000 * (rank // 2))


@pytest.mark.ranks(4)
def test_step_on_both_axes(exercise, rank, world_size, seed):
    """step_gradients: data 2 x context 2, the loss and every gradient."""
    compare_step(exercise, rank, world_size, 2, seed)


@pytest.mark.ranks(3, 4)
def test_step_of_one_axis(exercise, rank, world_size, seed):
    """step_gradients: all ranks share each sequence; then none does."""
    compare_step(exercise, rank, world_size, world_size, seed)
    compare_step(exercise, rank, world_size, 1, seed)
