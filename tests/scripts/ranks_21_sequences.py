"""Sequences cut over ranks: attention and training of one process, and what is sent.

Each function runs in every rank, as a check of an exercise does;
test_21_sequences.py has them run.
"""

import sys
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Activations, Traffic
from common.distributed import BadInput
from common.parallel import context_parallel as cp
from common.parallel import packed_documents as pd
from common.parallel.ring_attention import gather_attention, ring_attention
from common.parallel.ulysses import ulysses_attention

METHODS: dict[str, Callable[..., torch.Tensor]] = {
    "ring": ring_attention,
    "gather": gather_attention,
    "Ulysses": ulysses_attention,
}
BATCH, HEADS, TOKENS, HEAD_WIDTH = 2, 12, 24, 5
SIZES = Sizes(width=24, heads=12, blocks=2, context=TOKENS)
FLOAT64 = 8  # bytes


def whole_tensors(seed, count=4, scale=1.0):
    """Query, key, value and a gradient of the output, the same on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    shape = count, BATCH, HEADS, TOKENS, HEAD_WIDTH
    return list(scale * torch.randn(shape, generator=generator, dtype=torch.float64))


def own_leaves(tensors, cut):
    """This rank's tokens of each tensor, as leaves of a graph."""
    return [cut.take(tensor, dim=2).requires_grad_() for tensor in tensors]


def one_device(tensors, grad_out, causal):
    """The output of one device, and the gradients of query, key and value."""
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    query, key, value = leaves
    out = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    return out.detach(), torch.autograd.grad(out, leaves, grad_out)


def cuts():
    return {"in order": cp.whole_world(), "zigzag": cp.whole_world(zigzag=True)}


@pytest.mark.ranks(1, 2, 3, 4)
def test_attention_equals_one_device(rank, world_size, seed):
    """Outputs and all gradients in float64, causal and not, in order and zigzag."""
    *tensors, grad_out = whole_tensors(seed)
    for causal, (order, cut) in product((True, False), cuts().items()):
        expected, expected_grads = one_device(tensors, grad_out, causal)
        for name, method in METHODS.items():
            what = f"{name}, {order}, causal={causal}"
            leaves = own_leaves(tensors, cut)
            out = method(*leaves, cut, causal)
            expect.close(out, cut.take(expected, 2), f"the output, {what}")
            grads = torch.autograd.grad(out, leaves, cut.take(grad_out, 2))
            pairs = zip(("query", "key", "value"), grads, expected_grads, strict=True)
            for of, grad, whole in pairs:
                own = cut.take(whole, 2)
                expect.close(grad, own, f"the gradient of {of}, {what}")


@pytest.mark.ranks(2)
def test_large_scores_do_not_overflow(rank, world_size, seed):
    """Scores in the thousands, whose exponential is infinite."""
    query, key, value = tensors = whole_tensors(seed, count=3, scale=40.0)
    cut = cp.whole_world(zigzag=True)
    scores = cp.scores_of(query, key, False)
    expect.that(bool(scores.exp().isinf().any()), "no exponential is infinite")
    expected = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    for name, method in METHODS.items():
        out = method(*own_leaves(tensors, cut), cut)
        expect.close(out, cut.take(expected, 2), f"the output of {name}")


@pytest.mark.ranks(3)
def test_late_rank_changes_nothing(rank, world_size, seed):
    """A rank that computes longer than the others: messages wait for it."""
    import time

    *tensors, grad_out = whole_tensors(seed)
    cut = cp.whole_world(zigzag=True)
    expected, expected_grads = one_device(tensors, grad_out, True)
    for late in range(world_size):
        leaves = own_leaves(tensors, cut)
        if rank == late:
            time.sleep(0.1)
        out = METHODS["ring"](*leaves, cut)
        if rank == (late + 1) % world_size:
            time.sleep(0.1)
        grads = torch.autograd.grad(out, leaves, cut.take(grad_out, 2))
        expect.close(out, cut.take(expected, 2), f"the output, {late} late")
        for grad, whole in zip(grads, expected_grads, strict=True):
            expect.close(grad, cut.take(whole, 2), f"a gradient, {late} late")


