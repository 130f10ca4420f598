"""Wrong data: the samples, the random numbers and the snapshots that ranks print."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workshop.diagnose.numbers import (
    RESUMED,
    Rule,
    Said,
    Shown,
    grouped,
    lines,
    side_by_side,
)

EVALUATION = re.compile(r"\b(?:eval|valid|val\b|test)", re.IGNORECASE)
DRAWN = re.compile(r"sampl|indic|index|\bids?\b|\bdraw|\border\b|batch", re.IGNORECASE)
OTHER = re.compile(  # lists of numbers that aren't those of samples
    r"shape|size|dims?\b|devices?\b|gpu|milestone|class|label|predict|target|token|"
    r"\btop|layer|head|hidden|expert",
    re.IGNORECASE,
)
RANDOM = re.compile(
    r"nois|augment|random|\bcrop|\bflip|jitter|rotate|rotation|mixup", re.IGNORECASE
)
SAMPLE = re.compile(r"sampl|image", re.IGNORECASE)
CONSTANT = re.compile(  # of a random transformation: equal by design
    r"\b(?:mean|std|variance|range|from|scale|ratio|prob\w*|strength|magnitude|param)",
    re.IGNORECASE,
)
POSITIONS = re.compile(r"\bpositions?\b|\bposition_?ids\b", re.IGNORECASE)
SAVED = re.compile(r"\b(?:saved|wrote|written)\b", re.IGNORECASE)
AT = re.compile(r"(step|iter(?:ation)?|epoch|ckpt|checkpoint)[ _=:#-]{1,2}(\d+)", re.I)
DAMAGED = re.compile(r"corrupt|incomplete|damaged|invalid|fall\w* back|\bbest\b", re.I)
ITEMS = re.compile(r"^(?:samples|images|examples|rows|sequences)$")
COUNTED = re.compile(r"accura|evaluat|correct|\bright\b|\btop-?\d|\bcounted", re.I)


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
    groups = side_by_side(said)
    if not groups or any(
        len({e.lists for e in group.values()}) > 1 for group in groups
    ):
        return None
    return Shown(lines(groups[0].values()), False)


def local_positions(said: list[Said], _ranks: int) -> Shown | None:
    """Ranks print the same list of positions."""
    rows = [each for each in said if POSITIONS.search(each.text) and each.lists]
    return equal_on_ranks(rows)


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
        of_items = (n for n in each.metrics if ITEMS.match(n.unit) and n.value >= 1)
        if number := next(of_items, None):
            where.append((int(number.value), each))
    for count, counted in counts:
        for size, sized in sizes if count not in dict(sizes) else []:
            if 0 < count - size < (ranks or 64) and count % (ranks or 1) == 0:
                return Shown(lines([counted, sized]), ranks > 1)
    return None


SAMPLES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        no_set_epoch,
        sampler_starts_over,
        same_samples,
        local_positions,
        same_augmentation,
        same_worker_noise,
        clock_behind,
        padded_evaluation,
    )
}
