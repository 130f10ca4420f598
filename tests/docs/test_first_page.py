"""The README's paths and hours are those that the first page computes."""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest

from tests.docs.pages import LESSONS, ROOT
from workshop.catalog import load_catalog
from workshop.learning_paths import load_paths
from workshop.lesson_pages import first_page

sys.path[:0] = [str(ROOT / "docs" / "_ext")]
pytest.importorskip("sphinx", reason="the site needs Sphinx: make site brings it")
course = pytest.importorskip("course")

README = (ROOT / "README.md").read_text(encoding="utf-8")
CATALOG = load_catalog(ROOT)
PATHS = {path.name: path for path in load_paths(ROOT, CATALOG)}
ROW = re.compile(r"^\| `([\w-]+)`.*\| (.*) \| (.*) \| (.*) \|$", re.M)


def reading(lessons) -> str:
    pages = [first_page(ROOT, lesson) for lesson in lessons]
    return course.hours(sum(map(course.reading_minutes, pages)))


def test_readme_has_the_paths_with_their_stations_and_hours():
    rows = {name: cells for name, *cells in ROW.findall(README)}
    assert list(rows) == list(PATHS)
    for name, (stations, read, practice) in rows.items():
        path = PATHS[name]
        assert (read, practice) == (reading(path.lessons), course.hours(path.minutes))
        assert path.starter in stations
        if name != "course":
            numbers = re.findall(r"\b\d\d\b", stations)
            assert numbers == [lesson[:2] for lesson in path.lessons]


def test_readme_begins_with_the_picture_and_a_learners_commands():
    words = ("start_deadlock.svg", "$ make tour", "$ workshop next", "make test")
    places = [README.index(each) for each in words]
    assert places == sorted(places)
    assert README[: places[2]].count("\n") < 16, "a screen has so many lines"


def test_readme_has_the_time_that_all_of_it_takes():
    practice = course.hours(sum(exercise.minutes for exercise in CATALOG))
    said = " ".join(README.split())
    assert (
        f"The {len(LESSONS)} lessons take about {reading(LESSONS)} to read, "
        f"and the exercises {practice} to do." in said
    )


def test_hours_are_told_to_the_next_half():
    assert [course.hours(n) for n in (45, 60, 85, 205)] == [
        "45 min",
        "1 h",
        "1½ h",
        "3½ h",
    ]


def test_three_buttons_stand_above_the_first_figure():
    text = (ROOT / "index.rst").read_text(encoding="utf-8")
    head = text.partition(".. figure::")[0]
    buttons = head.partition(".. rst-class:: start-buttons")[2]
    assert re.findall(r"^\* :ref:`(.+) <(.+)>`$", buttons, re.M) == [
        ("Start lesson 01", "lesson-01"),
        ("Fix a broken run", "lesson-19"),
        ("Estimate my job", "cost"),
    ]


def test_readme_says_how_many_exercises_a_lesson_has():
    """Counted in the catalog, which also has exercises of pages that aren't lessons."""
    lessons = [each.lesson for each in CATALOG]
    counts = Counter(lesson for lesson in lessons if lesson[:2].isdigit())
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    fewest, most = min(counts.values()), max(counts.values())
    assert f"Each has {words[fewest]} to {words[most]} exercises" in README
