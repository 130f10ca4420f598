"""Checks of exercises/18_memory_plan.py: other models, stages and devices."""

import itertools
import math
from fractions import Fraction
from numbers import Integral

import pytest

from workshop.grader import expect, variants

expect.nothing_is_averaged()

GB = 1_000_000_000
# parameters, layers, width, heads, context
SIZES = [
    (6_700_000_000, 32, 4096, 32, 2048),
    (1_300_000_001, 24, 2048, 16, 1024),
    (12_850_000_000, 40, 5120, 40, 2048),
    (124_000_003, 12, 768, 12, 4096),
    (30_000_000_000, 48, 7168, 56, 2048),
]


def state(
    parameters,
    stage,
    ranks,
    *,
    sizes=(2, 2, 12),
    first=(3, 2, 1),
    part=math.ceil,
    of="numbers",
):
    """Kind by kind: bytes of a number, and the stage that shards it."""
    total = sharded = 0
    for size, needed in zip(sizes, first, strict=True):
        if stage < needed:
            total += size * parameters
        elif of == "numbers":
            total += size * part(Fraction(parameters, ranks))
        elif of == "bytes of a kind":
            total += part(Fraction(size * parameters, ranks))
        else:
            sharded += size
    return total + part(Fraction(sharded * parameters, ranks))


MISTAKEN_STATE = {
    "the last shard were not padded: a part is rounded up": {"part": math.floor},
    "a part were not rounded up to a whole number": {"part": float},
    "a part were rounded to the nearest number": {"part": round},
    "the bytes of a kind were rounded up: round a part of the parameters up": {
        "of": "bytes of a kind"
    },
    "the bytes of all shards together were rounded up, not the numbers of a shard": {
        "of": "bytes of all kinds"
    },
    "the optimizer state had 8 bytes of each parameter, without AdamW's copy of it": {
        "sizes": (2, 2, 8)
    },
    "the optimizer state had 4 bytes of each parameter": {"sizes": (2, 2, 4)},
    "gradients had 4 bytes": {"sizes": (2, 4, 12)},
    "parameters had 4 bytes": {"sizes": (4, 2, 12)},
    "parameters and gradients had 4 bytes each": {"sizes": (4, 4, 12)},
    "parameters and gradients had 4 bytes each, and the optimizer state 8": {
        "sizes": (4, 4, 8)
    },
    "the gradients were left out": {"sizes": (2, 0, 12)},
    "the parameters were left out": {"sizes": (0, 2, 12)},
    "the optimizer state were left out": {"sizes": (2, 2, 0)},
    "stage 1 sharded nothing, and each kind were sharded one stage later": {
        "first": (4, 3, 2)
    },
    "each kind were sharded one stage too early": {"first": (2, 1, 0)},
    "stage 1 sharded the parameters, and stage 3 the optimizer state": {
        "first": (1, 2, 3)
    },
    "stage 1 sharded the gradients, and stage 2 the optimizer state": {
        "first": (3, 1, 2)
    },
    "stage 2 sharded the parameters, and stage 3 the gradients": {"first": (2, 3, 1)},
    "stage 2 sharded the parameters, too": {"first": (2, 2, 1)},
    "stage 2 didn't shard the gradients": {"first": (3, 3, 1)},
    "stage 1 sharded the gradients, too": {"first": (3, 1, 1)},
    "stage 3 didn't shard the parameters": {"first": (4, 2, 1)},
    "gradients were never sharded": {"first": (3, 4, 1)},
    "the optimizer state were never sharded": {"first": (3, 2, 4)},
    "every stage above 0 sharded everything": {"first": (1, 1, 1)},
    "stage 0 sharded everything": {"first": (0, 0, 0)},
    "no stage sharded anything": {"first": (4, 4, 4)},
}


def saved(
    sizes,
    batch,
    recompute,
    *,
    stream=34,
    scores=5,
    across=lambda context, width: context,
    per_head=True,
    batches=(1, 1),
    stored=2,
    again=1,
    kept=None,
):
    """Layer by layer, at the moment when most is held."""
    _, layers, width, heads, context = sizes
    whole = stream * batch ** batches[0] * context * width
    of_heads = heads if per_head else 1
    whole += scores * of_heads * batch ** batches[1] * context * across(context, width)
    kept = layers if kept is None else kept(layers)
    if recompute:
        inputs = sum(stored * batch * context * width for _ in range(kept))
        return inputs + again * whole
    return sum(whole for _ in range(layers))


