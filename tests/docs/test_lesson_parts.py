"""Lessons in parts: how long each is to read, and where the old addresses lead.

The rule for a part's minutes: those of its lesson, divided by the parts' words, where a
figure, a listing or a transcript counts as 40 words. The minutes of its exercises are
those of the catalog, and come on top.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.docs.pages import LESSONS, ROOT
from workshop.catalog import load_catalog
from workshop.lesson_pages import first_page, pages_of, parts_of

sys.path[:0] = [str(ROOT / "docs" / "_ext")]
pytest.importorskip("sphinx", reason="the site needs Sphinx: make site brings it")
lesson_parts = pytest.importorskip("lesson_parts")

IN_PARTS = [lesson for lesson in LESSONS if parts_of(ROOT, lesson)]
LEAST, MOST = 5, 20  # minutes to read
PROJECT = "20_capstone"  # its minutes are those of the work, not of the reading
OLD = ROOT / "tests" / "docs" / "old_addresses.txt"  # LESSON ANCHOR, a line each
PLACES = re.compile(r"^const places = (.*);$", re.M)


# How long a part is


@pytest.mark.parametrize("lesson", IN_PARTS)
def test_a_lesson_has_two_to_four_parts_in_order(lesson):
    paths = parts_of(ROOT, lesson)
    optional = int(lesson == PROJECT)  # its second task
    assert 2 <= len(paths) <= 4 + optional
    numbers = [path.name[:2] for path in paths]
    assert numbers == [f"{number}_" for number in range(1, len(paths) + 1)]
    others = set((ROOT / "docs" / "lessons" / lesson).glob("*.rst")) - set(paths)
    assert {path.name for path in others} == {"index.rst"}


@pytest.mark.parametrize("lesson", [one for one in IN_PARTS if one != PROJECT])
def test_a_part_is_read_in_5_to_20_minutes(lesson):
    found = lesson_parts.parts(ROOT, lesson)
    minutes = {part.path.stem: part.reading for part in found}
    wrong = {name: m for name, m in minutes.items() if not LEAST <= m <= MOST}
    assert not wrong, f"split or join what takes less or more: {wrong} min"


@pytest.mark.parametrize("lesson", IN_PARTS)
def test_minutes_of_the_parts_add_up_to_those_of_the_lesson(lesson):
    found = lesson_parts.parts(ROOT, lesson)
    whole = lesson_parts.reading_minutes(first_page(ROOT, lesson))
    assert sum(part.reading for part in found) == whole
    mine = {one.name for one in load_catalog(ROOT) if one.lesson == lesson}
    shown = [exercise.name for part in found for exercise in part.exercises]
    assert sorted(shown) == sorted(mine)


@pytest.mark.parametrize("lesson", IN_PARTS)
def test_a_part_begins_with_a_paragraph_that_says_why(lesson):
    for path in parts_of(ROOT, lesson):
        first = lesson_parts.first_paragraph(path.read_text(encoding="utf-8"))
        assert len(first.split()) >= 12, path
        assert not first.startswith(("..", "*", "#")), path


def test_exercises_are_in_the_order_of_the_catalog():
    """``workshop next`` leads from page to page, never back."""
    catalog = [one for one in load_catalog(ROOT) if one.lesson in IN_PARTS]
    listed: list[str] = []
    for lesson in IN_PARTS:
        for page in pages_of(ROOT, lesson):
            text = page.read_text(encoding="utf-8")
            listed += re.findall(r"^\.\. exercise:: (\w+)", text, re.M)
    assert [one.name for one in catalog] == listed


def test_minutes_are_shared_by_weight_and_none_is_lost():
    assert lesson_parts.shares(45, [1, 1, 1]) == [15, 15, 15]
    assert lesson_parts.shares(10, [1, 1, 1]) == [4, 3, 3]
    assert lesson_parts.shares(30, [600, 300, 100]) == [18, 9, 3]


def test_what_a_page_shows_counts_as_words():
    shown = ".. figure:: a.svg\n\n   .. transcript:: b\n\n.. exercise:: c\n"
    assert lesson_parts.weight(shown) == len(shown.split()) + 2 * 40


# Old addresses

ONCE_ONE_PAGE = [lesson for lesson in IN_PARTS if lesson < "21"]


def old_addresses() -> list[tuple[str, str]]:
    lines = OLD.read_text(encoding="utf-8").splitlines() if OLD.is_file() else []
    return [tuple(line.split(" ")) for line in lines]


def places(site: Path, lesson: str) -> dict[str, str]:
    """Where the page at the old address of a lesson leads: anchor -> address."""
    text = (site / f"docs/lessons/{lesson}.html").read_text(encoding="utf-8")
    return json.loads(PLACES.search(text)[1])


@pytest.mark.parametrize("lesson", ONCE_ONE_PAGE)
def test_every_old_address_leads_to_what_it_named(site, lesson):
    """Each anchor that the single page of the lesson had is known, and its place is."""
    anchors = [anchor for name, anchor in old_addresses() if name == lesson]
    assert len(anchors) >= 5
    known = places(site, lesson)
    lost = [anchor for anchor in anchors if anchor not in known]
    assert not lost, f"say in docs/lessons/moved.json where these are: {lost}"
    for anchor, address in known.items():
        path, _, name = address.partition("#")
        page = site / "docs" / "lessons" / path
        assert page.is_file(), f"{lesson}#{anchor} leads to {address}"
        text = page.read_text(encoding="utf-8")
        assert not name or f'id="{name}"' in text, f"{lesson}#{anchor}: {address}"


@pytest.mark.parametrize("lesson", IN_PARTS)
def test_an_old_address_leads_on_without_javascript(site, lesson):
    text = (site / f"docs/lessons/{lesson}.html").read_text(encoding="utf-8")
    assert f'<meta http-equiv="refresh" content="0; url={lesson}/index.html">' in text
    assert f'<a href="{lesson}/index.html">' in text
    assert (site / "docs" / "lessons" / lesson / "index.html").is_file()


def test_a_part_with_another_number_is_found_at_its_old_one(site):
    moved = json.loads((ROOT / "docs/lessons/moved.json").read_text(encoding="utf-8"))
    for old, address in moved["renumbered"].items():
        page = site / "docs" / "lessons" / f"{old}.html"
        assert f'content="0; url={address}"' in page.read_text(encoding="utf-8")
        assert (page.parent / address).is_file()
        source = ROOT / "docs" / "lessons" / f"{old}.rst"
        assert not source.exists(), f"{old} is a page again"


@pytest.mark.nightly
def test_a_browser_follows_old_addresses_even_without_a_server(browser, site):
    page = browser.new_page()
    for name, anchor in old_addresses()[::60]:
        page.goto(f"file://{site}/docs/lessons/{name}.html#{anchor}")
        there = places(site, name)[anchor]
        page.wait_for_url(f"file://{site}/docs/lessons/{there}")
    for lesson in IN_PARTS[:1]:
        page.goto(f"file://{site}/docs/lessons/{lesson}.html#no-such-anchor")
        page.wait_for_url(f"file://{site}/docs/lessons/{lesson}/index.html")
    page.close()
