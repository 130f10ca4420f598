"""Two ranks whose folders are not one: rank 0 decides from where a run goes on.

Nodes that don't share a disk, or a job that starts in a folder of each node, have a
snapshot in one place and none in the other. A rank that decided by itself would wait
for collectives that the others never call.
"""

import os
import shutil
import signal
import sys
from dataclasses import dataclass, field

import pytest
import torch

from tests.launched import finish, free_port, start
from tests.scripts.trainings import SMALL, SRC

DIGITS = [*SMALL, "--batch-size", "64"]
GPT = ["--width", "24", "--heads", "2", "--blocks", "1", "--context", "16"]
GPT += ["--save-every", "2"]
GRID = [*GPT, "--tensor-ranks", "1", "--checkpoints", "saved"]
LIMIT = 100  # seconds: a hang is the failure that these tests are about


def torchrun(rank):
    """What it sets, with one rank on each node."""
    return {
        "TORCHELASTIC_RUN_ID": "unshared",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "RANK": str(rank),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "1",
        "GROUP_RANK": str(rank),
    }


def srun(rank):
    return {
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": "0",
        "SLURM_NTASKS": "2",
        "SLURM_NODEID": str(rank),
        "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
    }


def by_hand(rank):
    return {"NODE_RANK": str(rank), "NNODES": "2"}


@dataclass
class Case:
    """A program that resumes, and how it is started on two nodes."""

    launcher: object
    first: list = field(default_factory=lambda: [*DIGITS, "1", "1"])
    more: list = field(default_factory=lambda: [*DIGITS, "2", "1"])
    saved: str = "snapshot.pt"
    resumed: str = "Resuming from"
    refused: str = ""  # on another node than rank 0's: each needs to see the folder


CASES = {
    "07_torchrun.py": Case(torchrun),
    "07_elastic.py": Case(torchrun, [], [], "elastic.pt", "Starting from step 95"),
    "08_multinode_spawn.py": Case(
        by_hand,
        [*DIGITS, "--nprocs", "1", "1", "1"],
        [*DIGITS, "--nprocs", "1", "2", "1"],
    ),
    "08_multinode_torchrun.py": Case(torchrun),
    "09_srun.py": Case(srun),
    "09_requeue.py": Case(srun),
    "15_fsdp.py": Case(torchrun, ["2", *GPT], ["4", *GPT], "15_fsdp.pt"),
    "16_fsdp_tensor_parallel.py": Case(
        torchrun, ["2", *GRID], ["4", *GRID], "saved", refused="is not seen on"
    ),
    "20_capstone.py": Case(
        torchrun, ["2", *GRID], ["4", *GRID], "saved", refused="is not seen on"
    ),
    "22_expert_parallel.py": Case(
        torchrun, ["2", *GPT], ["4", *GPT], "22_expert_parallel.pt"
    ),
    "23_diloco.py": Case(torchrun, ["2", *GPT], ["4", *GPT], "23_diloco.pt"),
}
# One of them in the short `make test`: the others take a minute or two.
NAMES = [
    pytest.param(name, marks=[] if name == "15_fsdp.py" else [pytest.mark.nightly])
    for name in CASES
]


def test_every_program_that_resumes_on_several_nodes_is_tried():
    """The others start all of their ranks themselves, in one folder."""
    resuming = {
        path.name
        for path in SRC.rglob("[0-9]*.py")
        for word in ("snapshot.Run(", "load_newest()", "load_snapshot(", "elastic.pt")
        if word in path.read_text(encoding="utf-8")
    }
    one_folder = {
        "01_single_device.py",
        "04_data_parallel.py",
        "05_ddp_spawn.py",
        "06_checkpoint.py",
        "13_train_gpt.py",
    }
    assert resuming - one_folder == CASES.keys()


def two_ranks(folders, name, case, arguments):
    """(status, output) of each rank, each in a folder of its own."""
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, SRC / name, *arguments]
    ranks = [
        start(folder, command, **meet, **case.launcher(rank))
        for rank, folder in enumerate(folders)
    ]
    try:
        done = [finish(rank, LIMIT) for rank in ranks]
    finally:
        for rank in ranks:
            if rank.poll() is None:  # it waits for the one that failed
                os.killpg(rank.pid, signal.SIGKILL)
    return [(rank.returncode, rank.stdout + rank.stderr) for rank in done]


def save_some(folders, name, case):
    """Leave a snapshot in the folder of rank 0."""
    if name == "07_elastic.py":  # else a test would wait for five seconds of steps
        state = {"weight": torch.ones(1, 4), "bias": torch.zeros(1)}
        torch.save({"model": state, "steps_run": 95}, folders[0] / case.saved)
        return
    for status, output in two_ranks(folders, name, case, case.first):
        assert status == 0, output
    shutil.rmtree(folders[1])
    folders[1].mkdir()


@pytest.mark.parametrize("name", NAMES)
def test_rank_0_decides_from_where_a_run_goes_on(name, tmp_path):
    case = CASES[name]
    folders = [tmp_path / "node_0", tmp_path / "node_1"]
    for folder in folders:
        folder.mkdir()
    save_some(folders, name, case)

    # the other way around, first: a snapshot that only rank 1 sees is none
    shutil.copytree(folders[0], tmp_path / "kept")
    folders[0].rename(tmp_path / "moved")
    shutil.rmtree(folders[1])
    (tmp_path / "moved").rename(folders[1])
    folders[0].mkdir()
    for status, output in two_ranks(folders, name, case, case.more):
        assert status == 0, output
        assert case.resumed not in output

    for folder in folders:
        shutil.rmtree(folder)
        folder.mkdir()
    shutil.copytree(tmp_path / "kept", folders[0], dirs_exist_ok=True)
    (first, said), (second, other) = two_ranks(folders, name, case, case.more)
    if case.refused:
        assert (first, second) == (2, 2), said + other
        assert case.refused in said
    else:
        assert (first, second) == (0, 0), said + other
        assert case.resumed in said
