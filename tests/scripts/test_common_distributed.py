"""src/common/distributed.py: whole lines, and each thing said once."""

import os
import socket

import pytest
import torch
import torch.distributed as dist

from common import distributed

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
    for name in distributed.RANK:
        monkeypatch.delenv(name, raising=False)
    assert distributed.is_rank_0()
    distributed.log("here")
    assert capsys.readouterr().out == "here\n"
    assert "rank" not in distributed.describe_world(torch.device("cpu"))


def test_error_of_nccl_is_not_called_a_wrong_address():
    """As NCCL words it (init.cc); gloo and the CPU have no such error."""

    @distributed.one_line_errors()
    def connect():
        seen = "socketStartConnect: Connect to 10.0.0.1<50123> failed"
        raise dist.DistBackendError(f"NCCL error ...\nLast error:\n{seen}")

    with pytest.raises(dist.DistBackendError, match="socketStartConnect"):
        connect()


def test_rank_says_which_of_how_many_it_is(joined, monkeypatch, capsys):
    told = distributed.describe_world(torch.device("cpu"))
    assert told.startswith("1 ranks, each on CPU") and told.endswith("backend gloo")
    monkeypatch.setattr(dist, "get_rank", lambda: 2)
    distributed.log("nobody hears this")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"])
def test_first_rank_of_any_launcher_speaks_for_all(name, monkeypatch):
    for other in distributed.RANK:
        monkeypatch.delenv(other, raising=False)
    assert distributed.is_rank_0()
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
