"""18_scaling.py: what it measures, what it compares, and what it refuses."""

import csv
import statistics
import sys
from pathlib import Path

import pytest

from common.cost.scaling import Runs
from common.cost.scaling import _Run as Run
from common.distributed import BadInput
from tests.launched import STANDALONE, run
from tests.scripts.trainings import SRC

SCRIPT = SRC / "instruments/18_scaling.py"
SMALL = ["--width", 12, "--heads", 3, "--blocks", 1, "--context", 8]
SMALL += ["--batch-size", 6, "--steps", 2, "--rounds", 2]
COLUMNS = ["scaling", "ranks", "global_batch", "milliseconds", "low", "high"]
COLUMNS += ["steps", "parameters", "device"]


def scaling(folder, *arguments, **variables):
    return run(folder, [sys.executable, SCRIPT, *arguments], **variables)


def strong(ranks, batch=32, milliseconds=100.0, device="CPU"):
    return Run("strong", ranks, batch, milliseconds, 90.0, 110.0, 10, 1000, device)


def weak(ranks, batch, milliseconds=100.0):
    return strong(ranks, batch, milliseconds)._replace(scaling="weak")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """(folder, what was printed) of a small run on 1, 2 and 3 ranks."""
    folder = tmp_path_factory.mktemp("scaling")
    files = ["--csv", "runs.csv", "--plot", "runs.png"]
    options = ["--ranks", 3, 1, 2, *SMALL, *files]
    done = scaling(folder, *options, DISPLAY="", MPLBACKEND="TkAgg")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_each_number_of_ranks_is_measured_with_both_kinds_of_batch(measured):
    folder, _ = measured
    with (folder / "runs.csv").open(newline="") as file:
        names, *rows = csv.reader(file)
    assert names == COLUMNS
    assert [row[:3] for row in rows] == [
        ["strong", "1", "6"],
        ["strong", "2", "6"],
        ["strong", "3", "6"],
        ["weak", "1", "6"],
        ["weak", "2", "12"],
        ["weak", "3", "18"],
    ]
    assert {row[6] for row in rows} == {"4"}, "2 rounds of 2 steps; none of the warm-up"
    assert all(0 < float(low) <= float(high) for *_, low, high in (r[:6] for r in rows))
    assert rows[0][3:] == rows[3][3:], "one rank is one run, of both kinds"


def test_table_says_what_is_equal_and_what_is_not(measured):
    _, printed = measured
    assert "3 ranks, each on CPU, 1 thread, backend gloo" in printed
    assert "Strong scaling: 6 sequences a step, shared by the ranks\n" in printed
    assert "Weak scaling: 6 sequences a step on each rank\n" in printed
    assert "(global batch 6 to 18: a step isn't the same training)" in printed


def test_plot_needs_no_display(measured):
    folder, printed = measured
    assert (folder / "runs.png").read_bytes()[:4] == b"\x89PNG"
    assert "runs.png is drawn" in printed


