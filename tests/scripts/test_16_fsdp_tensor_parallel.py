"""src/16_fsdp_tensor_parallel.py: the same on any grid, and its checkpoints."""

import contextlib
import json
import shutil
import socket
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.byte_gpt import ByteGPT, Sizes
from common.checkpoint import check_folder, newest
from common.distributed import BadInput
from common.parallel.mesh import Grid, plan_grid, split_blocks
from tests.in_ranks import assert_right, every_check_in
from tests.launched import run
from tests.scripts.starters import end, start
from tests.scripts.trainings import SRC, script, sentence, torchrun

checkpoint_to_file = import_module("instruments.16_checkpoint_to_file")
fsdp_tensor_parallel = import_module("16_fsdp_tensor_parallel")

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
SMALL = ["--width=24", "--heads=4", "--blocks=1", "--context=8", "--batch-size=4"]
NAME = "16_fsdp_tensor_parallel.py"


@pytest.mark.nightly
@every_check_in(HERE / "ranks_16_two_dimensions.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


# Checkpoints


def worlds(folder, kind):
    program = [sys.executable, "-W", "ignore", HERE / "worlds_16_two_dimensions.py"]
    done = run(folder, [*program, folder, kind])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_close(mine, expected):
    """Nested lists of numbers, in float64."""
    if isinstance(expected, list):
        assert len(mine) == len(expected)
        for a, b in zip(mine, expected, strict=True):
            assert_close(a, b)
    else:
        assert mine == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.nightly
def test_checkpoint_of_4_ranks_goes_on_on_any_grid(tmp_path):
    """Saved on 2 x 2, loaded on 4, 3, 2 and 1 ranks: the losses of who never stopped.

    On the same grid, bit for bit; what is saved in the background is what was there
    when it began.
    """
    found = worlds(tmp_path, "layouts")
    losses, weights = found["alone"]
    for saved in found["saved"].values():
        assert_close(saved, [losses, weights])
    names = set()
    for grid, name, first, mine, mine_weights in found["loaded"]:
        assert first == 3, grid
        assert_close([mine, mine_weights], [losses[3:], weights])
        if grid == "data 2 x tensor 2":
            undisturbed = found["saved"][name]
            assert [mine, mine_weights] == [undisturbed[0][3:], undisturbed[1]]
        names.add(grid)
    assert {"data 1 x tensor 2", "data 2", "data 1", "replica 2 x data 1"} < names


@pytest.mark.nightly
def test_killed_during_a_save_in_the_background_the_one_before_is_loaded(tmp_path):
    """Ten times all ranks are killed while they save; nothing that was complete is
    lost, what is loaded is right, and what is incomplete is removed."""
    found = worlds(tmp_path, "kills")
    for known, _, name, steps, loss, clean in found["rounds"]:
        assert steps >= known, "an older checkpoint than the newest complete one"
        assert name == f"checkpoint-{steps}"
        assert loss == pytest.approx(found["alone"][steps], rel=1e-10)
        assert clean
    assert len(found["rounds"]) == 10
    assert any(torn for _, torn, *_ in found["rounds"]), "no kill hit a save"


# The script


def said_by(main, arguments, folder, monkeypatch, capsys):
    """What a script says that needs no ranks and no process of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["script.py", *map(str, arguments)])
    with contextlib.suppress(SystemExit):
        main()
        return capsys.readouterr().out
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Six steps on 2 x 2, saved after three and after six; and what was printed."""
    folder = tmp_path_factory.mktemp("saved")
    options = ["--checkpoints=saves", "--save-every=3", "--async-save"]
    done = torchrun(folder, 4, SRC / NAME, 6, *SMALL, *options, "--metrics=grid.json")
    assert done.returncode == 0, done.stderr
    alone = script(folder, "13_train_gpt.py", 8, *SMALL, "--metrics=alone.json")
    assert alone.returncode == 0, alone.stderr
    return folder, done.stdout


def losses(path):
    return json.loads(path.read_text())["losses"]


def test_losses_are_those_of_one_device(saved):
    folder, printed = saved
    mine, expected = losses(folder / "grid.json"), losses(folder / "alone.json")
    assert mine == pytest.approx(expected[:6], rel=1e-5)
    assert "Grid: data 2 x tensor 2" in printed


@pytest.mark.nightly
def test_every_line_of_the_cost_is_as_the_formula_says(tmp_path):
    done = torchrun(tmp_path, 4, SRC / "instruments/16_cost.py", SRC / NAME, 6, *SMALL)
    assert done.returncode == 0, done.stderr
    assert "they differ" not in done.stdout
    for quantity in ("parameters", "activations", "data axis", "tensor axis"):
        assert done.stdout.count(f"\n{quantity} ") >= 1


def test_one_rank_goes_on(saved):
    folder, _ = saved
    options = ["--tensor-ranks=1", "--checkpoints=saves", "--metrics=one.json"]
    done = script(folder, NAME, 8, *SMALL, *options)
    assert done.returncode == 0, done.stderr
    assert "Resuming from saves/checkpoint-6 after 6 steps" in done.stdout
    expected = losses(folder / "alone.json")[6:]
    assert losses(folder / "one.json") == pytest.approx(expected, rel=1e-5)


def test_one_file_of_a_checkpoint_goes_on_in_the_script_for_one_device(
    saved, monkeypatch, capsys
):
    folder, _ = saved
    said = said_by(
        checkpoint_to_file.main, ["saves", "gpt.pt"], folder, monkeypatch, capsys
    )
    assert said == "saves/checkpoint-6 after 6 steps is now in gpt.pt\n"
    options = ["--save-every=8", "--snapshot=gpt.pt", "--metrics=file.json"]
    done = script(folder, "13_train_gpt.py", 8, *SMALL, *options)
    assert "Resuming from gpt.pt after 6 steps" in done.stdout, done
    expected = losses(folder / "alone.json")[6:]
    assert losses(folder / "file.json") == pytest.approx(expected, rel=1e-5)


def test_full_disk_ends_no_training(tmp_path):
    """A limit on the size of files stands for a disk that is full."""
    small = [*SMALL, "--tensor-ranks=1", "--checkpoints=saves", "--save-every=2"]
    command = [sys.executable, SRC / NAME, 3, *small, "--async-save"]
    command.append("--metrics=end.json")
    limited = ["bash", "-c", 'ulimit -f 20; exec "$@"', "bash", *command]
    done = run(tmp_path, limited)
    assert done.returncode == 2, done
    assert "Continuing without a checkpoint: " in done.stdout
    words = "cannot write the checkpoint saves/checkpoint-2 (OSError: File too large)"
    assert words in done.stderr.splitlines()[-1]
    assert len(losses(tmp_path / "end.json")) == 3
    assert newest(tmp_path / "saves") is None


# What cannot work is one sentence


def test_checkpoint_of_another_model(saved):
    folder, _ = saved
    other = [*SMALL, "--heads=6", "--tensor-ranks=1", "--checkpoints=saves"]
    said = sentence(script(folder, NAME, 8, *other))
    assert "saves/checkpoint-6 is of a model with --heads 4, and this one has 6" in said


@pytest.mark.parametrize("damaged", [".metadata", "__0_0.distcp"])
def test_damaged_checkpoint(saved, tmp_path, damaged, monkeypatch, capsys):
    shutil.copytree(saved[0] / "saves", tmp_path / "saves")
    (tmp_path / "saves" / "checkpoint-6" / damaged).write_bytes(b"nothing")
    said = said_by(
        checkpoint_to_file.main, ["saves", "gpt.pt"], tmp_path, monkeypatch, capsys
    )
    assert "saves/checkpoint-6 is damaged or is no checkpoint of this program" in said
    assert "move it away to resume from checkpoint-3" in said
    assert not (tmp_path / "gpt.pt").exists()


@pytest.mark.nightly
def test_node_that_does_not_see_the_folder_is_named(saved, tmp_path):
    """Rank 1 starts in a folder of its own, as on a node that shares no disk."""
    options = [*SMALL, "--checkpoints=saves", "--tensor-ranks=1"]
    statuses, _, err = end(
        start(saved[0], 2, SRC / NAME, "8", *options, folder_of_1=tmp_path)
    )
    assert statuses == [2, 2]
    unseen = f"saves/checkpoint-6 is not seen on {socket.gethostname()}: give all nodes"
    assert [unseen in line for line in err.splitlines()] == [True, True], err


def test_incomplete_folder_is_passed_over(saved, tmp_path):
    shutil.copytree(saved[0] / "saves", tmp_path / "saves")
    (tmp_path / "saves" / "checkpoint-6" / ".metadata").unlink()
    assert newest(tmp_path / "saves") == tmp_path / "saves" / "checkpoint-3"


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("nowhere", "there is no folder nowhere: give that of --checkpoints"),
        (".", ". holds no complete checkpoint-STEPS"),
    ],
)
def test_nothing_to_convert(folder, words, tmp_path, monkeypatch, capsys):
    arguments = [folder, "gpt.pt"]
    said = said_by(checkpoint_to_file.main, arguments, tmp_path, monkeypatch, capsys)
    assert words in said


