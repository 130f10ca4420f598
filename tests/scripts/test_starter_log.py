"""--log-file of the starters: what a line says, and that it changes no bit."""

import json

import pytest

from tests.scripts.starters import (
    ALIKE,
    BOTH,
    FAST,
    STARTER,
    assert_same_end,
    changed,
    end,
    start,
    state,
)
from tests.scripts.starters import train as train_in_ranks
from tests.scripts.trainings import SLOWER, script

RUN = ["1", "1", *FAST, "--batch-size", "252"]  # 3 x 84 and 4 x 63
LOG = [*RUN, "--log-file", "run.jsonl"]
NO_DROPOUT = ("nn.Dropout(0.1)", "nn.Identity()")
NO_TOKENS = 'if your samples aren\'t of tokens."""\n    return 0'
TOKENS = (NO_TOKENS, NO_TOKENS[:-1] + "batch[0].numel()")  # 32 of each sample
# A sample costs 2 operations for each weight in forward, and in backward twice that,
# without the gradient of the first layer's input
FIRST = {"train_ddp.py": 32 * 128, "train_fsdp.py": 32 * 64}
OTHERS = {"train_ddp.py": 128 * 10, "train_fsdp.py": 3 * 64 * 64 + 64 * 10}


def train(folder, ranks, program, *arguments):
    """Run in a new folder; its records."""
    folder.mkdir()
    train_in_ranks(folder, ranks, program, *arguments)
    lines = (folder / "run.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Both, whose batches have tokens, and whose ranks draw nothing of their own."""
    folder = tmp_path_factory.mktemp("programs")
    return {
        name: changed(folder, name, dropout=NO_DROPOUT, tokens=TOKENS) for name in FIRST
    }


@ALIKE
@pytest.mark.parametrize("ranks", [3, pytest.param(4, marks=pytest.mark.nightly)])
def test_line_of_several_ranks_has_the_loss_and_norm_of_one(
    name, ranks, tmp_path, programs
):
    alone = train(tmp_path / "alone", 1, programs[name], *LOG)
    lines = train(tmp_path / "several", ranks, programs[name], *LOG)
    assert [line["step"] for line in lines] == [5, 10, 15]
    for line, expected in zip(lines, alone, strict=True):
        for number in ("loss", "grad_norm"):
            assert line[number] == pytest.approx(expected[number], rel=1e-4), number
        for number in ("data_s", "own_s", "step_s", "memory_gb"):
            assert len(line[number]) == ranks, number
            assert all(one > 0 for one in line[number])
        assert line["tokens_per_s"] == pytest.approx(32 * line["samples_per_s"])
        rate = line["tflops_per_s"] * 1e12 * ranks / line["samples_per_s"]
        assert rate == pytest.approx(4 * FIRST[name] + 6 * OTHERS[name])


@ALIKE
def test_log_changes_no_bit_and_is_continued_by_a_resumed_run(name, tmp_path):
    with_log, without = tmp_path / "with", tmp_path / "without"
    first = train(with_log, 2, STARTER / name, *LOG)
    without.mkdir()
    train_in_ranks(without, 2, STARTER / name, *RUN)
    assert_same_end(state(with_log, name), state(without, name))
    # the second time it has nothing to train, and adds no line
    for _ in range(2):
        train_in_ranks(with_log, 2, STARTER / name, "2", *LOG[1:])
    lines = (with_log / "run.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert records[: len(first)] == first
    assert [record["step"] for record in records] == [5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize(
    ("name", "accumulation"),
    [("train_ddp.py", "1"), ("train_ddp.py", "3"), ("train_fsdp.py", "1")],
)
def test_slow_rank_shows_in_its_own_time_and_delays_all(tmp_path, name, accumulation):
    """Only its own clock is read: however loaded the machine is, it has slept."""
    default = "    return data.default_collate(samples)"
    options = ["--batch-size", "1800", "--log-every", "2"]
    options += ["--accumulation", accumulation]
    for ms in SLOWER:
        seconds = ms / 1000
        of_rank_1 = f"{seconds} / int(sys.argv[-1]) * (os.environ['RANK'] == '1')"
        sleep = f"    time.sleep({of_rank_1})\n"
        program = changed(tmp_path, name, slow=(default, sleep + default))
        (line,) = train(tmp_path / str(ms), 3, program, *LOG, *options)
        assert line["data_s"][1] > seconds and line["own_s"][1] > seconds
        assert min(line["step_s"]) > seconds  # all wait for it
        own = line["own_s"]
        assert own[1] == max(own)
        if name == "train_fsdp.py":  # its steps are longer: how much is told of DDP's
            return
        shown = script(tmp_path, "17_watch_run.py", f"{ms}/run.jsonl").stdout
        said = ("! step 2: rank 1 waits", "! step 2: rank 1 is slow: ")
        if all(sentence in shown for sentence in said):
            return
    pytest.fail(f"{SLOWER[-1]} ms were not noticed: {shown}")


@BOTH
def test_file_that_cannot_be_written_is_refused_before_the_first_step(name, tmp_path):
    options = [*RUN, "--log-file", "none/run.jsonl"]
    statuses, out, err = end(start(tmp_path, 2, STARTER / name, *options))
    assert statuses == [2, 2]
    assert "--log-file none/run.jsonl: No such file or directory" in err
    assert "step 5" not in out
