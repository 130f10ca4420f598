"""An old PyTorch is refused in one sentence; other releases run what they should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from torch.torch_version import TorchVersion

from common.torch_versions import (
    PROGRAMS,
    SHARDED,
    SHARDED_ON_A_CPU,
    needed,
    problem,
)
from tests.launched import environment
from tests.other_torches import python_with
from tools import matrix

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
# Runs a program with the version that stands first on the command line.
PRETENDED = """
import runpy, sys
import torch
from torch.torch_version import TorchVersion
torch.__version__ = TorchVersion(sys.argv[1])
del sys.argv[:2]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
OTHERS = ("2.8.0", "2.14.1")  # an older release, and the newest one that was tried
# one program of each lesson, as `make matrix` runs it, and the starters on two ranks
TRIED = [
    *("01_single_device.py", "02_hello_ranks.py", "03_collectives.py"),
    *("04_data_parallel_by_hand.py", "05_ddp_spawn.py", "06_checkpoint.py"),
    *("07_torchrun.py", "08_multinode_torchrun.py", "09_srun.py"),
    *("train_ddp.py, 2 ranks", "train_fsdp.py, 2 ranks"),
]


def run_with(version, program, *arguments):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            PRETENDED,
            version,
            str(*SRC.rglob(program)),
            *arguments,
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("program", "version", "release"),
    [
        ("01_single_device.py", "2.5.1", "2.6"),
        ("14_tensor_parallel.py", "2.4.1+cu121", "2.8"),
        ("15_fsdp.py", "2.8.0", "2.9 or newer on a CPU"),
        ("20_capstone.py", "2.8.0", "2.9 or newer on a CPU"),
        ("13_pipeline.py", "2.9.1", "2.10"),
        ("19_stacks.py", "2.8.0", "2.9"),
        ("starter/train_ddp.py", "2.3.1", "2.4"),
        ("starter/train_fsdp.py", "2.5.1", "2.6"),
        ("starter/train_fsdp.py", "2.8.0", "2.9"),  # on a CPU
    ],
)
def test_older_torch_is_refused_in_one_sentence(program, version, release):
    done = run_with(version, program)
    needs = release if " " in release else f"{release} or newer"
    name = done.stderr.partition(":")[0]
    assert done.stderr == (
        f"{name}: error: this is PyTorch {version}, and it needs {needs}\n"
    )
    assert name.endswith(Path(program).name)
    assert (done.returncode, done.stdout) == (2, "")


def test_newer_torch_is_not_refused():
    done = run_with("3.0.0", "01_single_device.py", "--help")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["train_ddp.py", "train_fsdp.py"])
def test_starters_ask_for_the_release_of_the_table(name):
    text = (SRC / "starter" / name).read_text(encoding="utf-8")
    first = re.findall(r'^need_torch\("(.+)"\)', text, re.MULTILINE)
    assert first == [".".join(map(str, PROGRAMS[name]))]


def test_a_program_of_someone_else_is_not_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("torch.__version__", TorchVersion("2.5.1"))
    name = "01_single_device.py"
    assert problem(SRC / name)
    assert not problem(tmp_path / name)


def test_what_shards_a_model_is_known_as_such():
    """Averages of gloo are sums up to 2.8; a program that is new may forget it."""
    names = {
        path.name
        for path in SRC.rglob("[0-9]*.py")
        if re.search(r"^\s+.*\bfully_shard\(", path.read_text("utf-8"), re.M)
    }
    assert names >= SHARDED
    assert all(needed(name) >= SHARDED_ON_A_CPU for name in names - SHARDED)


def test_only_programs_have_a_release_of_their_own():
    files = {path.name for path in (*SRC.rglob("[0-9]*.py"), *SRC.glob("starter/*.py"))}
    assert PROGRAMS.keys() <= files
    assert needed("12_cost.py") == (2, 6)
    assert needed("13_cost.py") == (2, 8)


def test_table_of_releases_counts_each_command_once():
    """A new lesson must not be tried and then be left out of the table."""
    for name in matrix.scripts():
        columns = [
            title
            for title, pattern in matrix.COLUMNS.items()
            if re.match(pattern, name)
        ]
        assert len(columns) == 1, name


@pytest.fixture(scope="module", params=OTHERS)
def other_release(request):
    """(version, a Python with this release of PyTorch, which starts warm)."""
    with matrix.warmed(python_with(request.param)) as python:
        yield request.param, python


@pytest.mark.full
@pytest.mark.parametrize("name", TRIED)
def test_program_runs_with_another_release(name, other_release):
    version, python = other_release
    outcome = matrix.run(python, name, matrix.scripts()[name], 300)
    if name.startswith("train_fsdp") and version == "2.8.0":
        assert outcome.startswith(matrix.REFUSED)  # on a CPU
    else:
        assert outcome == matrix.OK


@pytest.mark.full
def test_program_that_needs_more_is_refused_by_a_real_older_release():
    name = "13_pipeline.py"
    outcome = matrix.run(python_with("2.8.0"), name, matrix.scripts()[name], 300)
    assert outcome == matrix.REFUSED


SUM_OR_MEAN = """
import os, sys
import torch
import torch.distributed as dist
rank, file = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
part = torch.zeros(1)
whole = torch.full((2,), 2.0 * rank)  # 0 and 2: the mean is 1, the sum 2
dist.reduce_scatter_tensor(part, whole, op=dist.ReduceOp.AVG)
print(part.item(), flush=True)
os._exit(0)
"""


@pytest.mark.full
@pytest.mark.parametrize(("version", "result"), [("2.8.0", "2.0"), ("2.14.1", "1.0")])
def test_average_of_gloo_is_a_sum_in_old_releases(version, result, tmp_path):
    """Why SHARDED needs a newer release on a CPU, as setup.rst says."""
    command = [str(python_with(version)), "-W", "ignore", "-c", SUM_OR_MEAN]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "rendezvous")],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    # 2.8 also prints how gloo connects
    last = [rank.communicate(timeout=120)[0].splitlines()[-1] for rank in ranks]
    assert last == [result] * 2
