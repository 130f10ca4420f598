"""src/instruments/19_stacks.py: where a program is, without changing it."""

import subprocess
import sys

import pytest

from tests.scripts.trainings import SRC, script, sentence

PROGRAM = SRC / "instruments/19_stacks.py"
WAITS = """
import os, sys, time
print(sys.argv[1:], __name__, flush=True)
mine = "stacks_3.txt"
while not os.path.getsize(mine):  # until the stacks are written: here
    time.sleep(0.01)
"""


def test_stacks_of_a_waiting_program_are_written_for_its_rank(tmp_path, monkeypatch):
    (tmp_path / "waits.py").write_text(WAITS)
    monkeypatch.setenv("RANK", "3")
    command = [sys.executable, PROGRAM, "0.2", "waits.py", "--epochs", "5"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['--epochs', '5'] __main__\n"
    stacks = (tmp_path / "stacks_3.txt").read_text()
    assert "waits.py" in stacks and "most recent call first" in stacks


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["2", "missing.py"], "missing.py"),
        (["never", "x.py"], "never"),
        ([], "seconds"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, words, named):
    assert named in sentence(script(tmp_path, PROGRAM.name, *words))
