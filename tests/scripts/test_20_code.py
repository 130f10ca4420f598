"""src/20_capstone.py --code: a learner's file lays out, saves and resumes the run."""

import json
from hashlib import sha256

import pytest

from tests.scripts.trainings import SRC, torchrun
from workshop.capstone.evidence import read_run
from workshop.capstone.unbroken import check_unbroken

pytestmark = pytest.mark.full

PROGRAM = SRC / "20_capstone.py"
SOLUTION = SRC.parent / "solutions" / "20_capstone.py"
SKELETON = SRC.parent / "exercises" / "20_capstone.py"
SMALL = ["--width=24", "--heads=4", "--blocks=1", "--context=8", "--batch-size=12"]


def trained(folder, ranks, steps, name, *more):
    options = ["--save-every=3", "--checkpoints", name, *more]
    return torchrun(folder, ranks, PROGRAM, steps, *SMALL, *options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """9 steps by the program's code; the same by the solution's, on two grids."""
    folder = tmp_path_factory.mktemp("runs")
    own = ["--code", str(SOLUTION)]
    for name, ranks, steps, more in (
        ("program", 4, 9, ["--async-save"]),
        ("own", 4, 6, own),
        ("own", 3, 9, [*own, "--tensor-ranks=1"]),
    ):
        done = trained(folder, ranks, steps, name, *more)
        assert done.returncode == 0, done.stderr
        (folder / name / "log.txt").write_text(done.stdout)
    return {name: read_run(folder / name) for name in ("program", "own")}


@pytest.mark.nightly
def test_own_code_trains_and_resumes_as_the_program_does(runs):
    first, again = runs["own"].attempts
    assert (first.layout, again.layout) == ("data 2 x tensor 2", "data 3 x tensor 1")
    assert (first.first, again.first) == (0, 6)
    found, expected = (runs[name].history("losses") for name in ("own", "program"))
    assert list(found) == list(range(9))
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-4)
    assert expected[0] - expected[8] > 0.05, "it learns nothing: nothing is compared"
    assert runs["own"].history("data") == runs["program"].history("data")


@pytest.mark.nightly
def test_manifest_names_the_file_and_its_checkpoints(runs):
    check_unbroken(runs)
    digest = sha256(SOLUTION.read_bytes()).hexdigest()
    for attempt in runs["own"].attempts:
        assert attempt.start["own"] == {"file": str(SOLUTION), "sha256": digest}
    assert runs["program"].started["own"] == {}
    assert set(runs["own"].checkpoints) == {f"checkpoint-{n}" for n in (3, 6, 9)}
    kept = {json.loads(line)["kind"] for line in runs["own"].lines}
    assert "end" in kept


def test_bad_code_is_one_sentence(tmp_path):
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.py").write_text("def lay_out(:\n")
    for name, words in (
        ("none.py", "there is no file --code none.py"),
        ("empty.py", "--code empty.py has no lay_out: write it there"),
        ("broken.py", "--code broken.py can't be loaded"),
        (str(SKELETON), "isn't finished (TODO 1 of 3): fill it in"),
    ):
        done = trained(tmp_path, 1, 2, "run", "--code", name)
        assert done.returncode != 0 and words in done.stderr, done.stderr
        assert f'{PROGRAM.name}", line' not in done.stderr  # no traceback of it
