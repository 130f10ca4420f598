"""What docs/lessons/14_tensor_parallel says, tried out.

What happens inside ranks is in ranks_14_tensor_parallel.py; the grader's engine runs
it. That a rank holds and sends what the table says is in tests/scripts.
"""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, checked_page, lesson_source
from tests.in_ranks import assert_right, every_check_in
from tools.published_costs import LLAMA_8B

sys.path.insert(0, str(ROOT / "src"))

from common.byte_gpt import Sizes
from common.cost import counting as formulas
from common.cost.formulas import key_width

cost = import_module("instruments.14_cost")

pytestmark = pytest.mark.full

TABLES = ROOT / "docs" / "transcripts" / "14_tables.txt"
PAGE = lesson_source("14_tensor_parallel")
on_the_page = checked_page("14_tensor_parallel")


@pytest.mark.nightly
@every_check_in(Path(__file__).resolve().parent / "ranks_14_tensor_parallel.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


def recorded(what):
    """The measured numbers of this line, of the three runs."""
    found = re.findall(rf"^{what} +([\d,]+)", TABLES.read_text(), re.MULTILINE)
    return [int(number.replace(",", "")) for number in found]


def test_numbers_on_the_page_are_the_recorded_ones():
    assert recorded("parameters")[1] == 602_752
    assert 4 * cost.kept_whole(Sizes()) == 132_864
    assert [round(n / 1e6) for n in recorded("activations")[:2]] == [27, 12]
    whole, sliced = recorded("sent in a step")
    extra = cost.sent_for_kept_whole(Sizes(), 4)
    assert sliced - whole == extra, "what the second table has more to send"


def test_first_layer_of_width_16384_takes_17_gigabytes():
    """1.1 billion weights; 17 GB with gradients and AdamW state, an eighth is 2.1."""
    weights = 16_384 * 4 * 16_384
    states = sum(formulas.model_states(weights).values())
    on_the_page(f"width 16,384 has {weights / 1e9:.1f} billion weights")
    on_the_page(f"AdamW state it needs {states / 1e9:.0f} GB")
    on_the_page(f"on eight ranks each one holds {states / 8e9:.1f} GB")


def test_head_of_llama_3_has_most_outputs():
    model = LLAMA_8B
    heads = model.width, key_width(model)
    most = max(*heads, model.inner)
    on_the_page(f"{model.vocabulary:,} in Llama 3 8B, where no other layer has")
    on_the_page(f"no other layer has more than {most:,}.")


def test_table_of_the_page_is_what_the_formulas_compute():
    """For a block, with H = 96, a = 12, t = 3, B T = 7 x 3."""
    sizes, t, tokens = Sizes(), 3, 21
    w, h = sizes.width, sizes.heads
    page = PAGE
    for text, value, number in (
        ("12 H^2 + 13 H", 12 * w**2 + 13 * w, formulas.block_parameters(sizes)),
        (
            "(12 H^2 + 7 H) / t + 6 H",
            (12 * w**2 + 7 * w) // t + 6 * w,
            cost.parameters(Sizes(blocks=1), t, 0)
            - cost.parameters(Sizes(blocks=0), t, 0),
        ),
        (
            "16 H + a + 4",
            (16 * w + h + 4) * tokens,
            formulas.block_activations(sizes, tokens),
        ),
        (
            "4 H + 4 + (12 H + a) / t",
            (4 * w + 4 + (12 * w + h) // t) * tokens,
            cost.block_activations(sizes, tokens, t, sliced=False),
        ),
        (
            "2 H + (14 H + a + 4) / t",
            2 * w * tokens + (14 * w + h + 4) * tokens // t,
            cost.block_activations(sizes, tokens, t, sliced=True),
        ),
        (
            "8 B T H (t - 1) / t",
            8 * (t - 1) * w * tokens // t,
            (
                cost.sent_by_layers(Sizes(blocks=1), tokens, t)
                - cost.sent_by_layers(Sizes(blocks=0), tokens, t)
            )
            // 4,
        ),
    ):
        assert f":math:`{text}`" in page
        assert value == number, text


def test_losses_of_two_ranks_are_those_of_one_device():
    text = (ROOT / "docs" / "transcripts" / "14_train.txt").read_text()
    losses = re.findall(r"^Step (\d+) \| loss ([\d.]+)", text, re.MULTILINE)
    half = len(losses) // 2
    assert half >= 3
    for (step, alone), (same_step, together) in zip(
        losses[:half], losses[half:], strict=True
    ):
        assert step == same_step
        assert float(together) == pytest.approx(float(alone), abs=2e-3)


ENDS_ITS_GROUP = """
import sys
from importlib import import_module
from pathlib import Path
sys.path.insert(0, "SRC")
from common import distributed
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)

def share():
    mesh = init_device_mesh("cpu", (1,))
    distribute_tensor(torch.ones(2), mesh, [Shard(0)]).redistribute(mesh, [Replicate()])

if "dtensor" in sys.argv:
    share()
else:
    dist.all_reduce(torch.ones(2))
dist.destroy_process_group()
threads = [task.read_text() for task in Path("/proc/self/task").glob("*/comm")]
print(sum("gloo" in name for name in threads))
"""


def test_dtensor_keeps_the_threads_of_a_group_that_was_destroyed():
    program = ENDS_ITS_GROUP.replace("SRC", str(ROOT / "src"))
    left = [
        subprocess.run(
            [sys.executable, "-c", program, what],
            capture_output=True,
            text=True,
            check=True,
            timeout=200,
        ).stdout
        for what in ("plain", "dtensor")
    ]
    assert int(left[0]) == 0 < int(left[1])
