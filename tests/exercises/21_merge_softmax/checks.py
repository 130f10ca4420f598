"""Checks of exercises/21_merge_softmax.py: parts against the softmax of all keys."""

import math

import pytest
import torch

from workshop.grader import expect

expect.nothing_is_averaged()

HEADS, QUERIES, WIDTH = 2, 4, 3
LARGE = (1000.0, -1000.0, 80.0)  # exp() of the first two is infinite, and 0


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def part_of(seed, keys):
    """(scores [heads, q, k], values [heads, k, h]) of unlike sizes."""
    scores = 2 * drawn(seed, HEADS, QUERIES, keys)
    return scores, drawn(seed + 50, HEADS, keys, WIDTH)


def reference(scores, values):
    """(out, log_sum) from PyTorch's softmax; 0 and -inf where no key is seen."""
    out = scores.softmax(dim=-1).nan_to_num(0) @ values
    return out, scores.logsumexp(dim=-1, keepdim=True)


def both(*parts):
    """Scores and values of all keys."""
    scores = torch.cat([scores for scores, _ in parts], dim=-1)
    return scores, torch.cat([values for _, values in parts], dim=-2)


def given(exercise, part):
    """What attend should have returned, as the learner's Part."""
    return exercise.Part(*reference(*part))


def check_pair(found, what):
    pair = isinstance(found, tuple) and len(found) == 2
    kind = type(found).__name__
    expect.that(pair, f"{what} is a {kind}, expected a Part of out and log_sum")
    for name, tensor in zip(("out", "log_sum"), found, strict=True):
        is_tensor = torch.is_tensor(tensor)
        expect.that(is_tensor, f"{name} of {what} is a {type(tensor).__name__}")
    return found


def check_unseen(found, unseen, what):
    """Queries that see no key: out 0, log_sum -inf; ``unseen``: [heads, q]."""
    out, log_sum = found
    empty = log_sum[unseen]
    nan = int(empty.isnan().sum())
    message = f"{what}: log_sum of a query that sees no key is nan, expected -inf"
    expect.that(not nan, message)
    value = float(empty[0, 0]) if len(empty) else -torch.inf
    seen = f"{what}: log_sum of a query that sees no key is {value:.6g}, expected -inf"
    expect.that(bool((empty == -torch.inf).all()), seen)
    nan = bool(out[unseen].isnan().any())
    why = "-inf minus -inf, or 0 / 0"
    expect.that(not nan, f"{what}: out of a query that sees no key is nan: {why}")
    zero = bool((out[unseen] == 0).all())
    expect.that(zero, f"{what}: out of a query that sees no key must be 0")


def mistaken_attend(scores, values):
    """Names of wrong (out, log_sum)."""
    largest = scores.max(dim=-1, keepdim=True).values
    total = scores.exp().sum(dim=-1, keepdim=True)
    shifted = (scores - largest).exp().sum(dim=-1, keepdim=True)
    outs = {
        "the sum of exp(score) times value, never divided": scores.exp() @ values,
        "divided by the log-sum-exp, not by the sum": scores.exp()
        @ values
        / total.log(),
        "the sum of exp(score - largest) times value, never divided": (
            (scores - largest).exp() @ values
        ),
        "the plain mean of the values": values.mean(dim=-2, keepdim=True).expand(
            HEADS, QUERIES, WIDTH
        ),
        "a softmax over the queries, not over the keys": scores.softmax(-2) @ values,
        "weighted by the scores themselves": scores @ values,
    }
    sums = {
        "the sum itself, without the logarithm": total,
        "the largest score": largest,
        "the logarithm of the mean, not of the sum": (total / scores.shape[-1]).log(),
        "the sum of the scores": scores.sum(dim=-1, keepdim=True),
        "the log-sum-exp minus the largest score: add it again": shifted.log(),
        "in base 2": total.log2(),
        "in base 10": total.log10(),
    }
    return outs, sums


