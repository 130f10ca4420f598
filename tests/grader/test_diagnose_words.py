"""workshop diagnose --words: one line, or a few words, without a log."""

from __future__ import annotations

import pytest

from tests.grader.small_house import workshop
from tests.grader.test_diagnose import ROOT
from tests.grader.test_diagnose_mistakes import MISTAKES, WITH_LINES, printed
from workshop.diagnose.words import cards, look_up, told_lines, words


def first(text: str) -> str:
    found = look_up(text, ROOT).cards
    return found[0].name if found else ""


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.row)
def test_every_row_of_a_lesson_is_found_by_its_symptom(mistake):
    text = cards(ROOT)
    (place,) = [one for one in text if one.id == mistake.row]
    symptom = place.title.replace("`", "")
    found = look_up(symptom, ROOT)
    wanted = {place.id, f"failure-{mistake.known}".replace("_", "-")}
    by_message = found.says.endswith("that message.")
    consequence = found.says.startswith("That only says")
    assert by_message or consequence or wanted & {one.id for one in found.cards}


@pytest.mark.parametrize("mistake", WITH_LINES, ids=lambda one: one.row)
def test_error_line_of_a_row_is_found_as_a_message(mistake):
    for line in printed(mistake):
        found = look_up(line, ROOT)
        assert found.says.endswith(("that message.", "failed first.", "own error.")), (
            line
        )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The port is taken", "port_in_use"),
        ("one rank has more batches", "unequal_batches"),
        ("[rank3]: RuntimeError: Default process group has not been initialized", ""),
    ],
)
def test_words_or_a_line_find_the_failure_first(text, name):
    assert first(text) == (name or "no_process_group")


def test_marks_times_addresses_and_paths_are_no_words():
    line = "2026-11-26 10:00:00,123 [rank3]: /a/b/c.cpp:12 at 0x7fdeadbeef: DataLoader"
    assert words(line) == ["data", "loader"]


def test_a_programs_line_of_common_words_alone_finds_nothing():
    """Silent rather than wrong."""
    answer = look_up(
        "RuntimeError: the widget of this model failed to frobnicate", ROOT
    )
    assert answer.cards == () and "workshop diagnose LOG" in answer.says


def test_told_lines_name_the_cure_and_the_page():
    told, found = told_lines("every line is printed N times", ROOT)
    assert found
    (read,) = [line for line in told if "#mistake-05-every-line" in line]
    page = read.partition("Read: ")[2].partition(".html#")[0]
    assert (ROOT / f"{page}.rst").is_file()


def test_command_looks_words_up(tmp_path):
    done = workshop(ROOT, "diagnose", "--words", "one rank has more batches")
    assert done.returncode == 0 and "unequal-batches" in done.stdout
    done = workshop(ROOT, "diagnose", "--words", "qqq zzz")
    assert done.returncode == 1 and "Try other words" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], "--words"),
        (["--words", " "], "--words is empty"),
        (["--words", "hangs", "a.log"], "leave out a.log"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, names):
    done = workshop(ROOT, "diagnose", *arguments)
    assert done.returncode == 2 and names in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