@pytest.mark.ranks(2, 4)
def test_bytes_sent_equal_the_formulas(rank, world_size, seed):
    """S: the bytes of a rank's keys. Ring 2(c-1) S, then (4c-2) S in backward;
    all-gather 2(c-1) S each way; Ulysses 4 S (c-1)/c each way."""
    c, size = world_size, BATCH * HEADS * TOKENS // world_size * HEAD_WIDTH * FLOAT64
    formulas = {
        "ring": (2 * (c - 1) * size, (4 * c - 2) * size),
        "gather": (2 * (c - 1) * size, 2 * (c - 1) * size),
        "Ulysses": (4 * size * (c - 1) // c, 4 * size * (c - 1) // c),
    }
    *tensors, grad_out = whole_tensors(seed)
    for causal, cut in product((True, False), cuts().values()):
        for name, method in METHODS.items():
            leaves = own_leaves(tensors, cut)
            with Traffic() as forward:
                out = method(*leaves, cut, causal)
            with Traffic() as backward:
                out.backward(cut.take(grad_out, 2))
            sent = forward.wire_bytes(), backward.wire_bytes()
            expect.equal(sent, formulas[name], f"bytes of {name}")


@pytest.mark.ranks(2, 4)
def test_zigzag_gives_every_rank_the_same_work(rank, world_size, seed):
    """Products of a query with a key, counted where they are computed, in units of
    (T/2c)^2: 4r+3 on rank r in order, 2c+1 on all with zigzag, 4c without mask."""
    unit = (TOKENS // (2 * world_size)) ** 2
    *tensors, grad_out = whole_tensors(seed)
    original, counted = cp.scores_of, []

    def counting(query, key, *masks):
        counted.append(query.shape[-2] * key.shape[-2])
        return original(query, key, *masks)

    def work(cut, causal):
        counted.clear()
        out = METHODS["ring"](*own_leaves(tensors, cut), cut, causal)
        forward = sum(counted)
        out.backward(cut.take(grad_out, 2))
        expect.equal(sum(counted), 2 * forward, "backward computes each score again")
        return forward / unit

    cp.scores_of = counting
    try:
        expect.equal(work(cuts()["in order"], True), 4 * rank + 3, "in order")
        expect.equal(work(cuts()["zigzag"], True), 2 * world_size + 1, "zigzag")
        for name, cut in cuts().items():
            expect.equal(work(cut, False), 4 * world_size, f"no mask, {name}")
    finally:
        cp.scores_of = original


@pytest.mark.ranks(2, 3)
def test_activations_are_a_part_of_those_of_one_device(rank, world_size, seed):
    """Ring and Ulysses keep 4 H + a numbers per own token, as one device does; the
    gathered keys and values stay whole."""
    per_token = 4 * HEADS * HEAD_WIDTH + HEADS
    own_tokens = BATCH * TOKENS // world_size
    *tensors, _ = whole_tensors(seed)
    cut = cp.whole_world()
    for name in ("ring", "Ulysses"):
        leaves = own_leaves(tensors, cut)
        with Activations(torch.nn.Identity()) as kept:
            out = METHODS[name](*leaves, cut)
        expected = FLOAT64 * per_token * own_tokens
        expect.equal(kept.peak_bytes, expected, f"bytes kept by {name}")
        del out
    leaves = own_leaves(tensors, cut)
    with Activations(torch.nn.Identity()) as kept:
        out = METHODS["gather"](*leaves, cut, False)
    del out
    of_own = (2 * HEADS * HEAD_WIDTH + HEADS) * own_tokens
    of_all = 2 * HEADS * HEAD_WIDTH * BATCH * TOKENS
    expect.equal(kept.peak_bytes, FLOAT64 * (of_own + of_all), "bytes kept by gather")


def gpt(seed):
    torch.manual_seed(seed)
    model = ByteGPT(SIZES).double()
    for parameter in model.parameters():
        with torch.no_grad():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def batches(seed, steps=3):
    """(inputs, targets) of each step, [3, T] each, the same on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    shape = steps, 2, 3, SIZES.context
    return torch.randint(BYTES, shape, generator=generator)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
}


@pytest.mark.ranks(2, 3, limit=40)
def test_trains_like_one_process(rank, world_size, seed):
    """Scores, losses and parameters after three steps of SGD and of AdamW; all ranks
    have the same parameters, bit for bit."""
    for (kind, make), (name, method) in product(OPTIMIZERS.items(), METHODS.items()):
        for order, cut in cuts().items():
            whole, split = gpt(seed), gpt(seed)
            cp.split_gpt(split, cut, method)
            alone, together = make(whole.parameters()), make(split.parameters())
            what = f"{name}, {order}, {kind}"
            for inputs, targets in batches(seed):
                scores = cp.whole_scores(split(cut.take(inputs)), cut)
                expect.close(scores, whole(inputs), f"the scores, {what}")
                alone.zero_grad()
                expected = next_byte_loss(whole(inputs), targets)
                expected.backward()
                alone.step()
                together.zero_grad()
                loss = next_byte_loss(split(cut.take(inputs)), cut.take(targets))
                loss.backward()
                cp.average_gradients(split, cut)
                together.step()
                loss = loss.detach()
                dist.all_reduce(loss)
                expect.close(loss / world_size, expected, f"the loss, {what}")
            reference = dict(whole.named_parameters())
            for key, parameter in split.named_parameters():
                expect.close(parameter, reference[key], f"{key}, {what}")
                expect.same_on_all_ranks(parameter, f"{key}, {what}")


@pytest.mark.ranks(4)
def test_two_groups_of_ranks_each_cut_their_own_sequences(rank, world_size, seed):
    """A ring and an exchange inside a group, as along one mesh axis."""
    groups = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])]
    number = rank % 2
    *tensors, grad_out = whole_tensors(seed + number)
    cut = cp.Cut(2, rank // 2, zigzag=True, group=groups[number])
    expected, expected_grads = one_device(tensors, grad_out, True)
    for name, method in METHODS.items():
        leaves = own_leaves(tensors, cut)
        out = method(*leaves, cut)
        expect.close(out, cut.take(expected, 2), f"the output, {name}")
        grads = torch.autograd.grad(out, leaves, cut.take(grad_out, 2))
        for grad, whole in zip(grads, expected_grads, strict=True):
            expect.close(grad, cut.take(whole, 2), f"a gradient, {name}")


@pytest.mark.ranks(3)
def test_what_cannot_be_cut_is_refused(rank, world_size, seed):
    """A context that twice the ranks do not divide, and more ranks than heads."""
    cut = cp.whole_world()
    words = ["--context 21", "6 chunks", "choose 18 or 24"]
    expect.raises(BadInput, cut.take, torch.zeros(1, 21), words=words)
    few = [torch.zeros(1, 2, 8, 4)] * 3
    words = ["--heads 2", "3 ranks", "choose 3"]
    expect.raises(BadInput, METHODS["Ulysses"], *few, cut, words=words)


# Packed documents


def document_ends(seed, tokens=TOKENS, rows=BATCH):
    """Borders in different places of each row, some of them between two ranks.

    Row 0 has one document, so it spans all ranks; in row 1, each token is a document.
    """
    generator = torch.Generator().manual_seed(seed)
    ends = torch.rand(rows + 2, tokens, generator=generator) < 0.2
    ends[0], ends[1] = False, True
    ends[2:, tokens // 2 - 1] = True
    return ends


def one_device_packed(tensors, grad_out, ends):
    """Attention with a mask, one document at a time, and its gradients."""
    documents = pd.number_documents(ends)
    same = documents[:, :, None] == documents[:, None, :]
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    mask = same.tril()[:, None]
    out = F.scaled_dot_product_attention(*leaves, attn_mask=mask)
    return out.detach(), torch.autograd.grad(out, leaves, grad_out)


@pytest.mark.ranks(1, 2, 3, 4)
def test_packed_attention_equals_one_device(rank, world_size, seed):
    """Outputs and gradients in float64; documents of one token and of all."""
    ends = document_ends(seed)
    shape = 4, len(ends), HEADS, TOKENS, HEAD_WIDTH
    generator = torch.Generator().manual_seed(seed)
    *tensors, grad_out = torch.randn(shape, generator=generator, dtype=torch.float64)
    expected, expected_grads = one_device_packed(tensors, grad_out, ends)
    for order, cut in cuts().items():
        packing = pd.Packing(cut)
        packing.next_batch(ends)
        leaves = own_leaves(tensors, cut)
        out = packing.attend(leaves[0], leaves[1], leaves[2], cut)
        expect.close(out, cut.take(expected, 2), f"the output, {order}")
        grads = torch.autograd.grad(out, leaves, cut.take(grad_out, 2))
        pairs = zip(("query", "key", "value"), grads, expected_grads, strict=True)
        for of, grad, whole in pairs:
            expect.close(grad, cut.take(whole, 2), f"the gradient of {of}, {order}")


@pytest.mark.ranks(3)
def test_ranks_without_a_common_document_compute_nothing(rank, world_size, seed):
    """Each rank's tokens are one document: of three pairs of ranks, none is left."""
    ends = torch.zeros(1, TOKENS, dtype=torch.bool)
    ends[:, 7::8] = True
    *tensors, grad_out = [tensor[:1] for tensor in whole_tensors(seed)]
    cut, original, counted = cp.whole_world(), cp.scores_of, []

    def counting(*given):
        counted.append(given)
        return original(*given)

    packing = pd.Packing(cut)
    packing.next_batch(ends)
    cp.scores_of = counting
    try:
        query, key, value = own_leaves(tensors, cut)
        out = packing.attend(query, key, value, cut)
        out.backward(cut.take(grad_out, 2))
    finally:
        cp.scores_of = original
    expect.equal(len(counted), 2, "products, in forward and in backward")


def loss_of_each_document(model, inputs, targets, ends):
    """The mean over all targets inside documents, each document on its own."""
    total, count = inputs.new_zeros((), dtype=torch.float64), 0
    for row, row_ends in enumerate(ends):
        borders = [0, *(row_ends.nonzero().flatten() + 1).tolist(), inputs.shape[1]]
        for start, end in pairwise(borders):
            ended = start < end and bool(row_ends[end - 1])
            last = end - 1 if ended else end  # the target of an end is elsewhere
            if start < last:
                scores = model(inputs[row : row + 1, start:last])[0]
                own = targets[row, start:last]
                total = total + F.cross_entropy(scores, own, reduction="sum")
                count += last - start
    return total / count


@pytest.mark.ranks(2, 3, limit=40)
def test_packed_documents_train_as_each_on_its_own(rank, world_size, seed):
    """Losses and parameters after three steps; positions start in each document."""
    for order, cut in cuts().items():
        whole, split = gpt(seed), gpt(seed)
        packing = pd.Packing(cut)
        packing.pack_gpt(split)
        make = OPTIMIZERS["SGD"]
        alone, together = make(whole.parameters()), make(split.parameters())
        for step, (inputs, targets) in enumerate(batches(seed)):
            ends = document_ends(seed + step, rows=len(inputs) - 2)
            alone.zero_grad()
            expected = loss_of_each_document(whole, inputs, targets, ends)
            expected.backward()
            alone.step()
            together.zero_grad()
            packing.next_batch(ends)
            loss = packing.loss(split(cut.take(inputs)), cut.take(targets))
            loss.backward()
            cp.average_gradients(split, cut)
            together.step()
            loss = loss.detach()
            dist.all_reduce(loss)
            expect.close(loss / world_size, expected, f"the loss, {order}")
        reference = dict(whole.named_parameters())
        for key, parameter in split.named_parameters():
            expect.close(parameter, reference[key], f"{key}, {order}")


@pytest.mark.ranks(2, 4)
def test_numbers_of_documents_are_sent_once(rank, world_size, seed):
    """8 bytes for each token in forward, beside keys and values; none in backward."""
    c, size = world_size, BATCH * HEADS * TOKENS // world_size * HEAD_WIDTH * FLOAT64
    numbers = 8 * BATCH * TOKENS // c
    *tensors, grad_out = whole_tensors(seed)
    cut = cp.whole_world(zigzag=True)
    packing = pd.Packing(cut)
    packing.next_batch(document_ends(seed)[:BATCH])
    query, key, value = own_leaves(tensors, cut)
    with Traffic() as forward:
        out = packing.attend(query, key, value, cut)
    with Traffic() as backward:
        out.backward(cut.take(grad_out, 2))
    sent = forward.wire_bytes(), backward.wire_bytes()
    expected = (c - 1) * (2 * size + numbers), (4 * c - 2) * size
    expect.equal(sent, expected, "bytes with packed documents")


@pytest.mark.ranks(2, 3)
def test_mean_of_unequal_means_is_not_the_loss(rank, world_size, seed):
    """The ranks have unequally many targets: their means can't be averaged."""
    ends = torch.zeros(1, TOKENS, dtype=torch.bool)
    ends[:, : TOKENS // 2 : 2] = True  # many of the first tokens end a document
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(1, TOKENS, BYTES, generator=generator, dtype=torch.float64)
    targets = torch.randint(BYTES, (1, TOKENS), generator=generator)
    right = F.cross_entropy(scores[~ends], targets[~ends])
    cut = cp.whole_world()
    packing = pd.Packing(cut)
    packing.next_batch(ends)
    share = packing.loss(cut.take(scores), cut.take(targets))
    own = ~cut.take(ends)
    mean = F.cross_entropy(cut.take(scores)[own], cut.take(targets)[own])
    for loss in (share, mean):
        dist.all_reduce(loss)
    expect.close(share / world_size, right, "the loss")
    expect.that(abs(mean / world_size - right) > 1e-3, "the mean of means is the loss")
