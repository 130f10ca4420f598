"""src/08_multinode_torchrun.py under torchrun on 1, 2 and 3 ranks, and on two nodes."""

import json
import math
import re
import sys
from pathlib import Path

import pytest
import torch

from tests.launched import TORCHRUN, finish, free_port, start
from tests.scripts.trainings import SMALL, read

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
SCRIPT = [str(SRC / "08_multinode_torchrun.py"), *SMALL]
EPOCH = re.compile(
    r"^\[node (\d+) local (\d+) rank (\d+)\] "
    r"Epoch (\d+) \| Batch size (\d+) \| Steps (\d+)$",
    re.M,
)
# Runs the script and looks, on every rank, at what one rank's output cannot tell.
OBSERVER = f"""
import glob, sys
sys.path.insert(0, {str(SRC)!r})
import torch, torch.distributed as dist
from importlib import import_module
program = import_module("08_multinode_torchrun")

def threads():
    names = [open(f).read() for f in glob.glob("/proc/self/task/*/comm")]
    return sum("gloo" in name for name in names)

def report(run, model, test_set):
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (weights, run.losses))
    same = all(torch.equal(weights, w) and run.losses == l for w, l in everyone)
    line = f"rank {{dist.get_rank()}} same={{same}} threads={{threads()}}"
    program.distributed.log(line, every_rank=True)

program.data.report = report
program.main()
program.distributed.log(f"after the end threads={{threads()}}", every_rank=True)
"""


def torchrun(folder, ranks, *arguments):
    options = ["--standalone", f"--nproc-per-node={ranks}"]
    return finish(start(folder, [*TORCHRUN, *options, *arguments]))


FULL = pytest.mark.full
# in the short `make test` two agents train with two ranks each, below
RANKS = [pytest.param(number, marks=FULL) for number in (1, 2, 3)]


@pytest.fixture(scope="module", params=RANKS)
def run(request, tmp_path_factory):
    """(ranks, folder, process) of 8 epochs, with a snapshot every 4."""
    folder = tmp_path_factory.mktemp(f"ranks{request.param}")
    options = ["--batch-size", 16, "--metrics", "metrics.json"]
    process = torchrun(folder, request.param, *SCRIPT, 8, 4, *options)
    assert process.returncode == 0, process.stderr
    return request.param, folder, process


def test_every_rank_prints_each_epoch(run):
    ranks, _, process = run
    share = math.ceil(1438 / ranks)
    steps = math.ceil(share / 16)
    expected = {
        ("0", str(rank), str(rank), str(epoch), "16", str(steps))
        for rank in range(ranks)
        for epoch in range(8)
    }
    lines = EPOCH.findall(process.stdout)
    assert set(lines) == expected and len(lines) == len(expected)


def test_training_learns_the_digits(run):
    ranks, folder, process = run
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.93
    first, last = re.search(r"Loss ([\d.]+) -> ([\d.]+)", process.stdout).groups()
    assert float(last) < 0.5 * float(first)
    assert metrics["world_size"] == ranks and metrics["epochs"] == 8
    assert metrics["samples_per_s"] > 0


def test_accuracy_is_exact_in_spite_of_padding(run):
    _, folder, process = run
    sys.path.insert(0, str(SRC))
    from common import data

    model = data.make_model()
    model.load_state_dict(read(folder / "snapshot.pt")["model"])
    expected = data.count_correct(model, data.load_digits_split()[1])
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["correct"], metrics["total"]) == expected
    assert metrics["total"] == 359
    assert process.stdout.count("Test accuracy") == 1


def test_only_rank_0_writes_the_snapshot(run):
    _, folder, process = run
    snapshots = ["snapshot.pt", "snapshot.pt.previous"]
    assert sorted(p.name for p in folder.iterdir()) == ["metrics.json", *snapshots]
    assert process.stdout.count("Snapshot of") == 2
    assert [read(folder / name)["epochs_run"] for name in snapshots] == [8, 4]
    snapshot = read(folder / "snapshot.pt")
    assert not [key for key in snapshot["model"] if key.startswith("module.")]


