"""Causes of a run that reports no error: what its numbers show is wrong.

Each rule returns the lines that show it. It is sure only if nothing healthy prints
them; otherwise the report asks the question that tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from grader.commands.diagnose.first import First, is_consequence, is_own_error, look
from grader.commands.diagnose.logs import Line, Log
from grader.commands.diagnose.numbers import (
    RESUMED,
    Number,
    Said,
    Shown,
    grouped,
    numbers_of,
    read_numbers,
    side_by_side,
)
from grader.commands.diagnose.slow import BYTES, SLOW

EVALUATION = re.compile(r"\b(?:eval|valid|val\b|test)", re.IGNORECASE)
DRAWN = re.compile(r"sampl|indic|index|\bids?\b|\bdraw|\border\b|batch", re.IGNORECASE)
OTHER = re.compile(  # lists of numbers that aren't those of samples
    r"shape|size|dims?\b|devices?\b|gpu|milestone|class|label|predict|target|token|"
    r"\btop|layer|head|hidden|expert",
    re.IGNORECASE,
)
RANDOM = re.compile(
    r"nois|augment|random|\bcrop|\bflip|jitter|rotat|mixup", re.IGNORECASE
)
SAMPLE = re.compile(r"sampl|image", re.IGNORECASE)
CONSTANT = re.compile(  # of a random transformation: equal by design
    r"\b(?:mean|std|variance|range|from|scale|ratio|prob\w*|strength|magnitude|param)",
    re.IGNORECASE,
)
SHARD = re.compile(r"shard|local|fsdp|dtensor|stage|no_sync|unreduced", re.IGNORECASE)
GRADIENT = re.compile(r"\bgrad(?:ient)?s?(?: (?:norm|sum|mean|max))?(?: is)?$")
LOSS = re.compile(r"^(?!.*\b(?:best|lowest|least|min)\b).*\bloss\b(?! scale)")
WEIGHTS = re.compile(r"\bweights?\b|\bparam(?:eter)?s?\b|checksum|digest|\bhash\b")
BESIDE = re.compile(r"\b(?:loss|lr|decay|time|seconds|mem|memory|acc|accuracy|mfu)\b")
HEX = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}\b")
STATISTICS = re.compile(r"running_(?:mean|var)|buffers?\b", re.IGNORECASE)
SAME_INPUT = re.compile(
    r"\b(?:one|same|fixed|first)\b.*(?:image|input|sample|batch)", re.IGNORECASE
)
OUTPUT = re.compile(r"output|logit|predict")
OF_ALL = re.compile(
    r"(?:over|across|of|from) all ranks|\bglobal (?:mean|loss|acc)|reduced"
)
SAVED = re.compile(r"\b(?:saved|wrote|written)\b", re.IGNORECASE)
AT = re.compile(r"(step|iter(?:ation)?|epoch|ckpt|checkpoint)[ _=:#-]{1,2}(\d+)", re.I)
DAMAGED = re.compile(r"corrupt|incomplete|damaged|invalid|fall\w* back|\bbest\b", re.I)
ITEMS = re.compile(r"^(?:samples|images|examples|rows|sequences)$")
COUNTED = re.compile(r"accura|evaluat|correct|\bright\b|\btop-?\d|\bcounted", re.I)
SCALE = re.compile(r"(?:loss|grad) scaler?(?: \w+)*$|reducing")


def numbers_show(log: Log) -> dict[str, Shown]:
    """Name of a cause -> what shows it, likeliest first; {} where a rank failed."""
    if any(is_own_error(row.text) or is_consequence(row.text) for row in log.lines):
        return {}
    said, ranks = read_numbers(log), len(look(log).ranks)
    found = {name: rule(said, ranks) for name, rule in (WRONG | SLOW).items()}
    return {name: shown for name, shown in found.items() if shown}


def of_lists(said: Iterable[Said], words: re.Pattern[str]) -> list[Said]:
    """Lines with a list of distinct numbers that these words announce."""
    return [
        each
        for each in said
        if words.search(each.text)
        and not OTHER.search(each.text)
        and any(len(row) > 1 and len(set(row)) == len(row) for row in each.lists)
    ]


def drawn(said: Iterable[Said]) -> list[Said]:
    """Lines with the numbers of shuffled samples that a rank trains on."""
    return [
        each
        for each in of_lists(said, DRAWN)
        if not EVALUATION.search(each.text)
        and all(len(row) > 2 and all(x == int(x) for x in row) for row in each.lists)
        and any(list(row) != sorted(row) for row in each.lists)
    ]


def lines(said: Iterable[Said], most: int = 2) -> tuple[Line, ...]:
    return tuple(each.line for each in said)[:most]


# -- data ---------------------------------------------------------------------------
def no_set_epoch(said: list[Said], _ranks: int) -> Shown | None:
    """Every epoch draws the same samples in the same order."""
    rows = [each for each in drawn(said) if each.epoch is not None]
    shown: list[Said] = []
    for group in grouped(rows, lambda each: (each.rank, each.step)).values():
        epochs = grouped(group, lambda each: (each.epoch,))
        drawn_then = {frozenset(e.lists for e in those) for those in epochs.values()}
        if len(epochs) > 1 and len(drawn_then) > 1:
            return None
        if len(epochs) > 1:
            shown = shown or [those[0] for those in epochs.values()]
    return Shown(lines(shown), True) if shown else None


def same_augmentation(said: list[Said], _ranks: int) -> Shown | None:
    """Two ranks draw the same random numbers."""
    rows = [each for each in of_lists(said, RANDOM) if not CONSTANT.search(each.text)]
    return equal_on_ranks([each for each in rows if each.worker is None])


def same_samples(said: list[Said], _ranks: int) -> Shown | None:
    """Two ranks read the same samples."""
    return equal_on_ranks(drawn(said))


def equal_on_ranks(said: list[Said]) -> Shown | None:
    places = side_by_side(said)
    if not places or any(len({e.lists for e in p.values()}) > 1 for p in places):
        return None
    return Shown(lines(places[0].values()), False)


def same_worker_noise(said: list[Said], _ranks: int) -> Shown | None:
    """Two data workers return the same random numbers."""
    words = re.compile(f"{RANDOM.pattern}|{SAMPLE.pattern}", re.IGNORECASE)
    rows = [each for each in of_lists(said, words) if not CONSTANT.search(each.text)]
    rows = [
        each
        for each in rows
        if each.worker is not None and any(100 * x % 1 for x in each.lists[0])
    ]
    groups = grouped(rows, lambda e: (e.rank, e.epoch, e.step, e.form, e.lists))
    for group in groups.values():
        if len({each.worker for each in group}) > 1:
            return Shown(lines(group), any(RANDOM.search(e.text) for e in group))
    return None


def sampler_starts_over(said: list[Said], _ranks: int) -> Shown | None:
    """After a resume, a later step of the same epoch reads its first samples again."""
    resumes = [place for place, each in enumerate(said) if RESUMED.search(each.text)]
    rows = [(place, each) for place, each in enumerate(said) if each in drawn([each])]
    for resume in resumes[:1]:
        ranks = grouped((e for _, e in rows), lambda each: (each.rank,))
        for (rank,) in ranks:
            before = [e for place, e in rows if place < resume and e.rank == rank]
            after = [e for place, e in rows if place > resume and e.rank == rank]
            if not after:
                continue
            before = [each for each in before if each.epoch == after[0].epoch]
            if before and starts_over(before, after):
                return Shown(lines([before[0], said[resume], after[0]], 3), True)
    return None


def starts_over(before: list[Said], after: list[Said]) -> bool:
    old, new = before[0], after[0]
    several = len({each.lists for each in before + after}) > 1
    if not several or old.lists != new.lists:
        return False
    return old.step is not None and new.step is not None and new.step > old.step


def clock_behind(said: list[Said], _ranks: int) -> Shown | None:
    """A job resumes from a snapshot that isn't the last one that was saved."""
    saved: dict[str, dict[int, Said]] = {}  # of steps, and of epochs
    for each in said:
        at = AT.search(each.text)
        if DAMAGED.search(each.text):
            return None
        of_kind = saved.setdefault(at[1].lower(), {}) if at else {}
        if at and SAVED.search(each.text):
            of_kind.setdefault(int(at[2]), each)
        elif at and RESUMED.search(each.text) and int(at[2]) in list(of_kind)[:-1]:
            last = of_kind[max(of_kind)]
            return Shown(lines([last, each]), False)
    return None


