"""src/16_pipeline_data.py: stages and shards give what one process gives."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.distributed import BadInput
from tests.in_ranks import assert_right, every_check_in

HERE = Path(__file__).resolve().parent
pipeline_data = import_module("16_pipeline_data")


@every_check_in(HERE / "ranks_16_pipeline_data.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


@pytest.mark.parametrize(
    ("stages", "batch_size", "parts", "words"),
    [
        (3, 16, 8, "--stages 3 does not divide a world of 2: start a multiple of 3"),
        (2, 12, 8, "--batch-size 12 cannot be divided among 8 data ranks x"),
        (2, 16, 1, "--micro-batches 1 is fewer than the 2 stages, which 1f1b refuses"),
    ],
)
def test_grid_that_cannot_work(stages, batch_size, parts, words, monkeypatch):
    monkeypatch.setattr(pipeline_data.dist, "get_world_size", lambda: 2)
    sizes = {"stages": stages, "batch_size": batch_size, "micro_batches": parts}
    with pytest.raises(BadInput) as refused:
        pipeline_data.make_mesh(SimpleNamespace(schedule="1f1b", **sizes), None)
    assert words in str(refused.value)
