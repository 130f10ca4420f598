"""The page for those who teach: its minutes, its mistakes, its two example files."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT
from workshop.author.answers import read_answers
from workshop.catalog import load_catalog
from workshop.classroom.report_style import RELOAD_EVERY
from workshop.lesson_pages import first_page
from workshop.skeleton import holes, parse

sys.path[:0] = [str(ROOT / "docs" / "_ext")]
pytest.importorskip("sphinx", reason="the site needs Sphinx: make site brings it")
course = pytest.importorskip("course")

PAGE = (ROOT / "docs" / "teach.rst").read_text(encoding="utf-8")
EXAMPLES = ROOT / "docs" / "examples" / "classroom"
EXERCISES = {exercise.name: exercise for exercise in load_catalog(ROOT)}
LESSONS = {
    exercise.lesson[:2]: exercise.lesson
    for exercise in EXERCISES.values()
    if exercise.lesson[:1].isdigit()
}
TABLE = re.compile(
    r"^ +\.\. list-table:: (?P<title>.*): (?P<total>\d+) min\n"
    r"(?P<rows>(?:\n| +[^.\n ].*\n)*)",
    re.M,
)
ROW = re.compile(
    r"\* - .*?:ref:`lesson-(\d\d)`\n +- (\d+) min\n +- ([^-]*?)\n +- (\d+) min\n"
)
NAME = re.compile(r"``(\d\d_\w+)``")


def schedules():
    """(title, minutes of the title, rows) of each schedule."""
    return [
        (found["title"], int(found["total"]), ROW.findall(found["rows"]))
        for found in TABLE.finditer(PAGE)
    ]


def test_there_are_three_schedules_and_every_row_is_read():
    assert [len(rows) for _, _, rows in schedules()] == [3, 6, 11]
    before = PAGE[: PAGE.index("Know where people get stuck")]
    assert before.count("* - ") - 3 == 20


@pytest.mark.parametrize("title, total, rows", schedules())
def test_the_minutes_of_a_schedule_are_those_of_the_pages_and_the_catalog(
    title, total, rows
):
    added = 0
    for lesson, read, exercises, practice in rows:
        page = first_page(ROOT, LESSONS[lesson])
        assert int(read) == course.reading_minutes(page), lesson
        names = NAME.findall(exercises)
        assert all(name.startswith(lesson) for name in names), names
        minutes = sum(EXERCISES[name].minutes for name in names)
        assert int(practice) == minutes, f"{title}: {names}"
        added += int(read) + minutes
    assert total == added, f"{title}: the rows add up to {added} min"


@pytest.mark.parametrize("number", range(3), ids=["half", "one", "three"])
def test_a_schedule_has_a_row_or_a_word_for_every_lesson(number):
    """After its table it says which lessons are left out, and when they come."""
    here = list(TABLE.finditer(PAGE))[number].start()
    tab = re.split(r"\.\. tab-item::|^Know where", PAGE[here:], flags=re.M)[0]
    told = set(re.findall(r":ref:`lesson-(\d\d)`", tab))
    lessons = {*LESSONS, "20"}
    if since := re.search(r"everything\s+from\s+:ref:`lesson-(\d\d)`", tab):
        told |= {lesson for lesson in lessons if lesson >= since[1]}
    assert told == lessons


def test_the_capstone_takes_what_the_three_days_say():
    page = first_page(ROOT, "20_capstone")
    said = " ".join(PAGE.split())
    exercise = EXERCISES["20_capstone"].minutes
    words = f"homework at the end: {course.reading_minutes(page)} min to read, and"
    assert f":ref:`lesson-20` is {words} {exercise} min for the exercise" in said


def test_the_exercise_that_half_a_day_skips_takes_what_is_said():
    said = " ".join(PAGE.split())
    assert "Skip the ring all-reduce: it takes 25 minutes" in said
    assert EXERCISES["03_ring_all_reduce"].minutes == 25


def test_exercises_of_a_schedule_are_in_the_order_of_the_catalog():
    order = list(EXERCISES)
    for title, _, rows in schedules():
        names = [name for _, _, told, _ in rows for name in NAME.findall(told)]
        assert names == sorted(names, key=order.index), title


def test_what_people_get_stuck_at_is_a_known_mistake_with_these_words():
    known = {
        name: read_answers(exercise.answers, name)
        for name, exercise in EXERCISES.items()
    }
    wrong = [a for answers in known.values() for a in answers if not a.is_right]
    assert len(wrong) > 1000 and "more than a thousand wrong answers" in PAGE
    table = PAGE[PAGE.index("What to ask at the desk") :]
    table = table[: table.index("Prepare the room")]
    rows = re.findall(r"\* - ``(\w+)``\n +- (.*?)\n +- (.*)", table)
    assert len(rows) == table.count("* - ") == 9
    for exercise, verdict, _ in rows:
        kind, _, words = verdict.partition(": ")
        promised = [a.words for a in known[exercise] if a.kind == kind]
        key = words.removesuffix(" the all_reduce")
        said = [word for words in promised for word in words]
        assert any(key in word for word in said), f"{exercise}: {verdict}"


def test_the_page_for_the_room_reloads_as_often_as_is_said():
    assert RELOAD_EVERY == 5 and "reloads itself every five seconds" in PAGE


# -- the files for GitHub Classroom and GitLab -----------------------------------------
def classroom_steps():
    read = yaml.safe_load((EXAMPLES / "classroom.yml").read_text())
    return read["jobs"]["autograding"]["steps"]


def graders():
    steps = classroom_steps()
    return [step for step in steps if "command-grader" in step.get("uses", "")]


@pytest.mark.parametrize(
    "schema, file",
    [("github-workflows", "classroom.yml"), ("gitlab-ci", "gitlab-ci.yml")],
)
def test_an_example_file_has_the_form_that_its_service_reads(schema, file):
    program = Path(sys.executable).parent / "check-jsonschema"
    if not program.exists():
        pytest.skip("the schemas come with check-jsonschema: make env brings it")
    words = [program, "--builtin-schema", f"vendor.{schema}", EXAMPLES / file]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_classroom_gives_the_points_of_the_catalog_and_reports_every_step():
    for step in graders():
        told = step["with"]
        assert set(told) == {"test-name", "command", "timeout", "max-score"}
        assert told["max-score"] == EXERCISES[told["test-name"]].points
        assert shlex.split(told["command"])[-1] == told["test-name"] == step["name"]
    report = classroom_steps()[-1]
    ids = [step["id"] for step in graders()]
    assert report["with"]["runners"].split(",") == ids
    results = {f"{i.upper()}_RESULTS": f"steps.{i}.outputs.result" for i in ids}
    assert report["env"] == {name: f"${{{{ {at} }}}}" for name, at in results.items()}


@pytest.fixture
def copy(tmp_path) -> Path:
    """A fresh copy of the workshop after ``make env``; 03_weighted_mean is solved."""
    root = tmp_path / "ada"
    for folder in ("exercises", "solutions", "tests/exercises", "docs/lessons"):
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "pyproject.toml", root)
    name = "03_weighted_mean.py"
    shutil.copy(root / "solutions" / name, root / "exercises" / name)
    (root / ".venv").symlink_to(Path(sys.executable).parent.parent)
    return root


def run(command: str, root: Path) -> subprocess.CompletedProcess:
    words = ["bash", "-euc", command]
    return subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=300)


@pytest.mark.nightly
def test_the_commands_of_both_files_grade_a_copy(copy):
    found = {s["name"]: run(s["with"]["command"], copy).returncode for s in graders()}
    assert found == {"03_weighted_mean": 0, "03_deadlock": 2}
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())["grade"]
    assert job["script"][0] == "make env" and len(job["script"]) == 2
    done = run(job["script"][1], copy)
    assert done.returncode == 0, done.stderr
    points = (copy / job["artifacts"]["paths"][0]).read_text()
    assert points.splitlines()[1].startswith("ada,2,5,1,0,0,1,0")
    verdicts = (copy / job["artifacts"]["reports"]["junit"]).read_text()
    assert 'tests="2" failures="0" errors="0" skipped="1"' in verdicts


def test_no_hole_of_a_solution_is_longer_than_the_page_says():
    said = re.search(r"No hole takes more than (\d+) lines", PAGE)
    solutions = [exercise.solution.read_text() for exercise in EXERCISES.values()]
    lengths = [len(hole.answer) for text in solutions for hole in holes(parse(text))]
    assert said and int(said[1]) == max(lengths)
