"""``workshop hint``, ``reset`` and ``diff``, and the progress that is kept."""

from __future__ import annotations

import json
import threading
import time

import pytest

from tests.grader.small_house import NAMES, play, sentence, workshop
from workshop.catalog import load_catalog
from workshop.learner import progress


# -- hint, reset, diff ----------------------------------------------------------------
def test_each_hint_shows_one_more_and_is_remembered(house):
    outputs = [workshop(house, "hint", "one").stdout for _ in range(4)]
    assert ["Think.\n" in o for o in outputs] == [True] * 4
    assert ["[bold]harder[/bold]" in o for o in outputs] == [False, True, True, True]
    assert ["It is a + 1" in o for o in outputs] == [False, False, True, True]
    assert "no more hints; the page: docs/lessons/01_lesson.rst" in outputs[3]
    again = workshop(house, "hint", "two")
    assert "Hint 1 of 3" in again.stdout and "Hint 2" not in again.stdout
    again = workshop(house, "hint", "two", "--again")
    assert "Hint 1 of 3" in again.stdout and "Hint 2" not in again.stdout


def test_reset_keeps_numbered_copies_and_begins_again(house):
    path = house / "exercises" / "01_one.py"
    untouched = path.read_text()
    for number in (1, 2):
        mine = play(house, "01_one", f"wrong {number}").read_text()
        workshop(house, "hint", "one")
        result = workshop(house, "reset", "one")
        backup = f".workshop/backup/01_one.{number}.py"
        assert result.returncode == 0 and backup in result.stdout
        assert (house / backup).read_text() == mine
        assert path.read_text() == untouched
        assert "seen a hint" in sentence(workshop(house, "hint", "one", "--again"))
    assert "nothing to reset" in workshop(house, "reset", "one").stdout
    path.unlink()
    assert workshop(house, "reset", "one").returncode == 0
    assert path.read_text() == untouched
    assert len(list((house / ".workshop" / "backup").iterdir())) == 2


def test_reset_changes_nothing_if_no_copy_can_be_kept(house):
    path = play(house, "01_one", "wrong")
    mine = path.read_text()
    (house / ".workshop").mkdir()
    (house / ".workshop" / "backup").write_text("in the way")
    told = sentence(workshop(house, "reset", "one"))
    assert "nothing was changed" in told
    assert path.read_text() == mine


def test_diff_waits_until_yours_is_right(house):
    path = play(house, "01_one", "right")
    assert "not checked since" in sentence(workshop(house, "diff", "one"))
    workshop(house, "check", "one")
    result = workshop(house, "diff", "one")
    assert result.returncode == 0
    assert "-    return a\n" in result.stdout and "+    return a + 1" in result.stdout
    assert "[start answer" not in result.stdout
    path.write_text("# play: wrong\n")
    assert sentence(workshop(house, "diff", "one"))
    assert "+    return a + 1" in workshop(house, "diff", "one", "--anyway").stdout
    path.unlink()
    assert "workshop reset" in sentence(workshop(house, "diff", "one"))


# -- the progress file -----------------------------------------------------------------
@pytest.mark.parametrize(
    "damage", [b"{half", b"\xff\xfe", b"[]", b'{"exercises": 3, "hints": {}}', b""]
)
def test_a_damaged_progress_is_set_aside_with_one_sentence(house, damage):
    folder = house / ".workshop"
    folder.mkdir()
    (folder / "progress.json").write_bytes(damage)
    result = workshop(house, "list")
    assert result.returncode == 0
    assert len(result.stderr.splitlines()) == 1
    assert "progress.damaged-1" in result.stderr
    assert (folder / "progress.damaged-1").read_bytes() == damage
    assert workshop(house, "list").stderr == ""


def test_a_verdict_is_shown_even_if_it_cannot_be_kept(house):
    play(house, "01_one", "wrong")
    (house / ".workshop").write_text("a file in the way")
    result = workshop(house, "check", "one")
    assert result.returncode == 1
    assert "01_one: wrong" in result.stdout
    assert len(result.stderr.splitlines()) == 1
    assert "cannot keep your progress" in result.stderr


def test_two_terminals_do_not_lose_each_other_s_progress(house, monkeypatch):
    def write_slowly(path, text):
        time.sleep(0.2)  # without a lock the others have read the old text by now
        path.write_text(text)

    monkeypatch.setattr(progress, "write_atomically", write_slowly)
    terminals = [
        threading.Thread(
            target=progress.Progress(house).record,
            args=(exercise, "digest", "right", "right"),
        )
        for exercise in load_catalog(house)
    ]
    for terminal in terminals:
        terminal.start()
    for terminal in terminals:
        terminal.join()
    data = json.loads((house / ".workshop" / "progress.json").read_text())
    assert sorted(data["exercises"]) == sorted(NAMES)
