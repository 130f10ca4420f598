"""The ``workshop`` command, as a learner types it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.grader.small_house import (
    HOUSE,
    NAMES,
    Terminal,
    command,
    graded,
    play,
    sentence,
    states,
    workshop,
)
from workshop.catalog import load_catalog


# -- list, next ---------------------------------------------------------------------
def test_list_shows_every_state_and_the_progress(house):
    play(house, "01_one", "right")
    play(house, "02_two", "wrong")
    workshop(house, "check", "one", "two")
    (house / "exercises" / "03_three.py").unlink()
    result = workshop(house, "list")
    assert result.returncode == 0
    found = states(house)
    assert [found[name] for name in NAMES] == ["right", "wrong", "missing"]
    assert "1 of 3 right" in result.stdout
    assert "exercises/02_two.py" in result.stdout
    assert "workshop reset" in result.stdout
    assert "\x1b" not in result.stdout


def test_list_has_a_line_for_each_exercise_at_80_columns():
    """No title is broken, and nothing is cut off."""
    result = workshop(HOUSE, "list", COLUMNS="80")
    catalog = load_catalog(HOUSE)
    rows = [line.split("|") for line in result.stdout.splitlines() if "|" in line]
    shown = [[cell.strip() for cell in row[:2]] for row in rows[1:]]
    assert shown == [[exercise.name, exercise.title] for exercise in catalog]
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", ["check", "list", "reset"])
def test_folder_in_place_of_an_exercise_is_one_sentence(house, command):
    path = house / "exercises" / "01_one.py"
    path.unlink()
    path.mkdir()
    names = [] if command == "list" else ["one"]
    result = workshop(house, command, *names)
    assert "Traceback" not in result.stderr
    if names:
        assert result.returncode == 2
        assert f"{path.name} is not a plain file" in result.stderr
    else:
        assert states(house)["01_one"] == "changed"


def test_a_verdict_belongs_to_a_content_not_to_a_name(house):
    path = play(house, "01_one", "right")
    workshop(house, "check", "one")
    assert states(house)["01_one"] == "right"
    text = path.read_text()
    path.write_text(text + "# more\n")
    assert states(house)["01_one"] == "changed"
    path.write_text(text)
    assert states(house)["01_one"] == "right"
    checks = house / "tests" / "exercises" / "01_one" / "checks.py"
    checks.write_text(checks.read_text() + "# stricter\n")
    assert states(house)["01_one"] == "changed"


def test_comments_alone_do_not_start_an_exercise(house):
    path = house / "exercises" / "02_two.py"
    path.write_text(path.read_text().replace("# TODO", "# a thought of mine\n    #"))
    assert states(house)["02_two"] == "not started"


def test_next_names_path_page_and_minutes_until_all_is_right(house):
    result = workshop(house, "next")
    for words in ("exercises/01_one.py", "docs/lessons/01_lesson.rst", "5 minutes"):
        assert words in result.stdout
    for name in NAMES:
        play(house, name, "right")
    assert workshop(house, "check", "--all").returncode == 0
    assert "Every exercise is right." in workshop(house, "next").stdout
    assert workshop(house, "check").returncode == 0
    assert len([line for line in graded(house) if line.startswith("begin")]) == 3


# -- check --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("order", "status"),
    [("right", 0), ("partly", 4), ("wrong", 1), ("environment", 3), ("break", 3)],
)
def test_the_exit_status_of_check(house, order, status):
    play(house, "01_one", order)
    result = workshop(house, "check", "one")
    assert result.returncode == status
    assert "Traceback" not in result.stdout + result.stderr


def test_what_could_not_be_tried_here_is_told_apart_from_right(house):
    """It has a state of its own, says what is missing, and is nothing left to do."""
    play(house, "01_one", "partly")
    told = workshop(house, "check", "one").stdout
    assert "01_one: not fully checked" in told
    assert "the real nodes" in told and "this machine has no Slurm" in told
    assert ": right" not in told
    listed = workshop(house, "list").stdout
    assert states(house)["01_one"] == "not fully checked"
    assert "0 of 3 right, 1 not fully checked" in listed
    assert "exercises/02_two.py" in workshop(house, "next").stdout
    play(house, "02_two", "right")
    play(house, "03_three", "right")
    assert workshop(house, "check", "--all").returncode == 4
    last = workshop(house, "next").stdout
    assert "Every exercise is right." not in last
    assert "not fully checked here: 01_one" in last
    assert workshop(house, "diff", "one").returncode == 0


def test_an_untouched_exercise_ends_with_2_and_says_how_to_start(house):
    result = workshop(house, "check", "one")
    assert result.returncode == 2
    assert "not started" in result.stdout
    assert "Open exercises/01_one.py" in result.stdout


@pytest.mark.parametrize(
    ("orders", "status"),
    [
        (("right", "right", "right"), 0),
        (("right", "wrong", "right"), 1),
        (("right", "wrong", "environment"), 3),
        (("right", None, "right"), 2),
        (("wrong", None, "right"), 1),
        (("right", "partly", "right"), 4),
        (("partly", "wrong", "right"), 1),
        (("partly", None, "right"), 2),
    ],
)
def test_several_are_0_only_if_all_are_right(house, orders, status):
    for name, order in zip(NAMES, orders, strict=True):
        if order:
            play(house, name, order)
    result = workshop(house, "check", *NAMES)
    assert result.returncode == status
    assert f"{orders.count('right')} of 3 right" in result.stdout


def test_without_a_name_the_next_one_is_checked_and_named(house):
    play(house, "01_one", "right")
    play(house, "02_two", "wrong")
    workshop(house, "check")
    result = workshop(house, "check")
    assert "The next one that is not right: 02_two" in result.stdout
    assert result.returncode == 1


def test_a_verdict_is_shown_as_text_in_few_lines(house):
    play(house, "01_one", "wrong [red]name[/red]")
    result = workshop(house, "check", "one")
    assert "you ordered wrong [red]name[/red]" in result.stdout
    assert "?[31mescaped? [bold]marked[/bold]" in result.stdout
    assert "\x1b" not in result.stdout and "\x07" not in result.stdout
    assert len(result.stdout.splitlines()) <= 15
    assert "workshop hint 01_one" in result.stdout
    assert "all of it" not in result.stdout
    assert "all of it" in workshop(house, "check", "one", "-v").stdout


def test_on_a_terminal_of_80_columns_no_line_is_longer(house):
    play(house, "01_one", "wrong")
    for words in (["check", "one"], ["list"], ["hint", "one"]):
        with Terminal(house, command(*words)) as terminal:
            terminal.ended()
            assert "01_one" in terminal.output
            assert max(map(len, terminal.output.splitlines())) <= 80
            assert "\x1b[" in terminal.raw  # colors here, and only here


def test_a_terminal_that_knows_only_ascii_gets_escapes(house):
    play(house, "01_one", "wrong \N{GREEK SMALL LETTER ALPHA}")
    result = workshop(house, "check", "one", PYTHONIOENCODING="ascii")
    assert result.returncode == 1
    assert "you ordered wrong \\u03b1" in result.stdout


def test_solutions_are_checked_without_touching_the_progress(house):
    for name, order in zip(NAMES, ("right", "wrong", "right"), strict=True):
        path = house / "solutions" / f"{name}.py"
        path.write_text(f"# play: {order}\n{path.read_text()}")
    result = workshop(house, "check", "--solutions")
    assert result.returncode == 1
    assert "02_two: wrong" in result.stdout and "2 of 3 right" in result.stdout
    assert not (house / ".workshop").exists()


def test_another_seed_is_not_kept_as_progress(house):
    play(house, "01_one", "right")
    assert workshop(house, "check", "one", "--seed", "7").returncode == 0
    assert states(house)["01_one"] == "changed"


def test_a_broken_set_up_is_not_kept_as_progress(house):
    play(house, "01_one", "environment")
    assert workshop(house, "check", "one").returncode == 3
    assert states(house)["01_one"] == "changed"


def test_a_missing_file_names_the_cure(house):
    (house / "exercises" / "01_one.py").unlink()
    result = workshop(house, "check", "one", real=True)
    assert result.returncode == 1
    assert "workshop reset 01_one" in result.stdout


def test_real_checks_from_skeleton_to_right(house):
    assert workshop(house, "check", "one", real=True).returncode == 2
    path = house / "exercises" / "01_one.py"
    text = path.read_text()
    hole = 'raise NotImplementedError("TODO 1 of 1")'
    path.write_text(text.replace(hole, "return a + 5"))
    result = workshop(house, "check", "one", real=True)
    assert result.returncode == 1 and "wrong value: the sum" in result.stdout
    path.write_text(text.replace(hole, "return a + 1"))
    assert workshop(house, "check", "one", real=True).returncode == 0
    assert workshop(house, "check", "--solutions", real=True).returncode == 0
    result = workshop(house, "diff", "one")
    assert result.returncode == 0 and "line for line" in result.stdout


# -- names --------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["check", "hint", "reset", "diff", "watch"])
def test_a_mistyped_name_is_one_sentence_with_the_nearest(house, name):
    told = sentence(workshop(house, name, "03_tree"))
    assert told == "workshop: '03_tree' is not an exercise: did you mean 03_three?"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["diagnose", "--words"], "workshop diagnose"),
        (["cluster", "up", "--nodes"], "workshop cluster up"),
        (["check", "--verbose=3"], "workshop check"),
        (["check", "--nosuch"], "workshop check"),
        (["--nosuch"], "workshop"),
    ],
)
def test_a_wrong_option_leads_to_the_help_of_its_command(house, words, command):
    said = sentence(workshop(house, *words))
    assert said.endswith(f": `{command} --help` shows what it takes")


def test_a_name_that_is_like_no_other_leads_to_the_list(house):
    told = sentence(workshop(house, "check", "zwei"))
    assert "'zwei' is not an exercise: `workshop list` shows them all" in told


def test_an_ambiguous_name_is_one_sentence(house):
    told = sentence(workshop(house, "check", "t"))
    assert "02_two, 03_three" in told and "01_one" not in told


def test_a_path_means_the_file_that_is_edited_and_no_other(house):
    play(house, "02_two", "right")
    assert workshop(house, "check", "exercises/02_two.py").returncode == 0
    told = sentence(workshop(house, "check", "solutions/02_two.py"))
    assert "solutions/02_two.py is not exercises/02_two.py" in told


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["frobnicate"], "frobnicate"),
        (["check", "--frobnicate"], "--frobnicate"),
        (["check", "--seed", "many"], "many"),
        (["check", "one", "--all"], "--all"),
        (["check", "--all"], "you haven't started an exercise"),
        (["reset"], "NAME"),
        (["grade"], "DIR"),
        (["hint", "one", "--again"], "--again"),
    ],
)
def test_bad_usage_is_one_sentence(house, words, named):
    assert named in sentence(workshop(house, *words))


def test_outside_a_workshop_is_one_sentence(tmp_path):
    code = (
        "import sys; import workshop.catalog as c; c.__file__ = '/nowhere/at/all.py';"
        "from workshop.cli import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "list"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        capture_output=True,
        text=True,
    )
    assert "inside a clone of the workshop" in sentence(result, status=3)


@pytest.mark.cold("what is imported is the subject")
def test_a_package_that_is_missing_is_one_sentence(house, tmp_path):
    (tmp_path / "rich.py").write_text("raise ImportError(\"No module named 'rich'\")")
    result = workshop(house, "list", PYTHONPATH=str(tmp_path))
    told = sentence(result, status=3)
    assert "the package rich is missing" in told
    assert "make tour" in told and "requirements-light.txt" in told


def test_the_command_alone_shows_its_help(house):
    result = workshop(house)
    assert result.returncode == 0
    words = ("list", "check", "watch", "hint", "next", "reset", "diff", "grade")
    places = [result.stdout.find(f"\n  {word} ") for word in (*words, "doctor")]
    assert places == sorted(places) and -1 not in places


# -- doctor, speed --------------------------------------------------------------------
def test_doctor_shows_each_part_and_ends_with_3_if_a_needed_one_is_broken(house):
    code = (
        f"import sys; sys.path.insert(0, {str(HOUSE)!r})\n"
        "import workshop.doctor.machine as d\n"
        "d.checks = lambda: [\n"
        "  d.Check('torch', {ok}, 'seen', 'do this', required=True),\n"
        "  d.Check('Slurm', None, 'no sinfo', 'install it')]\n"
        "from workshop.cli import main; main()"
    )
    for ok, status in ((True, 0), (False, 3)):
        result = subprocess.run(
            [sys.executable, "-c", code.format(ok=ok), "doctor"],
            cwd=house,
            capture_output=True,
            text=True,
        )
        assert result.returncode == status
        assert "absent" in result.stdout and "install it" in result.stdout
        assert ("broken" in result.stdout) is (not ok)
        assert ("torch does not work: do this" in result.stderr) is (not ok)


@pytest.mark.cold("what is imported is the subject")
def test_this_process_never_imports_torch_nor_what_it_does_not_need(house):
    play(house, "01_one", "right")
    code = (
        f"import sys; sys.path.insert(0, {str(HOUSE)!r})\n"
        "from workshop.cli import cli\n"
        "import workshop.grader.engine.engine\n"
        "cli.main(sys.argv[1:], standalone_mode=False)\n"
        "print([m for m in ('torch', 'numpy', 'watchfiles') if m in sys.modules])"
    )
    for words in (["list"], ["hint", "one"], ["reset", "one"], ["check", "two"]):
        result = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=house,
            capture_output=True,
            text=True,
        )
        assert result.stdout.splitlines()[-1] == "[]", (words, result)


def test_ctrl_c_during_a_check_ends_with_130_and_no_traceback(house):
    play(house, "01_one", "sleep 1000")
    with Terminal(house, command("check", "one")) as terminal:
        terminal.wait_for("Checking 01_one")
        terminal.send("\x03")
        assert terminal.ended() == 130
        assert "Traceback" not in terminal.output
        assert terminal.mode_is_as_before()


def test_a_closed_pipe_is_no_traceback(house):
    words = " ".join(f"'{word}'" for word in command("list"))
    result = subprocess.run(
        ["bash", "-c", f"{words} | true; exit ${{PIPESTATUS[0]}}"],
        cwd=house,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in result.stderr
    assert "Error" not in result.stderr
