"""src/20_capstone.py: its manifest is true, and a resumed run ends at the same loss."""

import json
from hashlib import sha256

import pytest

from tests.scripts.trainings import SRC, torchrun
from workshop.capstone.evidence import FIELDS, read_run
from workshop.capstone.unbroken import check_unbroken

pytestmark = pytest.mark.full

PROGRAM = SRC / "20_capstone.py"
SMALL = ["--width=24", "--heads=4", "--blocks=1", "--context=8", "--batch-size=12"]
SAVES = ["--save-every=3", "--async-save", "--mixed-precision"]
NUMEL = (256 + 8) * 24 + 12 * 24**2 + 13 * 24 + 2 * 24 + 25 * 256


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """12 steps on 2 x 2; and 6 of them, then all 12 on 1 x 2."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "plan.toml").write_text("nodes = 4  # no comment\nbytes = 1_000\n")
    for name, ranks, steps in (("whole", 4, 12), ("parts", 4, 6), ("parts", 2, 12)):
        more = [*SAVES, "--checkpoints", name, "--plan=plan.toml"]
        done = torchrun(folder, ranks, PROGRAM, steps, *SMALL, *more, SLURM_JOB_ID="7")
        assert done.returncode == 0, done.stderr
        (folder / name / "log.txt").write_text(done.stdout)
    return {name: read_run(folder / name) for name in ("whole", "parts")}


@pytest.mark.nightly
def test_manifest_is_what_the_grader_reads(runs):
    check_unbroken(runs)
    [whole] = runs["whole"].attempts
    assert whole.start["plan"] == {"nodes": 4, "bytes": 1000}
    assert whole.start["job"] == "7" and len(whole.start["hosts"]) == 4
    assert whole.layout == "data 2 x tensor 2"
    assert whole.memory["dtypes"] == ["torch.bfloat16"]
    assert whole.memory["numel"] == NUMEL
    assert set(whole.checkpoints) == {f"checkpoint-{n}" for n in (3, 6, 9, 12)}
    assert whole.end["steps"] == 12
    program = sha256(PROGRAM.read_bytes()).hexdigest()
    assert whole.start["code"]["20_capstone.py"] == program
    assert "common/parallel/mesh.py" in whole.start["code"]
    kinds = {json.loads(line)["kind"] for line in runs["whole"].lines}
    assert kinds == set(FIELDS)


@pytest.mark.nightly
def test_loss_after_resuming_on_another_grid_is_that_of_the_whole_run(runs):
    first, again = runs["parts"].attempts
    assert (first.first, again.first) == (0, 6)
    assert (first.layout, again.layout) == ("data 2 x tensor 2", "data 1 x tensor 2")
    assert again.start["resumed"] == first.checkpoints["checkpoint-6"]
    assert first.start["run"] == again.start["run"]
    mine, expected = (runs[n].history("losses") for n in ("parts", "whole"))
    assert list(mine) == list(expected) == list(range(12))
    # bfloat16 keeps 8 bits, and each grid rounds other sums: 0.002 is seen here
    assert list(mine.values()) == pytest.approx(list(expected.values()), abs=0.01)
    assert expected[0] - expected[11] > 0.05, "it learns nothing: nothing is compared"
    assert runs["parts"].history("data") == runs["whole"].history("data")


def test_counted_memory_is_what_lesson_16_calculates(runs):
    """16 bytes for each number that rank 0 keeps, in shards of whole rows."""
    width, half = 24, 12
    cut = 3 * (width + 1) * half + (width + 1) * 4 * half  # columns, and their biases
    rows = width * half + 4 * half * width
    norms_and_biases = 6 * width
    ends = (256 + 8) * width + 2 * width + (width + 1) * 256
    numbers = (cut + rows + norms_and_biases + ends) // 2  # among two data ranks
    assert runs["whole"].attempts[0].memory["held"] == [16 * numbers] * 4


def test_bad_input_is_one_sentence(tmp_path):
    done = torchrun(tmp_path, 1, PROGRAM, 2, "--checkpoints=run", "--plan=none.toml")
    assert "--plan none.toml: write the plan first" in done.stderr
    (tmp_path / "file").write_text("")
    done = torchrun(tmp_path, 1, PROGRAM, 2, "--checkpoints=file")
    assert "--checkpoints file is a file" in done.stderr
