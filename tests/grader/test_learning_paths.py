"""The paths of the catalog, and ``workshop next --path``, which follows one."""

from __future__ import annotations

import pytest

from tests.grader.small_house import HOUSE, NAMES, make_house, play, workshop
from workshop.catalog import load_catalog
from workshop.errors import UserError
from workshop.learning_paths import find_path, is_optional, load_paths

CATALOG = load_catalog(HOUSE)
PATHS = load_paths(HOUSE, CATALOG)
TO_THE_END = """
[[path]]
name = "short"
title = "Short"
promise = "From one to three."
lessons = ["01_lesson", "03_lesson"]
starter = "starter.py"
then = "all"
"""


@pytest.fixture
def house(tmp_path):
    """Three exercises, the second is optional, and the path "short"."""
    root = make_house(tmp_path)
    (root / "starter.py").write_text("")
    file = root / "exercises" / "catalog.toml"
    text = file.read_text().replace("points = 2\n", "points = 2\noptional = true\n")
    file.write_text(text + TO_THE_END + '[[path]]\nname = "all"\n')
    change(root, 'name = "all"', 'name = "all"\ntitle = "All"\npromise = "All of it."')
    return root


def change(root, old, new):
    file = root / "exercises" / "catalog.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


# What the catalog of this workshop has
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_path_keeps_the_order_of_the_course_and_practises_every_lesson(path):
    assert list(path.lessons) == sorted(path.lessons)
    assert list(path.exercises) == [e for e in CATALOG if e in path.exercises]
    assert all(path.of_lesson(lesson) for lesson in path.lessons)


def test_the_afternoon_has_three_exercises_and_the_deadlines_a_file_to_copy():
    afternoon, slurm, pbs = (
        find_path(PATHS, name) for name in ("afternoon", "slurm", "pbs")
    )
    assert len(afternoon.exercises) == 3
    assert slurm.starter == pbs.starter == "src/starter/train_ddp.py"


def test_the_course_has_all_that_is_not_optional():
    course = find_path(PATHS, "course")
    assert list(course.exercises) == [e for e in CATALOG if not e.optional]
    assert is_optional("04_data_parallel", CATALOG)
    assert "04_data_parallel" not in course.lessons
    assert len(course.lessons) == 22


# next --path
def test_next_follows_a_path_to_the_file_at_its_end(house):
    shown = workshop(house, "next", "--path", "short").stdout
    assert "Path short: 0 of 2 right, about 20 minutes" in shown
    assert "exercises/01_one.py" in shown
    play(house, "01_one", "right")
    workshop(house, "check", "one")
    shown = workshop(house, "next", "--path", "short").stdout
    assert "Path short: 1 of 2 right, about 15 minutes" in shown
    assert "exercises/03_three.py" in shown and "docs/lessons/03_lesson.rst" in shown
    play(house, "03_three", "right")
    workshop(house, "check", "three")
    shown = workshop(house, "next", "--path", "short")
    assert "2 of 2 right" in shown.stdout and "Now copy starter.py" in shown.stdout
    assert "To continue: workshop next --path all" in shown.stdout
    assert shown.returncode == 0


def test_list_and_watch_keep_to_a_path(house):
    shown = workshop(house, "list", "--path", "short").stdout
    assert "01_one" in shown and "03_three" in shown and "02_two" not in shown
    assert "Path short: 0 of 2 right" in shown
    done = workshop(house, "watch", "two", "--path", "short")
    assert done.returncode == 2
    assert "02_two is not on the path short: leave out --path" in done.stderr
    for name in ("01_one", "03_three"):
        play(house, name, "right")
        workshop(house, "check", name)
    shown = workshop(house, "watch", "--path", "short").stdout
    assert "You've finished it." in shown and "workshop next --path all" in shown


def test_next_without_a_path_has_the_optional_ones_too_and_says_so(house):
    play(house, "01_one", "right")
    workshop(house, "check", "one")
    assert "about 10 minutes, optional" in workshop(house, "next").stdout
    assert "exercises/03_three.py" in workshop(house, "next", "--path", "all").stdout


def test_an_unknown_path_is_one_sentence_with_the_known_names(house):
    done = workshop(house, "next", "--path", "long")
    assert done.returncode == 2 and done.stdout == ""
    sentence = "workshop: 'long' is not a path: choose one of short, all\n"
    assert done.stderr == sentence


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["01_lesson", "03_lesson"]', '["09_lesson"]', "leads to 09_lesson"),
        ("starter.py", "no.py", "leads to no.py"),
        ('starter = "starter.py"', 'exercises = ["02_two"]', "leads to 02_two"),
        ('title = "Short"\n', "", "short lacks title"),
        ("starter =", "start =", "short has unknown fields start"),
        ('then = "all"', 'then = "none"', "short is followed by none, which is no p"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(house, old, new, words):
    change(house, old, new)
    with pytest.raises(UserError, match=words):
        load_paths(house, load_catalog(house))


def test_a_house_without_paths_says_so(tmp_path):
    done = workshop(make_house(tmp_path), "next", "--path", NAMES[0])
    assert done.returncode == 2
    assert "is not a path: none is in the catalog" in done.stderr
