"""What docs/lessons/15_sharded_data_parallel says, tried out.

What happens inside ranks is in ranks_15_sharded_data_parallel.py; the grader's engine
runs it. That the stages of ZeRO and FSDP give the weights of one process, and hold and
send what the formulas say, is in tests/scripts/ranks_15_zero.py and ranks_15_fsdp.py.
"""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch.distributed.fsdp import CPUOffloadPolicy

from tests.docs.pages import checked_page, lesson_source
from tests.in_ranks import assert_right, every_check_in
from tests.launched import left_over

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"

sys.path.insert(0, str(HERE.parent.parent / "src"))

from common.byte_gpt import Sizes  # noqa: E402
from common.cost.counting import block_parameters, model_parameters  # noqa: E402

cost = import_module("instruments.15_cost")
on_the_page = checked_page("15_sharded_data_parallel")
bytes_per_step, states_of_zero = cost.bytes_per_step, cost.states_of_zero


@pytest.mark.nightly
@every_check_in(HERE / "ranks_15_sharded_data_parallel.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


def test_bytes_of_the_stages():
    """16 P, 4 P + 12 P / N, 2 P + 14 P / N and 16 P / N."""
    p, n = 1200, 4
    totals = [
        states_of_zero(stage, n, p, mixed=True)["all three"] for stage in range(4)
    ]
    assert totals == [16 * p, 4 * p + 12 * p // n, 2 * p + 14 * p // n, 16 * p // n]
    sent = [bytes_per_step(stage, n, p, 1) for stage in range(4)]
    assert sent == [2 * p * 3 // 4] * 3 + [3 * p * 3 // 4]


def test_autocast_takes_sixteen_bytes_for_each_parameter_in_another_way():
    """4 + 4 + 8, so DDP sends gradients of 4 bytes instead of 2."""
    on_the_page("4 + 4 + 8 bytes instead: the same 16, but gradients of 32 bits")
    layer = torch.nn.Linear(8, 8, bias=False)
    optimizer = torch.optim.AdamW(layer.parameters())
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(torch.ones(1, 8))
    y.sum().backward()
    optimizer.step()
    state = optimizer.state[layer.weight]
    kept = [layer.weight, layer.weight.grad, state["exp_avg"], state["exp_avg_sq"]]
    assert y.dtype is torch.bfloat16
    assert [tensor.itemsize for tensor in kept] == [4, 4, 4, 4]
    on_the_page("so DDP sends twice the bytes below")
    p, n = 1200, 4
    assert bytes_per_step(0, n, p, 4) == 2 * bytes_per_step(0, n, p, 2)


def test_blocks_that_stay_whole_take_more_than_the_parameters_of_stage_0():
    """All parameters, and two blocks again: the gather's buffers."""
    on_the_page("its shards, and two of the gather's buffers: more than the parameters")
    text = (DOCS / "transcripts" / "15_fsdp_options.txt").read_text()
    kept = text.partition("--keep-whole")[2].partition("--mixed-precision")[0]
    counted = {
        name: int(re.search(rf"^{name} +([\d,]+) ", kept, re.M)[1].replace(",", ""))
        for name in ("parameters", "whole at once", "sent in a step")
    }
    sizes = Sizes()
    whole = model_parameters(sizes)
    assert counted["whole at once"] == 4 * (whole + 2 * block_parameters(sizes))
    stage_0 = states_of_zero(0, 4, whole)["parameters"]
    assert counted["whole at once"] + counted["parameters"] > stage_0
    on_the_page("That sends as little as stage 2.")
    assert counted["sent in a step"] == bytes_per_step(2, 4, whole, 4)


def test_cpu_offload_is_of_all_states_and_of_the_step():
    on_the_page("the shards of parameters, gradients and optimizer state on the CPU")
    words = " ".join(CPUOffloadPolicy.__doc__.split())
    assert "offloads parameters, gradients, and optimizer states to CPU" in words
    assert "copied host-to-device before all-gather" in words
    assert "the optimizer step runs on CPU" in words


def test_answer_about_seven_billion_parameters():
    """112 GB in stage 0; on 64 ranks 1.75 GB in stage 3, and 29.3 GB in stage 1."""
    p = 7 * 10**9
    total = [states_of_zero(s, 64, p, mixed=True)["all three"] / 1e9 for s in range(4)]
    assert [round(gigabytes, 2) for gigabytes in total] == [112, 29.31, 15.53, 1.75]


def test_formulas_give_the_numbers_of_the_paper():
    """Rajbhandari and others, figure 1: 7.5 billion parameters on 64 devices."""
    p = 7_500_000_000
    total = [states_of_zero(s, 64, p, mixed=True)["all three"] / 1e9 for s in range(4)]
    assert [round(gigabytes, 1) for gigabytes in total] == [120, 31.4, 16.6, 1.9]


def test_a_rank_of_the_example_keeps_a_quarter_of_four_layers():
    """Each of four ranks prints what the page says under its first listing."""
    page = lesson_source("15_sharded_data_parallel")
    keeps = "keeps 1,001,000 of 4,004,000 numbers"
    assert keeps in " ".join(page.split())
    example = str(DOCS / "examples" / "15_four_layers.py")
    done = subprocess.run(
        ["torchrun", "--standalone", "--nproc-per-node=4", example],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [f"rank {rank} {keeps}" for rank in range(4)]
    assert left_over(done.stdout, lines) == "\n" * 4, done.stdout


def test_numbers_of_the_page_are_those_of_the_model():
    page = lesson_source("15_sharded_data_parallel")
    sizes = Sizes()
    assert f"{model_parameters(sizes):,}" in page
    assert f"{block_parameters(sizes):,}" in page


def test_nothing_differs_in_the_recorded_tables():
    for path in (DOCS / "transcripts").glob("15_*.txt"):
        assert "they differ" not in path.read_text(), path.name


def test_recorded_losses_are_below_the_frequencies():
    for name in ("15_zero", "15_fsdp"):
        text = (DOCS / "transcripts" / f"{name}.txt").read_text()
        below = [float(x) for x in re.findall(r"Test loss [\d.]+: (-?[\d.]+)", text)]
        assert below and min(below) > 0.3, name


def test_figure_has_the_order_of_a_step():
    events = json.loads((DOCS / "figures" / "15_fsdp.json").read_text())["events"]
    assert events.index("gather blocks.1", 10) < events.index("backward blocks.2")
    assert events[-2:] == ["free the root", "reduce-scatter the root"]