def mistaken_merge(first, second):
    """Names of wrong (out, log_sum), from two right parts."""
    (o1, l1), (o2, l2) = first, second
    total = torch.logaddexp(l1, l2)
    a, b = (l1 - total).exp(), (l2 - total).exp()
    outs = {
        "the sum of both outputs: each needs its share of the sum": o1 + o2,
        "the plain mean of both outputs: each needs its share of the sum": (o1 + o2)
        / 2,
        "merged with the two shares swapped": b * o1 + a * o2,
        "weighted by the log-sum-exps, not by their exponentials": (
            (l1 * o1 + l2 * o2) / (l1 + l2)
        ),
        "weighted by exp(log_sum), never divided by the whole sum": (
            l1.exp() * o1 + l2.exp() * o2
        ),
        "the first part's output alone": o1,
        "the second part's output alone": o2,
        "the first part with its share, and all of the second": a * o1 + o2,
        "all of the first part, and the second with its share": o1 + b * o2,
        "each part's output with its inverse share": o1 / a + o2 / b,
        "weighted by exp(l1 - l2) and exp(l2 - l1)": (
            (l1 - l2).exp() * o1 + (l2 - l1).exp() * o2
        ),
    }
    sums = {
        "the sum of both log-sum-exps: add exponentials, not logarithms": l1 + l2,
        "the mean of both log-sum-exps": (l1 + l2) / 2,
        "the larger of both log-sum-exps": torch.maximum(l1, l2),
        "the first part's alone": l1,
        "the second part's alone": l2,
        "exp(l1) + exp(l2), without the logarithm": l1.exp() + l2.exp(),
        "the logarithm of the mean of both sums": total - math.log(2),
    }
    return outs, sums


def compare(found, expected, names, what, **options):
    """Both tensors of a Part; the log_sum first, because out depends on it."""
    check_pair(found, what)
    for number in (1, 0):
        name = f"{('out', 'log_sum')[number]} of {what}"
        expect.close(
            found[number], expected[number], name, mistaken=names[number], **options
        )


@pytest.mark.ranks(1)
def test_one_part(exercise, seed):
    """attend: the softmax of these keys times their values, and their log-sum-exp."""
    for keys in (5, 1):
        part = part_of(seed, keys)
        copies = [tensor.clone() for tensor in part]
        found = exercise.attend(*copies)
        for tensor, copy, name in zip(part, copies, ("scores", "values"), strict=True):
            expect.unchanged(copy, tensor, f"{name}, afterwards")
        names = mistaken_attend(*part)
        compare(found, reference(*part), names, f"a part of {keys} keys")


@pytest.mark.ranks(1)
def test_two_parts(exercise, seed):
    """merge: parts of 3 and 5 keys give the attention to all 8."""
    parts = part_of(seed, 3), part_of(seed + 1, 5)
    first, second = (given(exercise, part) for part in parts)
    copies = [tensor.clone() for tensor in (*first, *second)]
    found = exercise.merge(first, second)
    names = mistaken_merge(first, second)
    compare(found, reference(*both(*parts)), names, "two merged parts")
    what = "the parts that were given, afterwards"
    for tensor, copy in zip((*first, *second), copies, strict=True):
        expect.unchanged(tensor, copy, what)


def same(found, wrong):
    """Whether all numbers are the same, also the infinite ones and nan."""
    return (
        torch.is_tensor(found)
        and found.shape == wrong.shape
        and torch.allclose(found, wrong.to(found), equal_nan=True)
    )


def cause_of_attend(found, scores):
    """The clause of a log_sum that large scores spoil, or ""."""
    for largest in (scores.max(), scores.amax((-2, -1), keepdim=True)):
        total = (scores - largest).exp().sum(-1, keepdim=True)
        if same(found.log_sum, total.log() + largest):
            return (
                "the largest score of all queries were subtracted: subtract that of "
                "each query, over the last tensor dim"
            )
    if same(found.log_sum, scores.exp().sum(-1, keepdim=True).log()):
        return "exp(score) were added up as it is: subtract each query's largest first"
    return ""


def cause_of_merge(found, first, second):
    """The clause of a merge that large log_sums spoil, or ""."""
    (o1, l1), (o2, l2) = first, second
    a, b = l1.exp(), l2.exp()
    if same(found.log_sum, (a + b).log()):
        return "log_sum were log(exp(l1) + exp(l2)): torch.logaddexp does it safely"
    infinite = bool(a.isinf().any() or b.isinf().any())
    quotient = "inf / inf" if infinite else "0 / 0"
    for total in (a + b, torch.logaddexp(l1, l2).exp()):
        weighted = a / total * o1 + b / total * o2
        divided = (a * o1 + b * o2) / total
        if same(found.out, weighted) or same(found.out, divided):
            return (
                f"exp(log_sum) were divided by the sum of both, here {quotient}: "
                "subtract the merged log_sum before exp"
            )
    return ""