def test_folder_that_cannot_be_one_of_checkpoints(saved, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    inside = saved[0] / "saves" / "checkpoint-6"
    cases = {
        file: "is a file: give the name of a folder",
        inside: f"is one checkpoint: give the folder it is in, {inside.parent}",
        tmp_path / "missing" / "saves": "cannot make this folder (No such file",
    }
    for path, words in cases.items():
        with pytest.raises(BadInput) as error:
            check_folder(path, "--checkpoints")
        assert words in str(error.value)


def test_grid_that_does_not_fit_the_ranks():
    assert plan_grid(8, 2, 2) == Grid(2, 2, 2)
    for world_size, replicas, tensor in [(4, 1, 3), (4, 3, 1), (2, 2, 2), (1, 1, 2)]:
        with pytest.raises(BadInput) as error:
            plan_grid(world_size, replicas, tensor)
        assert f"do not divide a world of {world_size}: start" in str(error.value)


def test_heads_that_do_not_divide_among_a_tensor_group():
    model = ByteGPT(Sizes(width=24, heads=4, blocks=1))
    with pytest.raises(BadInput, match="--heads 4 cannot be divided among 3 ranks"):
        split_blocks(model, SimpleNamespace(size=lambda: 3))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tensor-ranks=0"], "'0' is not a whole number above 0"),
        (["--save-every=2"], "--save-every needs --checkpoints FOLDER"),
        (["--async-save", "--checkpoints=x"], "--async-save needs --save-every STEPS"),
        (["--checkpoints=no/where"], "cannot make this folder"),
    ],
)
def test_options_that_cannot_work(options, words, tmp_path, monkeypatch, capsys):
    arguments = [3, *SMALL, *options]
    said = said_by(fsdp_tensor_parallel.main, arguments, tmp_path, monkeypatch, capsys)
    assert words in said
