"""23_slow_link.py: bytes as by the formula, losses that fall, one row for each way."""

import json

import pytest

from tests.scripts import trainings

pytestmark = pytest.mark.full

SMALL = ["--width", 24, "--heads", 4, "--blocks", 1, "--context", 24]
OPTIONS = [*SMALL, "--learning-rate", 0.01, "--local-steps", 4, "--loss", 5.3]
PROGRAM = "instruments/23_slow_link.py"


@pytest.mark.quick
def test_counts_what_the_formulas_say_and_learns(tmp_path):
    command = [trainings.SRC / PROGRAM, 8, "--batch-size", 12, "--test-every", 4]
    command += [*OPTIONS, "--metrics", "m.json"]
    done = trainings.torchrun(tmp_path, 3, *command)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "m.json").read_text())
    assert list(rows) == ["DDP", "K = 4", "K = 4, mean", "K = 4, int8"]
    for name, row in rows.items():
        assert row["counted"] == pytest.approx(row["formula"], abs=1), name
        assert row["last_loss"] < 5.3, name
        assert row["steps_to_loss"] in (4, 8) and row["seconds_to_loss"] > 0
    ddp = rows["DDP"]["formula"]
    for name in ("K = 4", "K = 4, mean"):
        assert rows[name]["formula"] == pytest.approx(ddp / 4)
    assert rows["K = 4, int8"]["formula"] == pytest.approx(ddp / 16, rel=0.01)
    shown = [line[:14].strip() for line in done.stdout.splitlines()]
    assert [name for name in shown if name in rows] == list(rows)


def test_delayed_fragments_send_as_many_bytes(tmp_path):
    command = [trainings.SRC / PROGRAM, 8, "--batch-size", 12, "--test-every", 4]
    command += [*OPTIONS, "--fragments", 3, "--delay", 2, "--metrics", "m.json"]
    done = trainings.torchrun(tmp_path, 3, *command)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "m.json").read_text())
    row = rows["K = 4, delay"]
    assert row["counted"] == pytest.approx(row["formula"], abs=1)
    assert row["formula"] == rows["K = 4"]["formula"]
    assert row["last_loss"] < 5.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--delay", 4],
            "--delay 4: a fragment is sent again after 4 steps: choose a shorter one",
        ),
        (
            ["--fragments", 5],
            "--fragments 5: they need as many steps, but --local-steps is 4: choose "
            "fewer fragments",
        ),
    ],
)
def test_delay_that_cannot_be_is_one_sentence(tmp_path, options, sentence):
    command = [PROGRAM.rpartition("/")[2], 1, *OPTIONS, *options]
    assert sentence in trainings.sentence(trainings.script(tmp_path, *command))


def test_batch_that_ranks_cannot_share_is_one_sentence(tmp_path):
    command = [trainings.SRC / PROGRAM, 1, "--batch-size", 3]
    done = trainings.torchrun(tmp_path, 2, *command)
    assert done.returncode
    sentence = "--batch-size 3 cannot be divided among 2 ranks: choose 2 or 4"
    assert sentence in done.stderr and "exitcode  : 2" in done.stderr
