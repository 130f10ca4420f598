"""Activation checkpointing, memory snapshots and the end of memory, on a GPU."""

import pickle
from dataclasses import asdict
from functools import partial

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.counting import FLOAT32, activations, head_activations
from common.cost.measure import Activations
from tests.gpu.results import write_numbers

TINY = Sizes(width=16, heads=2, blocks=3, context=8)
CPU = torch.device("cpu")
CLOSE = 0.25  # of the prediction: a GPU's attention saves more, in larger pieces


def gpt_on(device, sizes, recompute):
    torch.manual_seed(0)
    with torch.device(device):
        model = ByteGPT(sizes)
    save_input = partial(checkpoint, use_reentrant=False)
    for block in model.blocks if recompute else ():
        block.forward = lambda x, forward=block.forward: save_input(forward, x)
    return model


def predicted_bytes(sizes, batch, recompute):
    """What forward saves, in float32: all of it, or each block's input alone."""
    if not recompute:
        return activations(sizes, batch)
    inputs = FLOAT32 * sizes.blocks * batch * sizes.context * sizes.width
    return inputs + head_activations(sizes, batch)


def measured_bytes(device, sizes, batch, recompute):
    """(saved by forward, at the peak, loss, largest gradient) of one step in float32.

    On a GPU the allocator counts; on the CPU, hooks of autograd do, and no peak.
    """
    model = gpt_on(device, sizes, recompute)
    generator = torch.Generator().manual_seed(1)
    shape = batch, sizes.context
    tokens = torch.randint(BYTES, shape, generator=generator).to(device)
    targets = tokens.clone()
    on_gpu = device.type == "cuda"
    before = torch.cuda.memory_allocated() if on_gpu else 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with Activations(model) as saved:
        loss = next_byte_loss(model(tokens), targets)
        after = torch.cuda.memory_allocated() if on_gpu else saved.bytes
        loss.backward()
    peak = torch.cuda.max_memory_allocated() - before if on_gpu else 0
    gradient = max(p.grad.abs().max().item() for p in model.parameters())
    return {
        "saved": after - before,
        "hooks": saved.peak_bytes,
        "peak": peak,
        "loss": loss.item(),
        "gradient": gradient,
    }


def remember_or_recompute(device, sizes, batch):
    """Way -> predicted and measured bytes, loss and gradient."""
    found = {}
    for way, recompute in {"remember": False, "recompute": True}.items():
        measured = measured_bytes(device, sizes, batch, recompute)
        predicted = predicted_bytes(sizes, batch, recompute)
        found[way] = measured | {"predicted": predicted}
    return found


def table_of_memory(sizes, batch, found):
    of = f"{sizes.blocks} blocks of width {sizes.width}, batch {batch}"
    head = "            predicted MB   saved MB   at the peak MB"
    lines = [f"{of} x {sizes.context} tokens, float32", head]
    for way, one in found.items():
        megabytes = [one[what] / 1e6 for what in ("predicted", "saved", "peak")]
        lines.append("{:<10} {:13,.1f} {:10,.1f} {:16,.1f}".format(way, *megabytes))
    return lines


@pytest.mark.gpu
def test_memory_of_checkpointing_is_what_the_formula_says(gpu):
    sizes, batch = Sizes(width=1024, heads=16, blocks=12, context=512), 16
    found = remember_or_recompute(gpu, sizes, batch)
    table = table_of_memory(sizes, batch, found)
    numbers = {"sizes": asdict(sizes), "batch": batch, "ways": found}
    write_numbers("checkpointing", numbers, table)
    for way, one in found.items():
        assert one["saved"] == pytest.approx(one["predicted"], rel=CLOSE), way
    assert found["recompute"]["peak"] < found["remember"]["peak"]
    losses = [one["loss"] for one in found.values()]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_checkpointing_dry():
    """The CPU's numbers are exact; recomputing, backward saves a block once more."""
    found = remember_or_recompute(CPU, TINY, batch=2)
    assert found["remember"]["saved"] == found["remember"]["predicted"]
    assert found["recompute"]["saved"] == pytest.approx(
        found["recompute"]["predicted"], rel=0.05
    )
    for what in ("loss", "gradient"):
        assert found["remember"][what] == found["recompute"][what]
    rows = [line.split() for line in table_of_memory(TINY, 2, found)[2:]]
    assert [row[0] for row in rows] == ["remember", "recompute"]
    assert rows[0][1] == rows[0][2]


# A snapshot of the allocator


def largest_blocks(snapshot, most=3):
    """(bytes, the function of this file that asked) of the largest live blocks."""
    found = []
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                frames = block.get("frames", [])
                own = [f["name"] for f in frames if f["filename"].endswith(__file__)]
                found.append((block["size"], own[0] if own else "?"))
    return sorted(found, reverse=True)[:most]


def hold_64_mib(device):
    return torch.zeros(2**24, device=device)


@pytest.mark.gpu
def test_snapshot_of_the_allocator_names_who_asked(gpu, tmp_path):
    torch.cuda.memory._record_memory_history(max_entries=10_000)
    try:
        held = hold_64_mib(gpu)
        torch.cuda.memory._dump_snapshot(str(tmp_path / "memory.pickle"))
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    found = largest_blocks(pickle.loads((tmp_path / "memory.pickle").read_bytes()))
    write_numbers("memory_snapshot", found)
    assert (held.nbytes, "hold_64_mib") in found


def test_memory_snapshot_dry():
    """The form in which torch 2.13 writes one, by hand: only CUDA's allocator can."""
    live = {"size": 8, "state": "active_allocated"}
    ours = live | {"frames": [{"filename": __file__, "name": "hold_64_mib"}]}
    freed = {"size": 99, "state": "inactive", "frames": []}
    snapshot = {"segments": [{"blocks": [freed, ours]}, {"blocks": [live]}]}
    assert largest_blocks(snapshot) == [(8, "hold_64_mib"), (8, "?")]
    assert hold_64_mib(CPU).nbytes == 2**26
