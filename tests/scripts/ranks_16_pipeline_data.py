"""Stages of a byte GPT on a grid of ranks: each function runs in every rank.

test_16_pipeline_data.py has them run by the grader's engine.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss

pipeline_data = import_module("16_pipeline_data")
CPU = torch.device("cpu")
GRIDS = {4: [(2, 2)], 6: [(3, 2), (2, 3)]}  # stages x data
CONTEXT, BATCH = 5, 12


def arguments(stages, schedule="1f1b", micro_batches=2):
    return argparse.Namespace(
        stages=stages, schedule=schedule, micro_batches=micro_batches, batch_size=BATCH
    )


def make_gpt(args=None, device=CPU):
    """The same on every rank; no bias and no norm is left as it was made."""
    torch.manual_seed(7)
    model = ByteGPT(Sizes(12, 3, 3, CONTEXT))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.double()


pipeline_data.make_gpt = make_gpt


def batches(seed):
    """Inputs and targets [12, 5] of three steps."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        tokens = torch.randint(256, (BATCH, CONTEXT + 1), generator=generator)
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def alone(seed):
    """The losses of one process, and its parameters by the number of their layer."""
    model, losses = make_gpt(), []
    optimizer = sgd(model.parameters())
    for inputs, targets in batches(seed):
        optimizer.zero_grad()
        loss = next_byte_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.layers()


def built(args):
    mesh = pipeline_data.make_mesh(args, CPU)
    return mesh, pipeline_data.Pipeline(args, mesh)


def step(pipeline, mesh, inputs, targets):
    """This rank's share of the global loss, as the program's loop takes it."""
    parts = (pipeline_data.part_of(batch, mesh) for batch in (inputs, targets))
    return pipeline.step(*parts) / mesh["data"].size()


@pytest.mark.ranks(4, 6, limit=30)
def test_trains_like_one_process(rank, world_size, seed):
    """The shares of the loss add up to it, and so do all layers in the end."""
    losses, layers = alone(seed)
    for stages, data in GRIDS[world_size]:
        for schedule, parts in (("1f1b", BATCH // data), ("gpipe", 2)):
            args = arguments(stages, schedule, parts)
            mesh, pipeline = built(args)
            optimizer = sgd(pipeline.stage.parameters())
            for number, batch in enumerate(batches(seed)):
                optimizer.zero_grad()
                share = step(pipeline, mesh, *batch).double()
                optimizer.step()
                torch.distributed.all_reduce(share)
                what = f"loss {number} of {schedule} on {stages} x {data} ranks"
                expect.close(share, losses[number], what, atol=1e-7)
            place = mesh.get_local_rank("stage")
            span = pipeline_data.cut(make_gpt(), stages)[place]
            for layer, mine in zip(span, pipeline.stage, strict=True):
                for name, value in layers[layer].state_dict().items():
                    full = mine.state_dict()[name].full_tensor()
                    expect.close(full, value, f"{name} of layer {layer}, {schedule}")


def calls(ledger, word):
    return [row for row in ledger.rows if word in row.op]


@pytest.mark.ranks(4, limit=30)
def test_data_axis_sends_once_a_step_and_stages_each_micro_batch(rank, seed, ledger):
    """However many micro-batches: each layer is gathered and reduced once."""
    inputs, targets = next(batches(seed))
    for parts in (2, 3, 6):
        mesh, pipeline = built(arguments(2, micro_batches=parts))
        step(pipeline, mesh, inputs, targets)  # the first one also asks for shapes
        ledger.clear()
        step(pipeline, mesh, inputs, targets)
        layers = len(pipeline.stage)
        data = tuple(
            torch.distributed.get_process_group_ranks(mesh["data"].get_group())
        )
        assert data == ((0, 1), (2, 3))[rank // 2]
        for word in ("all_gather", "reduce_scatter"):
            found = calls(ledger, word)
            assert len(found) == layers, (word, parts, len(found))
            assert {row.group for row in found} == {data}
        sent = calls(ledger, "send")
        assert len(sent) == parts, ledger.ops()
        assert {row.peer for row in sent} == {(rank + 2) % 4}
