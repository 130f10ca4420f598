"""src/instruments: each finds common from any folder; a program that one runs is alone.

What each of them does is tested in the file with its lesson's number.
"""

import shutil
import sys

import pytest
import torch

from tests.launched import run
from tests.scripts.trainings import SRC, script, torchrun

PRINTS = "import sys\nprint(*sys.path, sep='\\n')\n"


@pytest.fixture
def spaced(tmp_path):
    """A copy of src in a folder whose name has a space."""
    copy = tmp_path / "my clone" / "src"
    shutil.copytree(SRC, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.quick
def test_instrument_starts_from_any_folder(spaced, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    torch.save({"step": 1}, here / "a.pt")
    (tmp_path / "linked").symlink_to(spaced.parent)
    for src in (spaced, tmp_path / "linked" / "src"):
        program = src / "instruments/06_compare_snapshots.py"
        done = run(here, [sys.executable, program, "a.pt", "a.pt"])
        assert done.returncode == 0, done.stderr
    done = run(program.parent, [sys.executable, program.name, here / "a.pt", "no.pt"])
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.full
def test_torchrun_starts_an_instrument_from_any_folder(spaced, tmp_path):
    done = torchrun(tmp_path, 3, spaced / "instruments/08_link_speed.py")
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_cost_counts_a_program_from_any_folder(spaced, tmp_path):
    small = ["--width=24", "--heads=3", "--blocks=2", "--context=16", "--batch-size=8"]
    cost, program = spaced / "instruments/14_cost.py", spaced / "14_tensor_by_hand.py"
    done = torchrun(tmp_path, 3, cost, program, 2, *small)
    assert done.returncode == 0, done.stderr
    assert "bytes" in done.stdout and "they differ" not in done.stdout


@pytest.mark.parametrize("start", [["19_stacks.py", 60], ["19_flight_recorder.py"]])
def test_program_finds_modules_as_if_it_ran_alone(start, tmp_path):
    folder = tmp_path / "its own"
    folder.mkdir()
    program = folder / "prints.py"
    program.write_text(PRINTS)
    alone = run(tmp_path, [sys.executable, program])
    name, *words = start
    watched = script(tmp_path, name, *words, program)
    assert watched.returncode == 0, watched.stderr
    assert alone.stdout.splitlines()[0] == str(folder)
    assert watched.stdout == alone.stdout


def test_cost_names_the_programs_where_they_are():
    """Beside the folder of instruments, as seen from the reader's own folder."""
    for folder, shown in ((SRC.parent, "src/"), (SRC / "instruments", "../")):
        path = SRC / "instruments/13_cost.py"
        done = run(folder, [sys.executable, path, "nowhere.py"])
        assert f"name {shown}13_train_gpt.py or" in done.stderr