@pytest.mark.ranks(1)
def test_large_scores(exercise, seed):
    """Scores near 1000 and -1000 in one part, or in both."""
    for size in LARGE:
        scores, values = part_of(seed, 4)
        part = scores + size, values
        what = f"a part with scores near {size:g}"
        found = exercise.Part(*check_pair(exercise.attend(*part), what))
        cause = cause_of_attend(found, part[0])
        compare(found, reference(*part), ({}, {}), what, cause=cause)
    scores, values = part_of(seed, 4)
    part = scores + torch.tensor([1000.0, -1000.0, 0.0, 80.0]).view(QUERIES, 1), values
    what = "a part with one query's scores near 1000 and another's near -1000"
    found = exercise.Part(*check_pair(exercise.attend(*part), what))
    cause = cause_of_attend(found, part[0])
    compare(found, reference(*part), ({}, {}), what, cause=cause)
    for sizes in ((1000, 1001), (-1000, -1001), (1000, 0), (0, 1000), (-1000, 1000)):
        parts = [
            (part_of(seed + n, 3)[0] + size, part_of(seed + n, 3)[1])
            for n, size in enumerate(sizes)
        ]
        first, second = (given(exercise, part) for part in parts)
        what = f"parts with scores near {sizes[0]} and {sizes[1]}, merged"
        found = exercise.Part(*check_pair(exercise.merge(first, second), what))
        cause = cause_of_merge(found, first, second)
        compare(found, reference(*both(*parts)), ({}, {}), what, cause=cause)


@pytest.mark.ranks(1)
def test_no_key_is_seen(exercise, seed):
    """A query that sees no key of a part has out = 0 and log_sum = -inf there."""
    scores, values = part_of(seed, 4)
    unseen = torch.zeros(HEADS, QUERIES, dtype=torch.bool)
    unseen[:, 1] = True
    scores[unseen] = -torch.inf
    scores[:, 2, 1:] = -torch.inf  # sees one key
    found = check_pair(exercise.attend(scores, values), "a part with a mask")
    check_unseen(found, unseen, "attend")
    compare(found, reference(scores, values), ({}, {}), "a part with a mask")


@pytest.mark.ranks(1)
def test_merge_with_an_empty_part(exercise, seed):
    """An empty part changes nothing, and two of them are empty again."""
    parts = part_of(seed, 3), part_of(seed + 1, 5)
    parts[0][0][:, 0] = -torch.inf  # sees keys of the second part only
    parts[1][0][:, 1] = -torch.inf  # of the first part only
    parts[0][0][:, 2] = parts[1][0][:, 2] = -torch.inf  # of neither
    unseen = torch.zeros(HEADS, QUERIES, dtype=torch.bool)
    unseen[:, 2] = True
    found = exercise.merge(*(given(exercise, part) for part in parts))
    found = check_pair(found, "two merged parts with a mask")
    check_unseen(found, unseen, "merge of two empty parts")
    expected = reference(*both(*parts))
    for query, which in ((0, "the first"), (1, "the second")):
        for number, name in ((1, "log_sum"), (0, "out")):
            what = f"{name} of a query that sees no key of {which} part"
            one, right = found[number][:, query], expected[number][:, query]
            expect.close(one, right, what)
    compare(found, expected, ({}, {}), "two merged parts with a mask")


@pytest.mark.ranks(1)
def test_three_parts_in_any_order(exercise, seed):
    """Your attend and merge together, in every order."""
    parts = [part_of(seed + n, keys) for n, keys in enumerate((2, 6, 3))]
    expected = reference(*both(*parts))
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        one, two, three = (exercise.attend(*parts[n]) for n in order)
        for found, way in (
            (exercise.merge(exercise.merge(one, two), three), "merge(merge(a, b), c)"),
            (exercise.merge(one, exercise.merge(two, three)), "merge(a, merge(b, c))"),
        ):
            compare(found, expected, ({}, {}), f"three parts by {way}")


@pytest.mark.ranks(1)
def test_parts_in_float32(exercise, seed):
    """Parts in float32 stay in float32."""
    parts = [tuple(tensor.float() for tensor in part_of(seed + n, 3)) for n in range(2)]
    found = exercise.merge(*(exercise.attend(*part) for part in parts))
    near = {"atol": 1e-5, "rtol": 1e-5}
    compare(found, reference(*both(*parts)), ({}, {}), "float32 parts", **near)


@pytest.mark.ranks(1)
def test_any_dims_before(exercise, seed):
    """[..., q, k] may be a single matrix, or have two tensor dims before it."""
    for dims in ((), (2, 3)):
        parts = []
        for n, keys in enumerate((3, 5)):
            scores = drawn(seed + n, *dims, QUERIES, keys)
            parts.append((scores, drawn(seed + 50 + n, *dims, keys, WIDTH)))
        found = exercise.merge(*(exercise.attend(*part) for part in parts))
        what = f"parts with scores of {len(dims) + 2} tensor dims, merged"
        compare(found, reference(*both(*parts)), ({}, {}), what)
