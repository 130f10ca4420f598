"""src/03_ring_all_reduce.py: the sums, the bytes, and what it refuses."""

from pathlib import Path

import pytest

from tests.launched import STANDALONE, run

ROOT = Path(__file__).resolve().parents[2]

COMPARE = """
import sys
sys.path.insert(0, {src!r})
import torch, torch.distributed as dist
from importlib import import_module
ring_all_reduce = import_module("03_ring_all_reduce").ring_all_reduce

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
sent = 0
for shape in [(1,), (2,), (7,), (12,), (5, 3), (3, 2, 4), (1001,)]:
    for dtype in (torch.float64, torch.int64):
        generator = torch.Generator().manual_seed(31 * rank + len(shape))
        tensor = (100 * torch.randn(*shape, generator=generator).double()).to(dtype)
        expected, mine = tensor.clone(), tensor.clone()
        dist.all_reduce(expected)
        formula = 2 * (world_size - 1) / world_size * tensor.nbytes
        sent += ring_all_reduce(mine) - formula
        torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10)
        assert not torch.equal(mine, tensor)
# more on one rank is less on another: over all ranks it is the formula
total = torch.tensor([float(sent)])
dist.all_reduce(total)
assert abs(total.item()) < 1e-3, total
try:
    ring_all_reduce(torch.zeros(4, 4).t()[:, 1:])
    raise SystemExit("a view that is not contiguous was accepted")
except ValueError as error:
    assert "contiguous" in str(error)
print("all right")
dist.destroy_process_group()
"""


def torchrun(world_size, *command):
    return run(ROOT, [*STANDALONE, f"--nproc-per-node={world_size}", *command])


@pytest.mark.parametrize("world_size", [3, pytest.param(4, marks=pytest.mark.full)])
def test_ring_equals_all_reduce_for_every_shape_and_dtype(world_size, tmp_path):
    script = tmp_path / "compare.py"
    script.write_text(COMPARE.format(src=str(ROOT / "src")))
    done = torchrun(world_size, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all right") == world_size


def test_bytes_sent_equal_the_formula_where_ranks_do_not_divide_the_size():
    sizes = [1, 10, 999, 1000]
    done = torchrun(3, "src/03_ring_all_reduce.py", "--repeats=1", "--sizes", *sizes)
    assert done.returncode == 0, done.stderr
    rows = [line.replace(",", "").split() for line in done.stdout.splitlines()[2:]]
    assert [int(row[0]) for row in rows] == sizes
    for elements, size_in_bytes, sent, formula, *times in rows:
        assert int(size_in_bytes) == 4 * int(elements)
        assert sent == formula == f"{2 * 2 / 3 * int(size_in_bytes):.1f}"
        assert len(times) == 3 and all(float(time) >= 0 for time in times)
