"""src/instruments/17_straggler.py: which rank the others wait for, and why."""

import importlib
import re

import pytest
import torch

from tests.scripts.trainings import SLOWER, SRC, torchrun

straggler = importlib.import_module("instruments.17_straggler")
links = importlib.import_module("common.cost.links")


@pytest.mark.parametrize(
    ("table", "found"),
    [
        # data, compute, waiting of each rank
        ([(1, 20, 45), (1, 21, 44), (41, 20, 5), (1, 19, 46)], (2, "data")),
        ([(1, 60, 5), (1, 21, 44), (2, 20, 44), (1, 19, 46)], (0, "compute")),
        ([(30, 20, 45), (30, 21, 44), (70, 20, 5), (30, 19, 46)], (2, "data")),
        ([(1, 20, 45), (1, 60, 5)], (1, "compute")),
        # the batch takes longer, and computing it takes less: still one late rank
        ([(1, 30, 40), (1, 30, 40), (45, 20, 5), (1, 30, 40)], (2, "data")),
        ([(1, 20, 5), (1, 21, 4), (1, 20, 5), (1, 19, 6)], (None, "nothing")),
        # all read slowly: none waits for another
        ([(90, 20, 5), (90, 21, 4), (91, 20, 5), (90, 19, 6)], (None, "nothing")),
        ([(1, 20, 100), (1, 20, 10), (1, 20, 100)], (1, "other work")),
        ([(1, 20, 200), (1, 21, 190), (1, 20, 195), (1, 19, 199)], (None, "link")),
        # messages reach rank 2 a little earlier, but its own work doesn't explain it
        ([(1, 20, 200), (1, 21, 200), (1, 22, 150), (1, 19, 199)], (None, "link")),
    ],
)
def test_diagnosis(table, found):
    assert straggler.diagnose(table) == found


def trips(pairs, ranks=4, near=0.2):
    found = torch.full((ranks, ranks), near).fill_diagonal_(0)
    for (low, high), ms in pairs.items():
        found[low, high] = found[high, low] = ms
    return found


@pytest.mark.parametrize(
    ("pairs", "slow"),
    [
        ({(0, 2): 40, (1, 2): 40, (2, 3): 41}, [2]),
        ({(0, 1): 40, (0, 2): 40, (0, 3): 41}, [0]),
        ({(0, 2): 40, (0, 3): 40, (1, 2): 40, (1, 3): 40}, []),  # two nodes of two
        ({}, []),
    ],
)
def test_whose_link_is_slow(pairs, slow):
    assert links._slow_links(trips(pairs)) == slow


@pytest.mark.parametrize(
    "by", ["data", pytest.param("compute", marks=pytest.mark.full)]
)
def test_finds_the_rank_that_is_slow(tmp_path, by):
    """Slower and slower, until no other load of the machine hides it."""
    verdict = f"Rank 1 is slow, by its {by}: the others wait"
    for ms in SLOWER:
        options = ["--slow", 1, "--by", by, "--ms", ms, "--steps", 2]
        done = torchrun(tmp_path, 3, SRC / "instruments/17_straggler.py", *options)
        assert done.returncode == 0, done.stderr
        assert len(re.findall(r"^ +[012](?: +\d+\.\d){3}$", done.stdout, re.M)) == 3
        if verdict in done.stdout:
            return
    pytest.fail(f"{SLOWER[-1]} ms were not noticed: {done.stdout}")


def test_rank_that_does_not_exist_is_refused(tmp_path):
    done = torchrun(tmp_path, 2, SRC / "instruments/17_straggler.py", "--slow", 2)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "straggler.py: error" in line]
    assert said == ["17_straggler.py: error: --slow 2: choose one of 0 to 1"]


@pytest.mark.parametrize("option", [("--ms", 5), ("--by", "compute")])
def test_how_slow_without_a_rank_is_refused(tmp_path, option):
    done = torchrun(tmp_path, 2, SRC / "instruments/17_straggler.py", *option)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "straggler.py: error" in line]
    (sentence,) = said
    assert sentence.endswith("--by and --ms say how a rank is slow: add --slow RANK")