@pytest.mark.full
@pytest.mark.parametrize("ranks", [3])
def test_ranks_hold_equal_weights_and_the_process_group_ends(ranks, tmp_path):
    """Threads that outlive the process group now and then abort a rank."""
    (tmp_path / "observer.py").write_text(OBSERVER)
    process = torchrun(tmp_path, ranks, "observer.py", *SMALL, 2, 5)
    assert process.returncode == 0, process.stderr
    during = re.findall(r"rank (\d) same=(\w+) threads=(\d+)", process.stdout)
    assert sorted((rank, same) for rank, same, _ in during) == [
        (str(rank), "True") for rank in range(ranks)
    ]
    assert all(int(threads) > 0 for _, _, threads in during), "names have changed"
    after = re.findall(r"after the end threads=(\d+)", process.stdout)
    assert after == ["0"] * ranks


@pytest.mark.nightly
@pytest.mark.parametrize("run", [3], indirect=True)
def test_resumed_run_equals_uninterrupted_run(run, tmp_path):
    ranks, folder, _ = run
    options = ["--batch-size", 16]
    assert torchrun(tmp_path, ranks, *SCRIPT, 4, 4, *options).returncode == 0
    process = torchrun(tmp_path, ranks, *SCRIPT, 8, 4, *options)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("Resuming from snapshot.pt") == 1
    whole, resumed = read(folder / "snapshot.pt"), read(tmp_path / "snapshot.pt")
    for key, value in whole["model"].items():
        assert torch.equal(resumed["model"][key], value), key


def test_two_nodes_on_one_machine(tmp_path):
    """Two agents that find each other; node 1 need not see the snapshot."""
    options = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-id=test"]
    options += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    command = [*TORCHRUN, *options, "--local-addr=127.0.0.1", *SCRIPT, 2, 1]
    agents = [start(folder, command) for folder in folders]
    done = [finish(agent) for agent in agents]
    assert [process.returncode for process in done] == [0, 0], done[0].stderr
    lines = EPOCH.findall("".join(process.stdout for process in done))
    places = {(int(node), int(local), int(rank)) for node, local, rank, *_ in lines}
    assert places == {(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)}
    assert {steps for *_, steps in lines} == {"12"}
    written = [path.name for folder in folders for path in folder.iterdir()]
    assert sorted(written) == ["snapshot.pt", "snapshot.pt.previous"]
    assert not all(list(folder.iterdir()) for folder in folders)


# -- bad input -----------------------------------------------------------------
def test_without_torchrun_it_says_how_to_start_it(tmp_path):
    process = finish(start(tmp_path, [sys.executable, *SCRIPT, 10, 5]))
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "use a launcher that does, such as torchrun" in process.stderr


@pytest.mark.parametrize("variable", ["GROUP_RANK", "LOCAL_RANK"])
def test_half_an_environment_is_refused(variable, tmp_path):
    names = dict.fromkeys(["RANK", "LOCAL_RANK", "GROUP_RANK"], "0")
    names |= dict.fromkeys(["WORLD_SIZE", "LOCAL_WORLD_SIZE"], "1")
    names["TORCHELASTIC_RUN_ID"] = "test"
    del names[variable]
    process = finish(start(tmp_path, [sys.executable, *SCRIPT, 10, 5], **names))
    assert process.returncode == 2 and f"{variable}='' is not a whole" in process.stderr


def test_damaged_snapshot_is_named_and_left_alone(tmp_path):
    (tmp_path / "snapshot.pt").write_bytes(b"damaged")
    process = torchrun(tmp_path, 2, *SCRIPT, 2, 1)
    assert process.returncode != 0
    said = [s for s in process.stderr.splitlines() if s.startswith("08_multinode_")]
    assert len(said) == 1 and "the snapshot snapshot.pt is damaged" in said[0]
    assert (tmp_path / "snapshot.pt").read_bytes() == b"damaged"
