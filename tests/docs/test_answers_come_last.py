"""What an exercise asks for stands in no listing of its lesson above it."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from workshop.catalog import Exercise, load_catalog
from workshop.lesson_pages import pages_of
from workshop.skeleton import holes, parse

ROOT = Path(__file__).resolve().parents[2]
CATALOG = load_catalog(ROOT)
LISTING = re.compile(r"<pre.*?</pre>", re.DOTALL)
MOST = 2 / 3  # of an answer's lines; some are in every program, such as `return loss`
TEXT = re.compile(r'""".*?"""|#[^\n]*', re.DOTALL)
CALL = re.compile(r"(?<!def )(?<!class )\b([A-Za-z_]\w*)\(")
VARIANT = re.compile(
    r"_(object|single|into_tensor)$"
)  # gather_object does what gather does
OTHERS = 3  # calls of the answer beside the one that the learner has to find
# the smallest example that its page opens with, and then says what the exercise changes
MEANT = {
    ("12_split_network", "def run_batch(first, second, images, labels):"),
    ("13_pipeline_api", "def run_step(layer, inputs, targets):"),
}


def told(text: str) -> set[str]:
    """The lines of a listing or an answer, without indentation and marks of a diff."""
    lines = (re.sub(r"^[+-]", "", line.strip()).strip() for line in text.splitlines())
    return {" ".join(line.split()) for line in lines if line and line[0] != "#"}


def names(code: str) -> set[str]:
    """What code calls, without Python's own functions."""
    found = CALL.findall(TEXT.sub("", code))
    return {VARIANT.sub("", name) for name in found} - set(dir(builtins))


@cache
def answers(exercise: Exercise) -> list[str]:
    """The code of each hole of the solution."""
    found = holes(parse(exercise.solution.read_text("utf-8")))
    return ["\n".join(hole.answer) for hole in found]


def to_find(exercise: Exercise) -> set[str]:
    """What the answer calls, its file doesn't name, and few other answers call."""
    each = Counter(
        name for one in CATALOG for name in set().union(*map(names, answers(one)))
    )
    words = re.findall(r"\w+", exercise.path.read_text("utf-8"))
    given = {VARIANT.sub("", word) for word in words}
    mine = set().union(*map(names, answers(exercise)))
    return {name for name in mine - given if each[name] <= 2}


def above(site: Path, exercise: Exercise) -> list[str]:
    """All listings of its lesson's pages above the exercise."""
    html = ""
    for source in pages_of(ROOT, exercise.lesson):
        name = source.relative_to(ROOT).with_suffix(".html")
        html += (site / name).read_text("utf-8")
        if source == ROOT / exercise.page:
            break
    before, asked, _ = html.partition(f"check {exercise.name}")
    assert asked, f"{exercise.page} doesn't have {exercise.name}"
    plain = (re.sub("<[^>]+>", "", listing) for listing in LISTING.findall(before))
    return [unescape(text).strip() for text in plain]


@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_answer_is_not_above_its_exercise(site, exercise):
    shown = set().union(*map(told, above(site, exercise)))
    for answer in answers(exercise):
        lines = told(answer)
        found = lines & shown
        assert len(lines) < 2 or len(found) <= MOST * len(lines), found


@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_same_in_other_words_is_not_above_its_exercise(site, exercise):
    """A program's own version gives the answer away, whatever its names are."""
    wanted, mine = to_find(exercise), set().union(*map(names, answers(exercise)))
    for listing in above(site, exercise):
        first, calls = listing.split("\n")[0], names(listing)
        given_away = calls & wanted
        if "raise NotImplementedError" in listing:  # the file of another exercise
            continue
        if given_away and len(calls & mine) > OTHERS:
            assert (exercise.name, first) in MEANT, f"{first}: {given_away}"
