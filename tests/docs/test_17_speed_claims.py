"""What docs/lessons/17_speed says, tried out.

What its programs count is in tests/scripts/test_17_speed.py.
"""

import re
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

from tests.docs.pages import lesson_source
from tests.in_ranks import assert_right, every_check_in

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"
PAGE = " ".join(lesson_source("17_speed").split())

sys.path.insert(0, str(HERE.parent.parent / "src"))
from common.byte_gpt import ByteGPT, Sizes  # noqa: E402


@pytest.mark.nightly
@every_check_in(HERE / "ranks_17_speed.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


def rows(transcript):
    """Option -> the numbers behind it, of a recorded table."""
    text = (DOCS / "transcripts" / f"{transcript}.txt").read_text()
    found = re.findall(r"^([a-z][a-z0-9-]+) +([\d.]+ .*)$", text, re.M)
    return {name: [float(number) for number in rest.split()] for name, rest in found}


def test_numbers_of_the_first_paragraph_are_the_recorded_ones():
    table = rows("17_ranks")
    first, last = table["nothing"], table["fp16-hook"]
    assert f"calls {first[2]:.0f} :term:`all-reduces" in PAGE
    assert f"{first[3]} MB where {last[3]} MB is enough" in PAGE
    assert last[2] == 1 and table["no-sync"][2] == 7


def test_cpus_counter_leaves_out_the_products_inside_attention():
    """16 pieces of 64 tokens; each weight multiplies a token in three products."""
    sizes = Sizes(context=64)
    with FlopCounterMode(display=False) as counter:
        ByteGPT(sizes)(torch.zeros(16, 64, dtype=torch.long)).sum().backward()
    weights = 12 * sizes.width**2 * sizes.blocks + 256 * sizes.width
    linear = 3 * 16 * 64 * 2 * weights
    assert counter.get_total_flops() == linear
    assert f"{linear / 1e9:.2f}" == str(rows("17_ranks")["nothing"][5])
    inside = 3 * 16 * sizes.blocks * 2 * (2 * 64 * 64 * sizes.width)
    more = f"{inside / linear:.0%}".replace("%", " %")
    assert f"two products inside attention, which would add {more} here" in PAGE


def test_only_the_older_fsdp_has_no_sync():
    assert hasattr(FullyShardedDataParallel, "no_sync")
    assert not hasattr(FSDPModule, "no_sync")
    assert hasattr(FSDPModule, "set_requires_gradient_sync")
    only = "only the older ``FullyShardedDataParallel`` has one"
    assert f"``fully_shard`` has no ``no_sync()``; {only}." in PAGE


def test_work_of_checkpointing_grows_by_a_fifth():
    table = rows("17_alone")
    before, after = table["nothing"], table["checkpoint"]
    more = 100 * after[5] / before[5] - 100
    assert f"forward saves - {before[4]} MB - {after[4]} MB" in PAGE
    assert f"step - {before[5]} GFLOP - {after[5]} GFLOP, {more:.0f} % more" in PAGE


def test_workers_pay_in_the_recorded_run():
    """A step is 16 pieces."""
    table = rows("17_alone")
    without, with_them = (16e3 / table[name][0] for name in ("nothing", "workers"))
    assert f"takes {without:.0f} ms, and with them {with_them:.0f} ms" in PAGE
    assert table["workers"][1] > 1
    assert table["checkpoint"][1] < table["workers"][1]  # it "makes a step slower"


def test_compiling_gained_nothing_in_the_recorded_run():
    text = (DOCS / "transcripts" / "17_compile.txt").read_text()
    speeds = dict(re.findall(r"^(one-bucket|compile) +[\d.]+ +([\d.]+) ", text, re.M))
    assert "On these two CPU cores, our small model gains nothing:" in PAGE
    assert float(speeds["compile"]) < 1.1 * float(speeds["one-bucket"])
    assert "not counted" in text


def test_16_bits_save_less_and_send_the_same():
    table = rows("17_bits")  # of each name, the last row
    assert table["fp16"][4] == table["bf16"][4] < table["nothing"][4]
    saved = f"saves {table['fp16'][4]} MB for backward instead of {table['nothing'][4]}"
    assert f"{saved}. DDP still sends {table['fp16'][3]} MB" in PAGE
    assert max(table["fp16"][1], table["bf16"][1]) < 1  # the ratio of speeds


def test_power_sgd_sends_two_vectors_for_a_matrix_and_feedback_halves_the_error():
    text = (DOCS / "transcripts" / "17_power_sgd.txt").read_text()
    sizes = re.findall(r"feedback: ([\d,]+) numbers, (\d+) are sent", text)
    assert sizes == 2 * [(f"{2 * (64 * 64 + 64):,}", str(2 * (64 + 64 + 64)))]
    errors = re.findall(r"wrong by (\d+)% in one step, (\d+)% in the mean of 20", text)
    (one, without), (same, feedback) = errors
    assert one == same and f"In one step, the result is {one} % off" in PAGE
    assert 0.4 < int(feedback) / int(without) < 0.6
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        PowerSGDState(None, start_powerSGD_iter=1)


def test_smallest_gradient_of_float16():
    """Below 2^-25 they become 0; bfloat16 has the range of 32 bits."""
    assert r"below about :math:`3 \cdot 10^{-8}` become 0" in PAGE
    assert torch.tensor(3.0e-8).half() > 0 and torch.tensor(2.9e-8).half() == 0
    assert torch.finfo(torch.bfloat16).tiny == torch.finfo(torch.float32).tiny


def test_each_worker_keeps_two_batches_ready_by_default():
    assert "Each keeps ``prefetch_factor`` batches ready, two by default." in PAGE
    assert DataLoader([0], num_workers=1).prefetch_factor == 2


def flops(early_stop):
    """Of forward and backward of a checkpointed MLP."""
    block = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
    inputs = torch.ones(2, 4, requires_grad=True)
    with (
        FlopCounterMode(display=False) as counter,
        set_checkpoint_early_stop(early_stop),
    ):
        checkpoint(block, inputs, use_reentrant=False).sum().backward()
    return counter.get_total_flops()


def test_second_forward_stops_at_the_last_tensor_that_backward_needs():
    """The last of two equal products isn't computed again."""
    product = 2 * 2 * 4 * 16
    assert (flops(False), flops(True)) == (8 * product, 7 * product)


def test_code_of_equal_blocks_is_compiled_once():
    compiled = []

    def backend(graph, _inputs):
        compiled.append(graph)
        return graph.forward

    model = ByteGPT(Sizes())
    for block in model.blocks:
        block.compile(backend=backend)
    model(torch.zeros(1, Sizes().context, dtype=torch.long))
    assert len(compiled) == 1 < len(model.blocks)


class CalledTwice(nn.Module):
    """Checkpoints its second layer twice."""

    def __init__(self, reentrant):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.reentrant = reentrant

    def forward(self, x):
        x = checkpoint(self.second, self.first(x), use_reentrant=self.reentrant)
        return checkpoint(self.second, x, use_reentrant=self.reentrant)


def test_ddp_refuses_reentrant_checkpoints_of_a_block_that_is_called_twice(tmp_path):
    store = f"file://{tmp_path}/store"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    models = [DistributedDataParallel(CalledTwice(way)) for way in (False, True)]
    models[0](torch.ones(1, 6)).sum().backward()
    with pytest.raises(RuntimeError, match="mark a variable ready only once"):
        models[1](torch.ones(1, 6)).sum().backward()
    del models
    dist.destroy_process_group()
