"""``workshop watch``, through a pseudo terminal and without one."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

import pytest

from tests.grader.small_house import (
    PATIENCE,
    Terminal,
    command,
    graded,
    play,
    start,
    workshop,
    write,
)
from tests.launched import wait_until

KEYS = "h hint, n next, c check again, l list, q quit"


def watching(house, *words, real=False):
    return Terminal(house, command("watch", *words, real=real))


def test_a_save_is_checked_and_a_right_one_leads_to_the_next(house):
    with watching(house) as terminal:
        terminal.wait_for("exercises/01_one.py")
        terminal.wait_for(KEYS)
        play(house, "01_one", "wrong")
        terminal.wait_for("01_one: wrong")
        terminal.wait_for("you ordered wrong")
        terminal.wait_for("0 of 3 right")
        play(house, "01_one", "right")
        terminal.wait_for("01_one: right")
        terminal.wait_for("exercises/02_two.py")
        terminal.wait_for("1 of 3 right")
        terminal.send("q")
        assert terminal.ended() == 0
    assert "1 of 3 right" in workshop(house, "list").stdout


def test_the_last_right_one_ends_the_watch(house):
    for name in ("01_one", "02_two"):
        play(house, name, "right")
    assert workshop(house, "check", "--all").returncode == 0
    with watching(house) as terminal:
        terminal.wait_for(KEYS)
        play(house, "03_three", "right")
        terminal.wait_for("Every exercise is right.")
        assert terminal.ended() == 0
        assert terminal.mode_is_as_before()


def test_fast_saves_end_on_the_newest_and_never_pile_up(house):
    with watching(house, "one") as terminal:
        terminal.wait_for(KEYS)
        for number in range(30):
            order = "wrong" if number % 2 else "sleep 0.4"
            play(house, "01_one", f"{order} {number}".replace("0.4 ", "0.4"))
            time.sleep(0.04)
        play(house, "01_one", "wrong the newest")
        terminal.wait_for("you ordered wrong the newest")
        terminal.send("q")
        assert terminal.ended() == 0
    log = graded(house)
    assert log[-1] == "end wrong the newest"
    assert log.count("begin wrong the newest") == 1
    running = 0
    for line in log:
        running += 1 if line.startswith("begin") else -1
        assert running in (0, 1), log


def test_a_long_check_is_dropped_when_the_file_changes(house):
    play(house, "01_one", "sleep 1000")
    with watching(house) as terminal:
        wait_until(lambda: "begin sleep 1000" in graded(house))
        play(house, "01_one", "wrong, but soon")
        terminal.wait_for("you ordered wrong, but soon")
        terminal.send("q")
        assert terminal.ended() == 0
    assert "cancelled sleep 1000" in graded(house)


def test_a_check_that_runs_does_not_hold_up_leaving(house):
    play(house, "01_one", "sleep 1000")
    with watching(house) as terminal:
        wait_until(lambda: "begin sleep 1000" in graded(house))
        terminal.send("q")
        assert terminal.ended() == 0
        assert terminal.mode_is_as_before()


def test_a_save_without_a_change_is_not_checked_again(house):
    play(house, "01_one", "wrong once")
    with watching(house) as terminal:
        terminal.wait_for("you ordered wrong once")
        for _ in range(3):
            play(house, "01_one", "wrong once")
            time.sleep(0.3)
        play(house, "01_one", "wrong twice")
        terminal.wait_for("you ordered wrong twice")
        terminal.send("q")
        terminal.ended()
    assert [line for line in graded(house) if line.startswith("begin")] == [
        "begin wrong once",
        "begin wrong twice",
    ]


def test_a_deleted_file_is_said_and_taken_up_again(house):
    path = play(house, "01_one", "wrong")
    with watching(house) as terminal:
        terminal.wait_for("you ordered wrong")
        path.unlink()
        terminal.wait_for("01_one.py is gone")
        terminal.wait_for("workshop reset 01_one")
        path.write_text("# play: wrong again\n")  # in place, not by rename
        terminal.wait_for("you ordered wrong again")
        terminal.send("q")
        assert terminal.ended() == 0


def test_a_folder_or_a_pipe_in_its_place_is_a_sentence(house):
    path = play(house, "01_one", "wrong")
    with watching(house) as terminal:
        terminal.wait_for("you ordered wrong")
        path.unlink()
        os.mkfifo(path)
        terminal.wait_for("is not a plain file")
        path.unlink()
        play(house, "01_one", "wrong again")
        terminal.wait_for("you ordered wrong again")
        terminal.send("q")
        assert terminal.ended() == 0


def test_saving_another_exercise_turns_to_it(house):
    with watching(house) as terminal:
        terminal.wait_for(KEYS)
        play(house, "03_three", "wrong in three")
        terminal.wait_for("03_three: wrong")
        terminal.send("q")
        assert terminal.ended() == 0


@pytest.mark.parametrize("order", ["break", "fail"])
def test_a_failing_grader_is_a_sentence_and_the_watch_goes_on(house, order):
    told = {"break": "torch cannot be imported", "fail": "a bug in the grader"}
    play(house, "01_one", order)
    with watching(house) as terminal:
        terminal.wait_for(told[order])
        play(house, "01_one", "wrong then")
        terminal.wait_for("you ordered wrong then")
        terminal.send("q")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.output


def test_keys_hint_list_next_and_check_again(house):
    play(house, "01_one", "wrong")
    with watching(house) as terminal:
        terminal.wait_for("you ordered wrong")
        terminal.wait_for(KEYS)
        terminal.send("h")
        terminal.wait_for("Hint 1 of 3: Think.")
        terminal.send("h")
        terminal.wait_for("Hint 2 of 3: Think [bold]harder[/bold].")
        terminal.send("l")
        terminal.wait_for("Add number 3")
        terminal.wait_for(KEYS)
        terminal.send("c")
        terminal.wait_for("you ordered wrong")
        terminal.wait_for(KEYS)
        terminal.send("\x1bOQ\x1b[H")  # F2 and Home are neither q nor h
        terminal.send("n")
        terminal.wait_for("exercises/02_two.py")
        terminal.send("Q")
        assert terminal.ended() == 0
        assert "Hint 3" not in terminal.output
    assert graded(house).count("begin wrong") == 2


def test_ctrl_c_ends_with_130_and_the_terminal_as_it_was(house):
    play(house, "01_one", "sleep 1000")
    with watching(house) as terminal:
        wait_until(lambda: "begin sleep 1000" in graded(house))
        assert not terminal.mode_is_as_before()  # single keys, no echo
        terminal.send("\x03")
        assert terminal.ended() == 130
        assert terminal.mode_is_as_before()
        assert "Traceback" not in terminal.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_the_terminal_as_it_was(house, number):
    with watching(house) as terminal:
        terminal.wait_for(KEYS)
        terminal.interrupt(number)
        assert terminal.ended() == 128 + number
        assert terminal.mode_is_as_before()
        assert "Traceback" not in terminal.output


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(house):
    # dash, where there is one: bash repairs the terminal by itself.
    shell = shutil.which("dash") or "sh"
    with Terminal(house, [shell, "-i"]) as terminal:
        words = " ".join(f"'{word}'" for word in command("watch"))
        (house / "go.sh").write_text(f"exec {words}\n")
        terminal.send("sh go.sh\n")
        terminal.wait_for(KEYS)
        terminal.send("\x1a")
        terminal.wait_for("Stopped")
        terminal.send("stty -a > mode.new && mv mode.new mode\n")
        wait_until((house / "mode").exists)
        assert " icanon" in (house / "mode").read_text()
        terminal.send("fg\n")
        terminal.wait_for("go.sh")
        play(house, "01_one", "wrong after fg")
        terminal.wait_for("you ordered wrong after fg")
        terminal.wait_for(KEYS)
        terminal.send("q")
        terminal.wait_for("0 of 3 right")
        terminal.send("echo the shell is $((20 + 3))\n")
        terminal.wait_for("the shell is 23")
        terminal.send("exit\n")
        assert terminal.ended() == 0


def test_without_a_terminal_there_are_no_keys(house):
    play(house, "01_one", "wrong")
    process = start(house, "watch")
    try:
        kept = house / ".workshop" / "progress.json"
        wait_until(lambda: kept.exists() and '"wrong"' in kept.read_text())
        play(house, "01_one", "right")
        wait_until(lambda: '"right"' in kept.read_text())
        process.send_signal(signal.SIGINT)
        output = "".join(process.communicate(timeout=PATIENCE))
    finally:
        process.kill()
    assert process.returncode == 130
    assert "01_one: wrong" in output
    assert "\x1b" not in output and KEYS not in output and "Traceback" not in output


def test_without_file_events_it_looks_by_itself(house, tmp_path):
    (tmp_path / "watchfiles.py").write_text("raise OSError('no watches left')\n")
    (house / "go.py").write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        f"sys.argv[1:] = {command('watch')[3:]!r}\n"
        f"exec({command('watch')[2]!r}.replace('insert(0', 'insert(1'))\n"
    )
    with Terminal(house, [sys.executable, "go.py"]) as terminal:
        terminal.wait_for(KEYS)
        play(house, "01_one", "wrong here")
        terminal.wait_for("you ordered wrong here")
        terminal.send("q")
        assert terminal.ended() == 0


@pytest.mark.nightly
def test_real_checks_syntax_error_wrong_right(house):
    path = house / "exercises" / "01_one.py"
    untouched = path.read_text()
    hole = 'raise NotImplementedError("TODO 1 of 1")'
    with watching(house, real=True) as terminal:
        terminal.wait_for(KEYS)
        write(path, untouched.replace(hole, "return a +* 1"))
        terminal.wait_for("does not load: SyntaxError")
        write(path, untouched.replace(hole, "return a + 5"))
        terminal.wait_for("wrong value: the sum")
        write(path, untouched)
        terminal.wait_for("01_one: not started")
        write(path, untouched.replace(hole, "while True: a"))
        terminal.wait_for("checking ...")  # ended by the next save, not by its limit
        write(path, untouched.replace(hole, "return a + 1"))
        terminal.wait_for("01_one: right")
        terminal.wait_for("exercises/02_two.py")
        terminal.send("q")
        assert terminal.ended() == 0