def test_files_are_compared_without_a_run(measured):
    folder, printed = measured
    done = scaling(folder, "runs.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed[printed.index("Strong") : printed.index("runs.png")]


def test_a_file_given_twice_is_refused(measured):
    """Also as a copy: two measurements never agree to the last digit."""
    folder, _ = measured
    (folder / "copy.csv").write_bytes((folder / "runs.csv").read_bytes())
    for other in ("runs.csv", "copy.csv"):
        done = scaling(folder, "runs.csv", other)
        assert (done.returncode, done.stdout) == (2, "")
        same = f"runs.csv and {other} have the same run of 1 rank(s): give each file"
        assert done.stderr == f"18_scaling.py: error: {same} once\n"


def test_without_matplotlib_there_is_the_table_and_a_sentence(measured):
    folder, _ = measured
    (folder / "without").mkdir()
    (folder / "without" / "matplotlib.py").write_text("raise ImportError")
    more = {"PYTHONPATH": str(folder / "without")}
    done = scaling(folder, "runs.csv", "--plot", "no.svg", **more)
    assert done.returncode == 0, done.stderr
    last = "no.svg is not drawn: matplotlib is missing (pip install matplotlib)"
    assert done.stdout.splitlines()[-1] == last
    assert not (folder / "no.svg").exists()


@pytest.mark.full
def test_ranks_of_torchrun_take_turns(tmp_path):
    options = ["--csv", tmp_path / "runs.csv", *SMALL]
    done = run(tmp_path, [*STANDALONE, "--nproc-per-node=3", SCRIPT, *options])
    assert done.returncode == 0, done.stderr
    runs = Runs.read([tmp_path / "runs.csv"])
    assert [run.ranks for run in runs.kinds["weak"]] == [1, 2, 3]


def test_median_and_quartiles_not_the_mean():
    steps = [10.0, 11.0, 12.0, 13.0, 900.0]
    found = Run.of("strong", 2, 32, steps, 1000, "CPU")
    assert found.milliseconds == statistics.median(steps) == 12
    assert (found.low, found.high, found.steps) == (11, 13, 5)


def test_efficiency_is_speed_per_rank_compared_with_the_fewest_ranks():
    table = Runs([weak(4, 128, 160.0), weak(2, 64, 80.0), strong(4, 32, 50.0),
                  strong(1, 32, 100.0)]).table().splitlines()  # fmt: skip
    rows = [line.split() for line in table if line[4:5].isdigit()]
    assert [(row[0], *row[-2:]) for row in rows] == [
        ("1", "1.00", "100%"),
        ("4", "2.00", "50%"),
        ("2", "1.00", "100%"),
        ("4", "1.00", "50%"),
    ]


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (
            [strong(1, 32), strong(2, 64)],
            "not strong scaling, because the global batch differs: 32 on 1 ranks and "
            "64 on 2",
        ),
        (
            [weak(1, 32), weak(2, 32)],
            "the batch of a rank differs: 32 on 1 ranks and 16",
        ),
        ([strong(1), strong(2, device="GPU")], "the device differs: CPU on 1"),
        ([strong(1), strong(2)._replace(parameters=5)], "the model differs: 1,000 par"),
        ([strong(1)._replace(scaling="both")], "'both' of a run is neither"),
    ],
)
def test_unequal_runs_are_not_compared(runs, words):
    with pytest.raises(BadInput, match=words):
        Runs(runs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ranks", "1", "3"], "--batch-size 16 cannot be divided among 3 ranks"),
        (["--ranks", "0"], "'0' is not a whole number above 0"),
        (["--plot", "a.txt"], "--plot a.txt has no ending of .png, .svg, .pdf: add it"),
        (["--csv", "/nowhere/runs.csv"], "cannot write in the folder /nowhere"),
        (["--steps", "1", "--rounds", "1"], "--steps 1 shows no spread"),
        (["nothing.csv"], "cannot read nothing.csv: No such file"),
        ([str(Path(__file__))], "is not a file that --csv of this program has written"),
        (["--heads", "5"], "--width 96 cannot be divided among --heads 5"),
        (["--csv", "a.png", "--plot", "a.png"], "--csv and --plot are both a.png"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, words):
    done = scaling(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_number_that_no_run_has_is_one_sentence(tmp_path):
    done = scaling(tmp_path, "--ranks", 1, "--batch-size", 10**22)
    assert done.returncode == 2
    cure = (
        f"'{10**22}' is too large: choose at most 2147483647 (--help shows the usage)"
    )
    assert done.stderr == f"18_scaling.py: error: argument --batch-size: {cure}\n"


@pytest.mark.full
def test_more_than_the_memory_holds_is_named_by_pytorch(tmp_path):
    """Also in processes that another one has started."""
    done = scaling(tmp_path, "--ranks", 1, "--steps", 2, "--batch-size", 10**8)
    assert done.returncode == 1
    assert "can't allocate memory" in done.stderr.rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    "row", ["", "strong,1,16,0", "strong,0,16,9", "strong,1,16,nan", "strong,1,16,inf"]
)
def test_numbers_that_no_run_has_are_refused(tmp_path, row):
    rows = [",".join(COLUMNS), *([f"{row},1,1,5,1000,CPU"] if row else [])]
    (tmp_path / "runs.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    done = scaling(tmp_path, "runs.csv")
    assert (done.returncode, done.stdout) == (2, "")
    words = "runs.csv is not a file that --csv of this program has written"
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.full
def test_more_ranks_than_the_launcher_started_are_refused(tmp_path):
    command = [*STANDALONE, "--nproc-per-node=2", SCRIPT, "--ranks", 4, *SMALL]
    done = run(tmp_path, command)
    assert done.returncode != 0
    assert "--ranks 4: only 2 were started: start more" in done.stderr
