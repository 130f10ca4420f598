"""src/common/distributed.py: whole lines, and each thing said once."""

import os
import socket

import pytest
import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessExitedException

from common import distributed, launchers

LINE = "[node 0 local 1 rank 1] Epoch {number} | Batch size 32 | Steps 12"


@pytest.fixture
def joined(tmp_path):
    """A process group of one rank, this process."""
    store = f"file://{tmp_path}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_line_goes_out_in_one_piece(monkeypatch):
    """So that ranks which share an output cannot write into each other's lines."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, os.fdopen(os.dup(theirs.fileno()), "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        for number in range(3):
            distributed.log(LINE.format(number=number))
        # on such a socket, what was written in one piece is received in one piece
        pieces = [ours.recv(4096).decode() for _ in range(3)]
    assert pieces == [LINE.format(number=number) + "\n" for number in range(3)]


def test_process_that_has_joined_nobody_speaks_for_itself(capsys, monkeypatch):
    monkeypatch.setattr(launchers, "find_launcher", lambda environ: "python")
    assert distributed.is_rank_0()
    distributed.log("here")
    assert capsys.readouterr().out == "here\n"
    assert "rank" not in distributed.describe_world(torch.device("cpu"))


def fail_with(error):
    """A program that ends with this error."""

    @distributed.one_line_errors
    def main():
        raise error

    return main


ERRORS = [
    dist.DistBackendError("Duplicate GPU detected : rank 1 and rank 0 both on cuda:0"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    OverflowError("int too large to convert"),
    TypeError("overflow"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_of_the_program_is_what_the_reader_sees(error, monkeypatch, tmp_path):
    """And torchrun gets it, too, in the file that it names in its report."""
    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
    with pytest.raises(type(error)) as seen:
        fail_with(error)()
    assert seen.value is error
    assert str(error) in file.read_text(encoding="utf-8")


def test_bad_input_is_one_line_and_no_error_of_the_program(
    monkeypatch, tmp_path, capfd
):
    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
    monkeypatch.setattr("sys.argv", ["src/program.py"])
    with pytest.raises(SystemExit) as ended:
        fail_with(distributed.BadInput("--steps 0: choose more"))()
    assert ended.value.code == 2
    assert capfd.readouterr().err == "program.py: error: --steps 0: choose more\n"
    assert not file.exists()


def test_rank_that_refuses_alone_says_so_after_a_while(monkeypatch, capsys):
    waits = []
    monkeypatch.setattr(distributed.time, "sleep", waits.append)
    monkeypatch.setattr(distributed, "is_rank_0", lambda: False)
    with pytest.raises(SystemExit):
        distributed.refuse("local rank 1 has no cuda device")
    assert waits == [distributed.RANK_0_SPEAKS_S]
    assert "local rank 1 has no cuda device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "expected"), [(2, SystemExit), (1, ProcessExitedException)]
)
def test_rank_of_spawn_that_has_refused_is_not_reported_again(status, expected):
    words = f"process 1 terminated with exit code {status}"
    error = ProcessExitedException(words, 1, 4711, status)
    with pytest.raises(expected):
        fail_with(error)()


@pytest.mark.parametrize("text", ["2147483648", "1" + 22 * "0"])
def test_number_that_no_run_has_is_too_large(text):
    assert distributed.positive_int("2147483647") == 2**31 - 1
    with pytest.raises(distributed.BadInput, match="is too large: choose at most"):
        distributed.positive_int(text)


def test_rank_says_which_of_how_many_it_is(joined, monkeypatch, capsys):
    told = distributed.describe_world(torch.device("cpu"))
    assert told.startswith("1 ranks, each on CPU") and told.endswith("backend gloo")
    monkeypatch.setattr(dist, "get_rank", lambda: 2)
    distributed.log("nobody hears this")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("launcher", launchers.VARIABLES)
def test_first_rank_of_any_launcher_speaks_for_all(launcher, monkeypatch):
    monkeypatch.setattr(launchers, "find_launcher", lambda environ: launcher)
    name = launchers.VARIABLES[launcher]["rank"]
    monkeypatch.setenv(name, "1")
    assert not distributed.is_rank_0()
    monkeypatch.setenv(name, "0")
    assert distributed.is_rank_0()


def test_no_two_ranks_or_epochs_share_a_seed(monkeypatch):
    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    seeds = []
    for epoch in range(4):
        for rank in range(3):
            monkeypatch.setattr(dist, "get_rank", lambda rank=rank: rank)
            seeds.append(distributed.rank_seed(5, epoch))
    assert seeds == list(range(5, 17))  # what the recorded transcripts were made with
    distributed.seed_rank(5, 3)
    assert torch.initial_seed() == 16


def test_settling_buckets_leaves_no_trace(joined):
    """No random number is drawn, no gradient stays, dropout is on again."""
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    ddp_model = torch.nn.parallel.DistributedDataParallel(model)
    ddp_model.train()
    before = torch.get_rng_state()
    distributed.settle_buckets(ddp_model, torch.ones(1, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert ddp_model.training and model[0].training
