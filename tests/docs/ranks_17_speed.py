"""What docs/lessons/17_speed.rst says about ranks; test_claims_17_speed.py runs it."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

from grader import expect


def layer():
    torch.manual_seed(0)
    return nn.Linear(6, 6)


@pytest.mark.ranks(3)
def test_forward_decides_whether_backward_reduces(rank, ledger):
    model = DDP(layer())
    for forward_local, calls in ((False, 1), (True, 0)):
        model.zero_grad()
        inputs = torch.full((1, 6), float(rank + 1))
        if forward_local:
            with model.no_sync():
                loss = model(inputs).sum()
        else:
            loss = model(inputs).sum()
        ledger.clear()
        with model.no_sync():
            loss.backward()
        expect.equal(ledger.count("all_reduce"), calls, "all-reduces")
    dist.barrier()


@pytest.mark.ranks(2)
def test_bf16_hook_refuses_gloo(rank):
    with pytest.raises(TypeError, match="BF16"):
        DDP(layer()).register_comm_hook(None, bf16_compress_hook)


@pytest.mark.ranks(2)
def test_gradients_live_in_the_bucket_or_are_copied_from_it(rank):
    """With gradient_as_bucket_view, all gradients of a bucket share its memory."""
    for view in (True, False):
        model = DDP(layer(), gradient_as_bucket_view=view)
        model(torch.ones(1, 6)).sum().backward()
        places = {p.grad.untyped_storage().data_ptr() for p in model.parameters()}
        expect.equal(len(places), 1 if view else 2, "tensors that hold gradients")


@pytest.mark.ranks(2)
def test_static_graph_refuses_to_begin_with_no_sync(rank):
    model = DDP(layer(), static_graph=True)
    with pytest.raises(RuntimeError):
        with model.no_sync():
            model(torch.ones(1, 6)).sum().backward()
        model(torch.ones(1, 6)).sum().backward()


@pytest.mark.ranks(3)
def test_fsdp_skips_on_all_ranks_if_one_shard_is_not_finite(rank):
    model = fully_shard(layer())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 6)).sum()).backward()
    before = [p.to_local().detach().clone() for p in model.parameters()]
    if rank == 1:  # only this rank's own shard
        model.weight.grad.to_local().fill_(float("inf"))
    scaler.step(optimizer)
    scale = scaler.get_scale()
    scaler.update()
    expect.equal(scaler.get_scale(), scale / 2, "the scale")
    for old, new in zip(before, model.parameters(), strict=True):
        expect.unchanged(new.to_local().detach(), old, "a shard after a skipped step")
