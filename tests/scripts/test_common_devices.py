"""src/common/distributed.py: which device a rank computes on."""

import types

import pytest
import torch
import torch.distributed as dist

from common import distributed, process_group


def pretend_accelerators(monkeypatch, kind, count):
    chosen = []
    fake = types.SimpleNamespace(
        is_available=lambda: True,
        current_accelerator=lambda: torch.device(kind),
        device_count=lambda: count,
        set_device_index=chosen.append,
    )
    monkeypatch.setattr(torch, "accelerator", fake)
    return chosen


def test_device_is_numbered_by_the_local_rank(monkeypatch):
    chosen = pretend_accelerators(monkeypatch, "cuda", 4)
    device = distributed.choose_device(3)
    assert (str(device), chosen) == ("cuda:3", [3])
    assert dist.get_default_backend_for_device(device) == "nccl"


def test_more_processes_than_devices_are_refused(monkeypatch):
    pretend_accelerators(monkeypatch, "cuda", 2)
    with pytest.raises(distributed.BadInput, match="as this machine has 2"):
        distributed.choose_device(2)


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_process_that_sees_only_its_own_device_takes_it(launcher, monkeypatch):
    """srun --gpu-bind=single:1 does that; torchrun shows all processes the same."""
    chosen = pretend_accelerators(monkeypatch, "cuda", 1)
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "2")
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    if launcher == "torchrun":
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
        with pytest.raises(distributed.BadInput, match="as this machine has 1"):
            distributed.choose_device(1)
    else:
        assert str(distributed.choose_device(1)) == "cuda:0" and chosen == [0]


@pytest.mark.parametrize("gpus", [None, "1"])
def test_two_tasks_that_see_the_same_device_are_refused(gpus, monkeypatch):
    """Slurm gave this node fewer devices than tasks: the second task has none."""
    chosen = pretend_accelerators(monkeypatch, "cuda", 1)
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # a line of the job script
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.delenv("SLURM_GPUS_ON_NODE", raising=False)
    if gpus:
        monkeypatch.setenv("SLURM_GPUS_ON_NODE", gpus)
    assert str(distributed.choose_device(0)) == "cuda:0"
    with pytest.raises(distributed.BadInput, match="local rank 1 has no cuda device"):
        distributed.choose_device(1)
    assert chosen == [0]


def test_ranks_share_devices_where_a_test_asks_for_it(monkeypatch):
    """Rank 3 of two devices gets the second; without the variable, none."""
    chosen = pretend_accelerators(monkeypatch, "cuda", 2)
    monkeypatch.setenv(distributed.SHARE, "1")
    devices = [str(distributed.choose_device(rank)) for rank in range(4)]
    assert devices == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert chosen == [0, 1, 0, 1]
    monkeypatch.setenv(distributed.SHARE, "0")
    with pytest.raises(distributed.BadInput, match="local rank 3 has no cuda device"):
        distributed.choose_device(3)


def test_two_tasks_with_the_same_of_two_devices_are_refused(monkeypatch):
    """Each looks like a task that srun shows its own device; its uuid tells."""
    pretend_accelerators(monkeypatch, "cuda", 1)
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # a line of the job script
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "2")
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)

    first, second = map(distributed.choose_device, (0, 1))
    assert first == second
    card = types.SimpleNamespace(uuid="GPU-1")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    store = dist.HashStore()
    process_group.refuse_shared_device(store, first)
    with pytest.raises(distributed.BadInput, match=r"same cuda device \(.*DEVICES=0\)"):
        process_group.refuse_shared_device(store, second)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")  # the store may stay
    process_group.refuse_shared_device(store, first)


def test_without_accelerators_the_cpu_is_used(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    device = distributed.choose_device(7)
    assert device == torch.device("cpu")
    assert dist.get_default_backend_for_device(device) == "gloo"
    assert "CPU" in distributed.describe_world(device)


def test_a_process_on_the_cpu_takes_one_core(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        distributed.choose_device()
        assert torch.get_num_threads() == 2
        monkeypatch.delenv("OMP_NUM_THREADS")
        distributed.choose_device()
        assert torch.get_num_threads() == 1
        assert distributed.describe_world(torch.device("cpu")) == "CPU, 1 thread"
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("allowed", ["", "WORKSHOP_CPU", "WORKSHOP_CLUSTER"])
def test_job_whose_gpus_cannot_be_used_ends_unless_that_is_allowed(
    allowed, monkeypatch
):
    for name in ("WORKSHOP_CPU", "WORKSHOP_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(distributed, "count_accelerators", lambda: 0)
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "0")
    assert distributed.choose_device().type == "cpu"
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "8")
    if allowed:
        monkeypatch.setenv(allowed, "1")
        assert distributed.choose_device().type == "cpu"
    else:
        with pytest.raises(distributed.BadInput, match=r"the job has GPUs .*=8"):
            distributed.choose_device()