def padded_evaluation(said: list[Said], ranks: int) -> Shown | None:
    """The ranks together count more samples than the data set has."""
    counts: list[tuple[int, Said]] = []
    sizes: list[tuple[int, Said]] = []
    for each in said:
        if re.search("train", each.text, re.IGNORECASE):
            continue
        where = counts if COUNTED.search(each.text) else sizes
        of_items = (n for n in each.numbers if ITEMS.match(n.unit) and n.value >= 1)
        if number := next(of_items, None):
            where.append((int(number.value), each))
    for count, counted in counts:
        for size, sized in sizes if count not in dict(sizes) else []:
            if 0 < count - size < (ranks or 64) and count % (ranks or 1) == 0:
                return Shown(lines([counted, sized]), ranks > 1)
    return None


# -- what must be equal -------------------------------------------------------------
def different(said: Iterable[Said], name: re.Pattern[str]) -> list[Said]:
    """The lines of two ranks that differ in a number of that name."""
    for by_rank in side_by_side(said):
        rows = list(by_rank.values())
        values = [tuple(number.value for number in e.values(name)) for e in rows]
        if len(set(values)) > 1:
            return [
                rows[0],
                rows[values.index(next(v for v in values if v != values[0]))],
            ]
    return []


def temporary_ddp(said: list[Said], _ranks: int) -> Shown | None:
    """The gradients differ between the ranks after the backward pass."""
    rows = [each for each in said if not SHARD.search(each.text)]
    shown = different(rows, GRADIENT)
    return Shown(lines(shown), False) if shown else None


