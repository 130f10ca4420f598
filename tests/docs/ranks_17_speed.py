"""What docs/lessons/17_speed says about ranks; test_17_speed_claims.py runs it."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

from workshop.grader import expect


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


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, inputs):
        return self.layer(inputs).tanh()


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))

    def forward(self, inputs):
        for block in self.blocks:
            inputs = block(inputs)
        return inputs


@pytest.mark.ranks(2)
def test_compiling_ddp_cuts_the_graph_at_its_buckets(rank):
    """Three blocks of 1 MiB, a bucket for each: three graphs, or one for all."""
    for at_buckets in (True, False):
        graphs = []

        def backend(graph, inputs, graphs=graphs):
            graphs.append(graph)
            return graph.forward

        torch._dynamo.reset()
        with torch._dynamo.config.patch(optimize_ddp=at_buckets):
            model = torch.compile(DDP(Model(512), bucket_cap_mb=1), backend=backend)
            model(torch.ones(2, 512)).sum().backward()
        expect.equal(len(graphs), 3 if at_buckets else 1, "compiled graphs")


@pytest.mark.ranks(2)
def test_compiled_blocks_under_fsdp_have_the_gradient_of_uncompiled_ones(rank):
    gradients, compiled = [], []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    for compile_first in (False, True):
        model = Model(6)
        for block in model.blocks:
            if compile_first:
                block.compile(backend=backend)
            fully_shard(block)
        fully_shard(model)(torch.full((2, 6), rank + 1.0)).sum().backward()
        gradients.append([p.grad.full_tensor() for p in model.parameters()])
    expect.equal(bool(compiled), True, "a graph was compiled")
    for plain, other in zip(*gradients, strict=True):
        expect.close(other, plain, "a gradient of compiled blocks")
