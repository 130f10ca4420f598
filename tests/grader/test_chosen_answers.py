"""Which known answers `make test` runs, and what it remembers of a run."""

import subprocess
from xml.etree import ElementTree

import pytest

from tests.grader import chosen_answers
from tests.grader.chosen_answers import (
    ENOUGH,
    JOB_SCRIPTS,
    ROOT,
    answers_of,
    choose,
    digest,
    few,
    files_of,
    of_grader,
    remember_run,
    remembered,
)
from workshop.author.answers import Answer
from workshop.catalog import load_catalog

CATALOG = load_catalog(ROOT)
ONE = next(exercise for exercise in CATALOG if exercise.name == "03_weighted_mean")
ALL_OF_ONE = answers_of(ONE)
IDS_OF_ONE = {answer.id for answer in ALL_OF_ONE}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(chosen_answers, "CACHE", tmp_path / "cache" / "known.json")


@pytest.fixture
def change(monkeypatch):
    """``change("file")``: only this differs from what is published."""
    return lambda *files: monkeypatch.setattr(
        chosen_answers, "changed_files", lambda: set(files)
    )


def test_mistakes_of_as_many_kinds_stand_for_an_unchanged_exercise(change):
    change()
    chosen = [answer for answer in ALL_OF_ONE if answer.id in choose(CATALOG)]
    assert chosen == sorted(few(ALL_OF_ONE), key=ALL_OF_ONE.index)
    assert len(chosen) == ENOUGH
    there = {answer.kind for answer in ALL_OF_ONE if not answer.is_right}
    shown = {answer.kind for answer in chosen}
    assert "right" not in shown
    assert len(shown) == min(ENOUGH, len(there))


def test_a_right_answer_of_each_job_script_is_judged_without_a_scheduler(change):
    change()
    chosen = choose(CATALOG)
    scripts = [one for one in CATALOG if one.suffix in JOB_SCRIPTS]
    assert scripts
    for exercise in scripts:
        right = [answer for answer in answers_of(exercise) if answer.is_right]
        assert len(chosen & {answer.id for answer in right}) == 1


def test_a_kind_that_is_missing_leaves_room_for_the_next_answers():
    hangs = [Answer("01_x", str(n), "hang", ("waits",), "", {}) for n in range(5)]
    assert few(hangs) == hangs[:ENOUGH]


@pytest.mark.parametrize(
    "file", [*sorted(files_of(ONE))[:2], "workshop/grader/expect.py"]
)
def test_all_answers_run_if_a_file_they_depend_on_has_changed(change, file):
    change(file)
    assert choose(CATALOG) >= IDS_OF_ONE


def test_a_change_elsewhere_runs_no_more_answers(change):
    change("docs/glossary.rst", "workshop/cli.py")
    assert len(choose(CATALOG)) <= (ENOUGH + 1) * len(CATALOG)
    assert not of_grader("workshop/cli.py")


def test_what_was_green_with_the_same_contents_is_not_run_again(change):
    change(f"exercises/{ONE.file}")
    remember_run([case("test_x", ALL_OF_ONE[0])])
    assert not choose(CATALOG) >= IDS_OF_ONE
    chosen_answers.remember({ONE.name: "another digest"}, {})
    assert choose(CATALOG) >= IDS_OF_ONE


def case(test, answer, outcome=None, check=""):
    name = f"{test}[{answer.id}]"
    element = ElementTree.Element("testcase", name=name)
    if outcome:
        ElementTree.SubElement(element, outcome)
    if check:
        told = {"name": "caught by", "value": check}
        ElementTree.SubElement(element, "property", told)
    return element


@pytest.mark.parametrize("outcome", ["failure", "error", "skipped"])
def test_an_exercise_with_an_answer_that_did_not_pass_is_not_green(outcome):
    first, second = ALL_OF_ONE[:2]
    remember_run([case("test_a", first, check="test_sum"), case("a", second, outcome)])
    assert remembered("green") == {}
    assert remembered("caught_by") == {first.id: "test_sum"}
    remember_run([case("test_a", first), case("test_a", second)])
    assert remembered("green") == {ONE.name: digest(ONE)}


def test_a_damaged_cache_is_an_empty_one():
    chosen_answers.CACHE.parent.mkdir()
    for text in ("", "{", "[]", '{"green": 3}'):
        chosen_answers.CACHE.write_text(text)
        assert remembered("green") == {}


def test_differences_from_what_is_published_are_seen(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(chosen_answers, "ROOT", tmp_path)
    monkeypatch.delenv("WORKSHOP_PUBLISHED", raising=False)
    assert chosen_answers.changed_files() == set()  # no clone
    git("init", "-q", "-b", "main")
    git("config", "user.email", "a@example.org")
    git("config", "user.name", "a")
    for name in ("kept.py", "committed.py", "edited.py"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "one")
    assert chosen_answers.changed_files() == set()  # nothing is published
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    (tmp_path / "committed.py").write_text("2\n")
    git("commit", "-qam", "two")
    (tmp_path / "edited.py").write_text("2\n")
    (tmp_path / "new.py").write_text("1\n")
    assert chosen_answers.changed_files() == {"committed.py", "edited.py", "new.py"}
    monkeypatch.setenv("WORKSHOP_PUBLISHED", "HEAD")
    assert chosen_answers.changed_files() == {"edited.py", "new.py"}