def saved_by_rule(sizes, batch, recompute, *, rule=None, **options):
    """As ``saved``; ``rule`` is a wrong one for what is recomputed."""
    whole = saved(sizes, batch, False, **options)
    if rule == "ignored":
        return whole
    if rule == "turned round":
        return saved(sizes, batch, not recompute, **options)
    if rule == "both" and recompute:
        return whole + saved(sizes, batch, True, again=0, **options)
    if rule == "one layer" and not recompute:
        return whole // sizes[1]
    return saved(sizes, batch, recompute, **options)


MISTAKEN_SAVED = {
    "34 B T H were left out": {"stream": 0},
    "5 a B T^2 were left out": {"scores": 0},
    "the 5 of 5 a B T^2 were 1": {"scores": 1},
    "it were 5 a B T, not T^2": {"across": lambda context, width: 1},
    "it were 5 a B T H, not T^2": {"across": lambda context, width: width},
    "the heads were left out of 5 a B T^2": {"per_head": False},
    "B were left out of 34 B T H": {"batches": (0, 1)},
    "B were left out of 5 a B T^2": {"batches": (1, 0)},
    "B were left out of the layer": {"batches": (0, 0)},
    "B were squared in 5 a B T^2": {"batches": (1, 2)},
    "an input had 1 byte for each number, not 2": {"stored": 1},
    "an input had 4 bytes for each number, not 2": {"stored": 4},
    "the inputs of recomputed layers were left out": {"stored": 0},
    "no layer were held whole: backward recomputes one at a time": {"again": 0},
    "two layers were held whole, not one": {"again": 2},
    "the layer that is recomputed had no input of its own": {
        "kept": lambda layers: layers - 1
    },
    "the input of one layer were kept, not of all": {"kept": lambda layers: 1},
    "nothing were ever recomputed": {"rule": "ignored"},
    "`recompute` were turned round": {"rule": "turned round"},
    "the inputs came on top of all whole layers": {"rule": "both"},
    "there were one layer, where nothing is recomputed": {"rule": "one layer"},
}


