"""src/starter/train_ddp.py --log-file: what a line says, and that it changes no bit."""

import json

import pytest

from tests.scripts.starters import (
    FAST,
    STARTER,
    assert_same_end,
    changed,
    end,
    start,
    state,
)
from tests.scripts.starters import train as train_in_ranks
from tests.scripts.trainings import script

DDP = "train_ddp.py"
RUN = ["1", "1", *FAST, "--batch-size", "252"]  # 3 x 84 and 4 x 63
LOG = [*RUN, "--log-file", "run.jsonl"]
NO_DROPOUT = ("nn.Dropout(0.1)", "nn.Identity()")
# A sample costs 2 operations for each weight of 32 x 128 and 128 x 10 in forward, and
# in backward twice that, without the gradient of the first layer's input
FLOPS = 2 * (2 * (32 * 128 + 128 * 10)) + 2 * 128 * 10


def train(folder, ranks, program, *arguments):
    """Run in a new folder; its records."""
    folder.mkdir()
    train_in_ranks(folder, ranks, program, *arguments)
    lines = (folder / "run.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return changed(tmp_path_factory.mktemp("program"), DDP, dropout=NO_DROPOUT)


@pytest.fixture(scope="module")
def alone(tmp_path_factory, program):
    return train(tmp_path_factory.mktemp("runs") / "alone", 1, program, *LOG)


@pytest.mark.parametrize("ranks", [3, pytest.param(4, marks=pytest.mark.full)])
def test_line_of_several_ranks_has_the_loss_and_norm_of_one(
    tmp_path, program, alone, ranks
):
    lines = train(tmp_path / "several", ranks, program, *LOG)
    assert [line["step"] for line in lines] == [5, 10, 15]
    for line, expected in zip(lines, alone, strict=True):
        for name in ("loss", "grad_norm"):
            assert line[name] == pytest.approx(expected[name], rel=1e-4), name
        for name in ("data_s", "own_s", "step_s", "memory_gb"):
            assert len(line[name]) == ranks, name
            assert all(number > 0 for number in line[name])
        rate = line["tflops_per_s"] * 1e12 * ranks / line["samples_per_s"]
        assert rate == pytest.approx(FLOPS)


def test_log_changes_no_bit_and_is_continued_by_a_resumed_run(tmp_path):
    with_log, without = tmp_path / "with", tmp_path / "without"
    first = train(with_log, 2, STARTER / DDP, *LOG)
    without.mkdir()
    train_in_ranks(without, 2, STARTER / DDP, *RUN)
    assert_same_end(state(with_log, DDP), state(without, DDP))
    # the second time it has nothing to train, and adds no line
    for _ in range(2):
        train_in_ranks(with_log, 2, STARTER / DDP, "2", *LOG[1:])
    lines = (with_log / "run.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert records[: len(first)] == first
    assert [record["step"] for record in records] == [5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize("accumulation", ["1", "3"])
def test_slow_rank_shows_in_its_own_time_and_delays_all(tmp_path, accumulation):
    """Only its own clock is read: however loaded the machine is, it has slept."""
    sleep = "time.sleep(0.5 / int(sys.argv[-1]) * (os.environ['RANK'] == '1'))"
    default = "    return data.default_collate(samples)"
    program = changed(tmp_path, DDP, slow=(default, f"    {sleep}\n{default}"))
    options = ["--batch-size", "1800", "--log-every", "2"]
    options += ["--accumulation", accumulation]
    (line,) = train(tmp_path / "slow", 3, program, *LOG, *options)
    assert line["data_s"][1] > 0.5 and line["own_s"][1] > 0.5
    assert min(line["step_s"]) > 0.5  # all wait for it
    own = line["own_s"]
    assert own[1] == max(own)
    done = script(tmp_path, "17_watch_run.py", "slow/run.jsonl")
    assert "! step 2: rank 1 waits" in done.stdout
    assert "! step 2: rank 1 is slow: " in done.stdout


def test_file_that_cannot_be_written_is_refused_before_the_first_step(tmp_path):
    options = [*RUN, "--log-file", "none/run.jsonl"]
    statuses, out, err = end(start(tmp_path, 2, STARTER / DDP, *options))
    assert statuses == [2, 2]
    assert "--log-file none/run.jsonl: No such file or directory" in err
    assert "step 5" not in out
