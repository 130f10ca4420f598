"""Wrong numbers: what must be equal on all ranks, gradients and losses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from workshop.diagnose.numbers import (
    Number,
    Rule,
    Said,
    Shown,
    grouped,
    lines,
    numbers_of,
    side_by_side,
)
from workshop.diagnose.ranks import First
from workshop.diagnose.slow import BYTES

SHARD = re.compile(
    r"shard|local|fsdp|dtensor|stage|no_sync|unreduced|expert", re.IGNORECASE
)
EXPERT = re.compile(r"\bexperts?$")
KEYS = re.compile(r"\bkeys?\b|\bvalues?\b|\b[kv]_proj\b", re.IGNORECASE)
GRADIENT = re.compile(r"\bgrad(?:ient)?s?(?: (?:norm|sum|mean|max))?(?: is)?$")
LOSS = re.compile(r"^(?!.*\b(?:best|lowest|least|min)\b).*\bloss\b(?! scale)")
WEIGHTS = re.compile(r"\bweights?\b|\bparam(?:eter)?s?\b|checksum|digest|\bhash\b")
BESIDE = re.compile(r"\b(?:loss|lr|decay|time|seconds|mem|memory|acc|accuracy|mfu)\b")
JOINED = re.compile(
    r"\b(?:re-?)?join(?:s|ed|ing)?\b|\bheal(?:s|ed|ing)?\b|"
    r"\bfrom (?:a|its|the) peer\b",
    re.IGNORECASE,
)
HEX = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}\b")
STATISTICS = re.compile(r"running_(?:mean|var)|buffers?\b", re.IGNORECASE)
SAME_INPUT = re.compile(
    r"\b(?:one|same|fixed|first)\b.*(?:image|input|sample|batch)", re.IGNORECASE
)
OUTPUT = re.compile(r"output|logit|predict")
OF_ALL = re.compile(
    r"(?:over|across|of|from) all ranks|\bglobal (?:mean|loss|acc)|reduced"
)
SCALE = re.compile(r"(?:loss|grad) scaler?(?: \w+)*$|reducing")
AGAIN = 2  # finite values after the last bad one: the run recovered


def different(said: Iterable[Said], name: re.Pattern[str]) -> list[Said]:
    """The lines of two ranks that differ in a number of that name."""
    for by_rank in side_by_side(said):
        rows = list(by_rank.values())
        values = [[str(number.value) for number in e.values(name)] for e in rows]
        for row, value in zip(rows, values, strict=True):
            if value != values[0]:
                return [rows[0], row]
    return []


def temporary_ddp(said: list[Said], _ranks: int) -> Shown | None:
    """The gradients differ between the ranks, or every number of the weights does."""
    shown = different((e for e in said if not SHARD.search(e.text)), GRADIENT)
    for by_rank in of_weights(said) if not shown else []:
        first, *others = (state(each) for each in by_rank.values())
        if not any(set(first) & set(other) for other in others):
            shown = list(by_rank.values())
    return Shown(lines(shown), False) if shown else None


def averaged_experts(said: list[Said], _ranks: int) -> Shown | None:
    """Ranks print the same gradient for experts with different numbers."""
    rows = [each for each in said if each.values(EXPERT) and each.values(GRADIENT)]
    for by_rank in side_by_side(rows):
        group = list(by_rank.values())
        experts = {each.values(EXPERT)[0].value for each in group}
        gradients = {each.values(GRADIENT)[0].value for each in group}
        if len(experts) == len(group) and len(gradients) == 1 and any(gradients):
            return Shown(lines(group), True)
    return None


def keys_without_gradients(said: list[Said], _ranks: int) -> Shown | None:
    """The gradient of keys or values on N ranks isn't that of one process."""
    rows = [each for each in said if each.size and KEYS.search(each.text)]
    rows = [each for each in rows if each.values(GRADIENT)]
    for step in grouped(rows, lambda each: (each.epoch, each.step)).values():
        alone = next((each for each in step if each.size == 1), None)
        if alone is None:
            continue
        for many in step:
            norms = [each.values(GRADIENT)[0].value for each in (many, alone)]
            if max(norms) > 1.05 * min(norms) and times(many, alone, GRADIENT) is None:
                return Shown(lines([many, alone]), False)
    return None


def joined_without_momentum(said: list[Said], _ranks: int) -> Shown | None:
    """The weights are equal on all ranks until one joins, and differ afterwards."""
    apart = of_weights(said)
    if not apart:
        return None
    rows = list(apart[0].values())
    before = said[: min(map(said.index, rows))]
    joined = [number for number, e in enumerate(before) if JOINED.search(e.text)]
    if not joined or not equal_weights(before[: joined[-1]]):
        return None
    return Shown(lines([before[joined[-1]], *rows]), False)


def equal_weights(said: list[Said]) -> bool:
    """Whether two ranks print the same number of their weights."""
    rows = [each for each in said if WEIGHTS.search(each.text.lower()) and state(each)]
    return any(
        len({state(each) for each in by_rank.values()}) == 1
        for by_rank in side_by_side(rows)
    )


def drifting_weights(said: list[Said], _ranks: int) -> Shown | None:
    """A number of the weights, or the output for one input, differs between ranks."""
    for by_rank in of_weights(said):
        return Shown(lines(by_rank.values()), False)
    shown = different((e for e in said if SAME_INPUT.search(e.text)), OUTPUT)
    return Shown(lines(shown), False) if shown else None


