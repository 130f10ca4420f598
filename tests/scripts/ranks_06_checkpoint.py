"""src/common/snapshot.py in ranks: what rank 0 has read reaches every rank.

Each function runs in every rank; test_06_snapshot_files.py has them run.
"""

import pickle
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common import snapshot


def content():
    """One of each kind of thing that a snapshot holds, and two large tensors."""
    model = torch.nn.Linear(300, 300)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.8, 0.9))
    model(torch.ones(1, 300)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": [torch.get_rng_state(), None],
        "mask": torch.tensor([True, False]),
        "half": torch.tensor([[1.5], [2.5]], dtype=torch.bfloat16),
        "steps_run": 3,
    }


def same(found, expected, what):
    expect.equal(type(found) is type(expected), True, f"the type of {what}")
    if isinstance(expected, dict):
        expect.equal(list(found), list(expected), f"the names in {what}")
        for key, value in expected.items():
            same(found[key], value, f"{what}, {key}")
    elif isinstance(expected, (list, tuple)):
        for number, value in enumerate(expected):
            same(found[number], value, f"{what}, number {number}")
    else:
        expect.equal(found, expected, what)


@pytest.mark.ranks(2, 3)
def test_all_ranks_get_what_rank_0_has_read(rank, world_size, seed, shared_dir):
    """Bit for bit, although only rank 0 sees the file; pickles hold no numbers."""
    torch.manual_seed(seed)
    written, path = content(), shared_dir / "snapshot.pt"
    if rank == 0:
        snapshot.write_snapshot(written, path)
    pickled, send = [], dist.broadcast_object_list

    def watched(objects, **options):
        pickled.append(len(pickle.dumps(objects)))
        send(objects, **options)

    dist.broadcast_object_list = watched
    try:
        found = snapshot.read_for_all(path if rank == 0 else Path("not_there.pt"))
    finally:
        dist.broadcast_object_list = send
    same(found, dict(written, model=dict(written["model"])), "the snapshot")
    expect.that(max(pickled) < 20_000, f"pickled: {pickled} bytes")


@pytest.mark.ranks(2)
def test_no_file_is_none_on_all_ranks(rank, world_size, seed):
    expect.equal(snapshot.read_for_all(Path("not_there.pt")) is None, True, "nothing")
