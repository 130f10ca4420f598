"""07_kill_a_rank.py: kills whom it was told to, when told to, or says why not."""

import json

from tests.scripts.trainings import script, sentence

# A launcher of two ranks, which says how each has ended.
TWO_RANKS = """
RANK=0 sleep 2 & zero=$!
RANK=1 sleep 30 & one=$!
echo ready; wait $zero; echo rank 0: $?; wait $one; echo rank 1: $?
"""


def kill(folder, *options, command=("sh", "-c", TWO_RANKS)):
    return script(folder, "07_kill_a_rank.py", *options, *command)


def test_the_rank_is_killed_after_the_line_and_the_others_are_not(tmp_path):
    done = kill(tmp_path, "--after", "ready", "--delay", "1", "--json", "run.json")
    assert done.returncode == 0, done.stderr
    assert "rank 0: 0\nrank 1: 137\n" in done.stdout
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["killed"]["rank"] == 1
    assert sorted(life["rank"] for life in run["lives"]) == [0, 1]


def test_line_that_never_comes_is_said(tmp_path):
    done = kill(tmp_path, "--after", "Step 40", command=("echo", "Step 39"))
    assert done.returncode == 3
    assert "no line with 'Step 40' was printed: no rank killed" in done.stdout


def test_bad_input_is_one_sentence(tmp_path):
    assert "name the command" in sentence(kill(tmp_path, "--after", "x", command=()))
    missing = kill(tmp_path, "--after", "x", command=("no_such_program",))
    assert "cannot start no_such_program" in sentence(missing)
    other = kill(tmp_path, "--after", "ready", "--rank", "7", command=("echo", "ready"))
    assert "there is no rank 7 to kill" in sentence(other)