def of_weights(said: list[Said]) -> list[dict[int, Said]]:
    """Where ranks print other numbers of their weights: {rank: line}."""
    rows = [
        each
        for each in said
        if WEIGHTS.search(each.text.lower()) and not SHARD.search(each.text)
    ]
    by_place = grouped(rows, lambda e: (e.epoch, e.step, HEX.sub("#", e.form)))
    found: list[dict[int, Said]] = []
    for group in by_place.values():
        by_rank = {each.rank: each for each in group if each.rank is not None}
        states = {state(each) for each in by_rank.values()}
        if len(states) > 1 and all(states):
            found.append(by_rank)
    return found


def state(said: Said) -> tuple[object, ...]:
    """Fractions and checksums of the line: a whole number may count something."""
    word = WEIGHTS.search(said.text.lower())
    start = word.start() if word else 0
    tail = numbers_of(said.text[start:])
    metrics = [n for n in tail if not BESIDE.search(n.name) and n.unit not in BYTES]
    fractions = [number.value for number in metrics if number.value % 1]
    return (*fractions, *HEX.findall(said.text))


def local_batch_norm(said: list[Said], _ranks: int) -> Shown | None:
    """The buffers, or the output for one input, differ between the ranks."""
    rows = (each for each in said if STATISTICS.search(each.text))
    shown = different(rows, re.compile("running|buffer"))
    rows = (each for each in said if SAME_INPUT.search(each.text))
    shown = shown or different(rows, OUTPUT)
    return Shown(lines(shown), False) if shown else None


def swapped_collectives(said: list[Said], _ranks: int) -> Shown | None:
    """What was reduced over all ranks differs between them."""
    shown = different(said, OF_ALL)
    return Shown(lines(shown), False) if shown else None


# -- gradients and losses -----------------------------------------------------------
def forgotten_divide(said: list[Said], _ranks: int) -> Shown | None:
    """On N ranks, the gradient or the loss is N times that of one process."""
    for name in (GRADIENT, LOSS):
        rows = [each for each in said if each.size and each.values(name)]
        for step in grouped(rows, lambda each: (each.epoch, each.step)).values():
            alone = next((each for each in step if each.size == 1), None)
            others = [each for each in step if (each.size or 0) > 1]
            for many in others if alone else []:
                if alone and times(many, alone, name) == many.size:
                    return Shown(lines([many, alone]), name is GRADIENT)
    return None


def times(many: Said, alone: Said, name: re.Pattern[str]) -> int | None:
    """How many times as large a value is, if that is nearly a whole number."""
    below = alone.values(name)[0].value
    ratio = many.values(name)[0].value / below if below else 0.0
    whole = round(ratio) if ratio == ratio and ratio < 1e6 else 0
    return whole if whole and abs(ratio / whole - 1) < 0.02 else None


def not_finite(said: list[Said], _ranks: int) -> Shown | None:
    """A loss or a gradient is nan or inf, or the loss scale is halved without end."""
    for place, each in enumerate(said):
        for number in of_training(each):
            if not is_finite(number) and not recovers(said[place:], each, number.name):
                return Shown((each.line,), False, suspect(each, number))
    scales = [(n.value, e) for e in said for n in e.values(SCALE)[-1:] if n.value > 0]
    halved = [start for start in range(len(scales) - 8) if is_halved(scales, start)]
    if halved and len(losses_after(said, scales[halved[-1] + 8][1])) < AGAIN:
        first, last = scales[halved[0]][1], scales[halved[0] + 8][1]
        return Shown(lines([first, last]), False)
    return None


def of_training(said: Said) -> list[Number]:
    """The losses and the gradients of a line."""
    return [*said.values(LOSS), *said.values(GRADIENT)]


def is_finite(number: Number) -> bool:
    return number.value - number.value == 0


def recovers(said: list[Said], first: Said, name: str) -> bool:
    """Whether later steps of this rank end with finite values of that name.

    A scaled loss overflows now and then: the step is skipped, and the run continues.
    """
    finite = 0
    bad = first
    for each in said:
        of_name = [number for number in of_training(each) if number.name == name]
        if each.rank != first.rank or not of_name:
            continue
        if not all(map(is_finite, of_name)):
            bad, finite = each, 0
        elif each.step is None or (each.epoch, each.step) != (bad.epoch, bad.step):
            finite += 1
    return finite >= AGAIN


def is_halved(scales: list[tuple[float, Said]], start: int) -> bool:
    """Whether each of nine loss scales is half of the one before."""
    part = [value for value, _ in scales[start : start + 9]]
    return all(low * 2 == high for high, low in pairwise(part))


def losses_after(said: list[Said], last: Said) -> list[Said]:
    """Lines with a finite loss after that one."""
    later = said[said.index(last) + 1 :]
    return [e for e in later if e.values(LOSS) and all(map(is_finite, e.values(LOSS)))]


def suspect(said: Said, number: Number) -> First | None:
    why = f"the first to print {number.value} for {number.name}"
    return None if said.rank is None else First((said.rank,), why, sure=False)


def float16_underflow(said: list[Said], _ranks: int) -> Shown | None:
    """The gradients are exactly 0, in each step that the log has."""
    rows = [(n.value, e) for e in said for n in e.values(GRADIENT)[:1] if n.unit != "%"]
    if len(rows) > 1 and not any(value for value, _ in rows):
        return Shown(lines(each for _, each in rows), False)
    return None


STATE: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        forgotten_divide,
        averaged_experts,
        keys_without_gradients,
        local_batch_norm,
        joined_without_momentum,
        drifting_weights,
        temporary_ddp,
        swapped_collectives,
        not_finite,
        float16_underflow,
    )
}