def cheapest(
    sizes,
    ranks,
    memory,
    *,
    order="recompute last",
    stages=(0, 1, 2, 3),
    hows=(False, True),
    room=None,
    full=True,
    batch_of=lambda batch: batch,
    among="first",
):
    """(stage, recompute, batch) of the first plan that fits, or None."""
    plans = list(itertools.product(hows, stages))
    if order == "stage by stage":
        plans.sort(key=lambda plan: plan[1])
    found = []
    space = Fraction(memory * 9, 10) if room is None else Fraction(room(memory))
    if room is None and full != "no, of the exact nine tenths":
        space = math.floor(space)
    for recompute, stage in plans:
        left = space - state(sizes[0], stage, ranks)
        one = saved(sizes, 1, recompute)
        batch = max(0, int(left // one) - (full is not True and left % one == 0))
        if batch:
            found.append((stage, recompute, batch_of(batch)))
    if among == "largest batch":
        return max(found, key=lambda plan: plan[2], default=None)
    return found[0] if found else None


MISTAKEN_PLANS = {
    "all of the memory could be used: leave a tenth free": {"room": lambda m: m},
    "a tenth of the memory could be used": {"room": lambda m: m / 10},
    "memory // 10 were taken first, which drops its remainder": {
        "room": lambda m: m // 10 * 9
    },
    "the tenth to leave free were rounded down": {"room": lambda m: m - m // 10},
    "a plan that fits exactly were too large": {"full": False},
    "a plan that takes exactly nine tenths were too large": {
        "full": "no, of the exact nine tenths"
    },
    "each stage were tried with recomputing before the next one without": {
        "order": "stage by stage"
    },
    "recomputing were tried before not recomputing": {"hows": (True, False)},
    "nothing could be recomputed": {"hows": (False,)},
    "everything had to be recomputed": {"hows": (True,)},
    "higher stages were tried before lower ones": {"stages": (3, 2, 1, 0)},
    "stage 3 were left out": {"stages": (0, 1, 2)},
    "stage 0 were left out": {"stages": (1, 2, 3)},
    "there were only stage 0": {"stages": (0,)},
    "there were only stage 3": {"stages": (3,)},
    "one sequence were enough": {"batch_of": lambda batch: 1},
    "one more sequence than fits were taken": {"batch_of": lambda batch: batch + 1},
    "one sequence less than fits were taken": {"batch_of": lambda batch: batch - 1},
    "the plan with the largest batch were wanted, not the first that fits": {
        "among": "largest batch"
    },
}


def words(model):
    return f"{model.parameters:,} parameters"


def whole_number(found, what):
    expect.that(
        found is None or isinstance(found, Integral),
        f"{what} is a {type(found).__name__}; expected a whole number of bytes",
    )


@pytest.mark.ranks(1)
def test_state_of_a_rank(exercise):
    """Parameters, gradients and optimizer state, for each stage."""
    numbers = (6_700_000_000, 124_000_003, 10), range(4), (8, 64, 3, 1)
    cases = list(itertools.product(*numbers))
    cases.sort(key=lambda case: (-case[0], case[2] != 8))
    found = [exercise.state_bytes(*case) for case in cases]
    cause = variants.cause(found, cases, state, MISTAKEN_STATE)
    for bytes_found, (parameters, stage, ranks) in zip(found, cases, strict=True):
        what = f"state of {parameters:,} parameters on {ranks} rank(s), stage {stage}"
        whole_number(bytes_found, what)
        expect.equal(bytes_found, state(parameters, stage, ranks), what, cause=cause)


@pytest.mark.ranks(1)
def test_activations_of_a_rank(exercise):
    """What all layers hold for backward, recomputed or not."""
    cases = list(itertools.product(SIZES, (1, 3), (False, True)))
    found = [
        exercise.activation_bytes(exercise.Model(*sizes), batch, recompute)
        for sizes, batch, recompute in cases
    ]
    cause = variants.cause(found, cases, saved_by_rule, MISTAKEN_SAVED)
    for bytes_found, (sizes, batch, recompute) in zip(found, cases, strict=True):
        how = "recomputed" if recompute else "kept"
        model = words(exercise.Model(*sizes))
        what = f"activations of {model}, {batch} sequence(s), {how}"
        whole_number(bytes_found, what)
        expect.equal(bytes_found, saved(sizes, batch, recompute), what, cause=cause)


@pytest.mark.ranks(1)
def test_cheapest_plan(exercise):
    """No recomputing before recomputing, lower stages first, then a large batch."""
    cases = [
        (sizes, ranks, memory)
        for sizes in SIZES
        for ranks, memory in ((8, 80 * GB), (8, 24 * GB), (64, 40 * GB), (4, 141 * GB))
    ]
    # exactly at the limit: 96 bytes of state and 3,900 of one sequence; then less
    tiny = (6, 1, 10, 1, 10)
    cases += [(tiny, 1, 3996 * 10 // 9), (tiny, 1, 4439), (tiny, 1, 10)]
    cases += [((7, *tiny[1:]), 1, 4458)]  # 4,012 of 4,012.2 bytes
    plans = [exercise.plan(exercise.Model(*sizes), *rest) for sizes, *rest in cases]
    cause = variants.cause(plans, cases, cheapest, MISTAKEN_PLANS)
    for found, (sizes, ranks, memory) in zip(plans, cases, strict=True):
        model = words(exercise.Model(*sizes))
        what = f"plan of {model} on {ranks} device(s) with {memory:,} bytes"
        check_plan(found, cheapest(sizes, ranks, memory), what, cause)


def check_plan(found, wanted, what, cause):
    if wanted is None:
        nothing = f"{what} is {found}, but nothing fits"
        expect.that(found is None, nothing, cause=cause)
        return
    expect.that(found is not None, f"{what} is None, expected {wanted}", cause=cause)
    expect.that(
        isinstance(found, tuple) and len(found) == 3,
        f"{what} is {found!r}; expected (stage, recompute, batch)",
    )
    for name, mine, right in zip(
        ("stage", "recompute", "batch"), found, wanted, strict=True
    ):
        expect.that(
            type(mine) is type(right) and mine == right,
            f"{what}: {name} is {mine!r}, expected {right!r}",
            cause=cause,
        )
