"""src/common/process_group.py: how a rank joins the others."""

from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from common import distributed, process_group

A_MINUTE = timedelta(minutes=1)


def test_rank_that_is_alone_joins_by_a_store(monkeypatch):
    monkeypatch.setattr(distributed, "count_accelerators", lambda: 0)
    device = process_group.join(0, rank=0, world_size=1, store=dist.HashStore())
    try:
        assert device == torch.device("cpu")
        assert (dist.get_backend(), dist.get_world_size()) == ("gloo", 1)
    finally:
        dist.destroy_process_group()


@pytest.fixture
def given(monkeypatch):
    """What init_process_group is called with."""
    calls = {}

    def remember(backend, **how):
        calls.update(how, backend=backend)

    monkeypatch.setattr(dist, "init_process_group", remember)
    return calls


def test_group_on_an_accelerator_is_told_its_device(given, monkeypatch):
    """NCCL then connects at once, to the device of the local rank."""
    second = torch.device("cuda", 1)
    chosen = {1: second}
    monkeypatch.setattr(distributed, "choose_device", chosen.__getitem__)
    store, seen = dist.HashStore(), []
    monkeypatch.setattr(
        process_group, "rendezvous", lambda _, *who, timeout: iter([(store, *who)])
    )
    monkeypatch.setattr(
        process_group, "refuse_shared_device", lambda *what: seen.append(what)
    )
    joined = process_group.join(1, rank=5, world_size=8, timeout=A_MINUTE)
    assert joined == given["device_id"] == second
    assert seen == [(store, second)] and given["store"] is store
    assert (given["backend"], given["timeout"]) == ("nccl", A_MINUTE)
    assert (given["rank"], given["world_size"]) == (5, 8)


def test_ranks_that_share_a_device_join_by_gloo(given, monkeypatch):
    """NCCL refuses two ranks on one device."""
    only = torch.device("cuda", 0)
    monkeypatch.setattr(distributed, "choose_device", lambda local_rank: only)
    monkeypatch.setenv(distributed.SHARE, "1")
    assert process_group.join(1, rank=1, world_size=2) == only
    assert (given["backend"], given["device_id"]) == ("gloo", None)


@pytest.mark.parametrize("shared", ["1", "0"])
def test_messages_between_ranks_that_share_a_device_are_refused(shared, monkeypatch):
    monkeypatch.setenv(distributed.SHARE, shared)
    ranks = 2
    monkeypatch.setattr(dist, "get_world_size", lambda: ranks)
    process_group.refuse_messages_between_shared(torch.device("cpu"))
    gpu = torch.device("cuda", 0)
    if shared == "0":
        process_group.refuse_messages_between_shared(gpu)
        return
    with pytest.raises(distributed.BadInput, match="gloo can't send a tensor of cuda"):
        process_group.refuse_messages_between_shared(gpu)
    ranks = 1
    process_group.refuse_messages_between_shared(gpu)


def test_without_numbers_the_environment_says_them(given, monkeypatch):
    monkeypatch.setattr(distributed, "count_accelerators", lambda: 0)
    assert process_group.join(3) == torch.device("cpu")
    assert (given["rank"], given["world_size"]) == (-1, -1)
    assert (given["backend"], given["device_id"]) == ("gloo", None)


def test_too_few_accelerators_are_refused_before_ranks_connect(given, monkeypatch):
    def refuse(local_rank):
        raise distributed.BadInput(f"local rank {local_rank} has no device")

    monkeypatch.setattr(distributed, "choose_device", refuse)
    with pytest.raises(distributed.BadInput, match="local rank 2"):
        process_group.join(2)
    assert not given


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (dist.DistNetworkError, distributed.BadInput),
        (dist.DistStoreError, distributed.BadInput),
        (dist.DistBackendError, dist.DistBackendError),
    ],
)
def test_only_a_missing_connection_is_called_a_wrong_address(
    error, expected, monkeypatch
):
    """NCCL's errors name their cause, and a wrong one would send readers astray."""

    def fail(backend, **how):
        raise error("The client socket has timed out\nmore")

    monkeypatch.setattr(distributed, "count_accelerators", lambda: 0)
    monkeypatch.setattr(dist, "init_process_group", fail)
    with pytest.raises(expected, match="The client socket has timed out") as seen:
        process_group.join(0)
    if expected is distributed.BadInput:
        assert str(seen.value).startswith("are MASTER_ADDR and MASTER_PORT right?")


@pytest.mark.parametrize("size", [None, "1"])
def test_one_rank_has_no_partner(size, given, monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if size:
        monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(distributed.BadInput, match="3_collectives"):
        process_group.join_partners("03_collectives.py")
    assert not given