def drifting_weights(said: list[Said], _ranks: int) -> Shown | None:
    """A checksum or a value of the weights differs between the ranks."""
    rows = [
        each
        for each in said
        if WEIGHTS.search(each.text.lower()) and not SHARD.search(each.text)
    ]
    by_place = grouped(rows, lambda e: (e.epoch, e.step, HEX.sub("#", e.form)))
    for group in by_place.values():
        by_rank = {each.rank: each for each in group if each.rank is not None}
        states = {rank: state(each) for rank, each in by_rank.items()}
        if len(set(states.values())) > 1 and all(states.values()):
            return Shown(lines(by_rank.values()), False)
    return None


def state(said: Said) -> tuple[object, ...]:
    """Fractions and checksums of the line: a whole number may count something."""
    word = WEIGHTS.search(said.text.lower())
    tail = numbers_of(said.text[word.start() if word else 0 :])
    numbers = [n for n in tail if not BESIDE.search(n.name) and n.unit not in BYTES]
    fractions = [number.value for number in numbers if number.value % 1]
    return (*fractions, *HEX.findall(said.text))


def local_batch_norm(said: list[Said], _ranks: int) -> Shown | None:
    """The buffers, or the output for the same input, differ between the ranks."""
    rows = [each for each in said if STATISTICS.search(each.text)]
    shown = different(rows, re.compile("running|buffer"))
    rows = [each for each in said if SAME_INPUT.search(each.text)]
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
    for each in said:
        for number in [*each.values(LOSS), *each.values(GRADIENT)]:
            if number.value - number.value != 0:
                return Shown((each.line,), False, suspect(each, number))
    scales = [(n.value, e) for e in said for n in e.values(SCALE)[-1:] if n.value > 0]
    for start in range(len(scales) - 8):
        part = [value for value, _ in scales[start : start + 9]]
        if all(low * 2 == high for high, low in pairwise(part)):
            return Shown(lines([scales[start][1], scales[start + 8][1]]), False)
    return None


def suspect(said: Said, number: Number) -> First | None:
    why = f"the first to print {number.value} for {number.name}"
    return None if said.rank is None else First((said.rank,), why, sure=False)


def float16_underflow(said: list[Said], _ranks: int) -> Shown | None:
    """The gradients are exactly 0, in each step that the log has."""
    rows = [(n.value, e) for e in said for n in e.values(GRADIENT)[:1] if n.unit != "%"]
    if len(rows) > 1 and not any(value for value, _ in rows):
        return Shown(lines(each for _, each in rows), False)
    return None


WRONG = {
    rule.__name__: rule
    for rule in (
        no_set_epoch,
        sampler_starts_over,
        same_samples,
        same_augmentation,
        same_worker_noise,
        clock_behind,
        padded_evaluation,
        forgotten_divide,
        temporary_ddp,
        local_batch_norm,
        drifting_weights,
        swapped_collectives,
        not_finite,
        float16_underflow,
    )
}
