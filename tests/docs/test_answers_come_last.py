"""What an exercise asks for stands in no listing above it on its page."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from grader.catalog import Exercise, load_catalog
from grader.skeleton import holes, parse

ROOT = Path(__file__).resolve().parents[2]
LISTING = re.compile(r"<pre.*?</pre>", re.DOTALL)
MOST = 2 / 3  # of an answer's lines; some are in every program, such as `return loss`


def told(text: str) -> set[str]:
    """The lines of a listing or an answer, without indentation and marks of a diff."""
    lines = (re.sub(r"^[+-]", "", line.strip()).strip() for line in text.splitlines())
    return {" ".join(line.split()) for line in lines if line and line[0] != "#"}


def above(site: Path, exercise: Exercise) -> set[str]:
    """The lines of all listings of its page above the exercise."""
    page = site / Path(exercise.page).with_suffix(".html")
    before, asked, _ = page.read_text("utf-8").partition(f"check {exercise.name}")
    assert asked, f"{exercise.page} doesn't have {exercise.name}"
    plain = (re.sub("<[^>]+>", "", listing) for listing in LISTING.findall(before))
    return set().union(*(told(html.unescape(text)) for text in plain))


@pytest.mark.parametrize("exercise", load_catalog(ROOT), ids=lambda e: e.name)
def test_answer_is_not_above_its_exercise(site, exercise):
    shown = above(site, exercise)
    for hole in holes(parse(exercise.solution.read_text("utf-8"))):
        lines = told("\n".join(hole.answer))
        found = lines & shown
        assert len(lines) < 2 or len(found) <= MOST * len(lines), found
