"""What docs/lessons/16_two_dimensions says, tried out.

What happens inside ranks is in ranks_16_two_dimensions.py; the grader's engine runs it.
"""

import inspect
import pickle
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.pipelining.stage import _PipelineStageBase

from tests.docs.pages import checked_page, lesson_source
from tests.in_ranks import assert_right, every_check_in
from tests.launched import left_over
from tools.published_costs import GROUPS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.byte_gpt import Sizes
from common.cost.counting import model_parameters
from common.cost.formulas import step_flops
from common.parallel.mesh import Grid

cost = import_module("instruments.16_cost")
calls, held, sent = cost.calls, cost.held, cost.sent

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = lesson_source("16_two_dimensions")
on_the_page = checked_page("16_two_dimensions")
GRID = Grid(data=2, tensor=2)


@pytest.mark.nightly
@every_check_in(HERE / "ranks_16_two_dimensions.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


# Numbers


def test_rank_0_of_the_example_keeps_a_quarter():
    """Its groups, and the shapes of its part of both weights, as below the listing."""
    page = " ".join(PAGE.split())
    assert "prints the data group ``[0, 2]`` and the tensor group ``[0, 1]``" in page
    example = str(ROOT / "docs" / "examples" / "16_grid_of_four.py")
    done = subprocess.run(
        ["torchrun", "--standalone", "--nproc-per-node=4", example],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [
        f"rank {rank} {text}"
        for rank in range(4)
        for text in (
            f"is in the data group {[rank % 2, rank % 2 + 2]}",
            f"is in the tensor group {[rank // 2 * 2, rank // 2 * 2 + 1]}",
            "keeps [(4, 8), (4, 8)] of the weights",
        )
    ]
    assert left_over(done.stdout, lines) == "\n" * len(lines), done.stdout


def test_rank_6_of_two_by_four():
    """Data place 1, tensor place 2; tensor group 4, 5, 6, 7 and data group 2, 6."""
    mesh = torch.arange(8).view(2, 4)
    assert (mesh == 6).nonzero().tolist() == [[1, 2]]
    assert mesh[1].tolist() == [4, 5, 6, 7] and mesh[:, 2].tolist() == [2, 6]
    assert "Its tensor group is 4, 5, 6, 7, and its data group is 2, 6" in " ".join(
        PAGE.split()
    )


def test_one_rank_of_four_keeps_140_288_of_503_104_parameters():
    assert model_parameters(Sizes()) == 503_104
    assert held(Sizes(), GRID, 16)["parameters"] == 4 * 140_288
    assert "Of 503,104 parameters, one rank keeps 140,288" in " ".join(PAGE.split())


def test_tensor_axis_carries_twice_the_bytes_of_the_data_axis():
    travels = sent(Sizes(), GRID, 16)
    assert travels["tensor axis"] / travels["data axis"] == pytest.approx(2, rel=0.01)
    on_the_page("joins two ranks, but the tensor axis carries twice the bytes")
    assert (GRID.data, GRID.tensor) == (2, 2)
    assert calls(Sizes(), GRID)["tensor axis"] == 16 == 4 * Sizes().blocks
    assert calls(Sizes(), GRID)["data axis"] == 3 * Sizes().blocks + 2


def test_twice_the_batch_doubles_the_tensor_axis_alone():
    once, twice = (sent(Sizes(), GRID, batch) for batch in (16, 32))
    assert twice["tensor axis"] == 2 * once["tensor axis"]
    assert twice["data axis"] == once["data axis"]


def test_twice_the_blocks_double_the_tensor_axis_and_nearly_the_data_axis():
    once, twice = (sent(Sizes(blocks=n), GRID, 16) for n in (4, 8))
    assert twice["tensor axis"] == 2 * once["tensor axis"]
    assert 1.8 < twice["data axis"] / once["data axis"] < 2


def test_table_of_a_rank():
    """About P_L / (d t) + R / d numbers, and twice as much for AdamW."""
    sizes = Sizes()
    ends = 2 * sizes.width + (256 + sizes.context) * sizes.width + 97 * 256
    blocks = model_parameters(sizes) - ends
    found = held(sizes, GRID, 16)
    assert found["parameters"] / 4 == pytest.approx(blocks / 4 + ends / 2, rel=0.01)
    assert found["optimizer state"] == 2 * found["parameters"]


@pytest.mark.parametrize("grid", [GRID, Grid(data=4, tensor=2), Grid(data=2, tensor=4)])
def test_formulas_on_the_page(grid):
    """(L P_t + R) / d numbers, with P_t = 12 H^2 / t + 7 H / t + 6 H, and the bytes
    that are sent along both axes."""
    sizes, d, t, batch = Sizes(), grid.data, grid.tensor, 16
    width, context, blocks = sizes.width, sizes.context, sizes.blocks
    p = 12 * width**2 // t + 7 * width // t + 6 * width
    r = (256 + context) * width + 2 * width + 256 * (width + 1)
    n = batch // d * context
    assert held(sizes, grid, batch)["parameters"] == 4 * (blocks * p + r) // d
    travels = sent(sizes, grid, batch)
    assert travels["data axis"] == 4 * (3 * blocks * p + 2 * r) * (d - 1) // d
    stream = 2 * 4 * n * width * (t - 1) // t
    assert travels["tensor axis"] == 4 * blocks * stream
    more = held(Sizes(blocks=blocks + 1), grid, batch)["activations"]
    inside = (12 * width + sizes.heads) // t
    one_block = more - held(sizes, grid, batch)["activations"]
    assert one_block == 4 * n * (4 * width + 4 + inside)


def test_replicas_hold_half_and_average_that_shard():
    hsdp = Grid(replicas=2, data=2)
    assert held(Sizes(), hsdp, 16)["parameters"] == 2 * model_parameters(Sizes())
    shard = held(Sizes(), hsdp, 16)["gradients"]
    assert sent(Sizes(), hsdp, 16)["replica axis"] == shard  # 2 (R - 1) / R of it


def test_a_stage_keeps_whole_gradients_until_the_last_micro_batch():
    """Each backward of a micro-batch leaves them whole; one reduction follows."""
    on_the_page("each rank holds its whole stage, parameters and gradients.")
    each = inspect.getsource(_PipelineStageBase.backward_maybe_with_nosync)
    assert "self.submod.set_requires_gradient_sync(False)" in each
    assert "self.submod.set_reshard_after_backward(False)" in each
    last = inspect.getsource(_PipelineStageBase.perform_reduce_grad)
    assert "fsdp_module.set_requires_gradient_sync(True)" in last


def test_published_grids_are_those_of_the_paragraph():
    """Data ranks alone, and t 8, p 64, d 6; what is recomputed is a quarter."""
    [group] = [one for one in GROUPS if one.title.startswith("Megatron-LM on A100, TF")]
    first, last = group.runs[0], group.runs[-1]
    assert (first.layout.tensor, first.layout.pipeline, first.layout.data) == (1, 1, 32)
    t, p, d = last.layout.tensor, last.layout.pipeline, last.layout.data
    on_the_page(f"a trillion on {t} tensor ranks, {p} stages and {d} data ranks.")
    on_the_page(f"With {t * p * d // 32} times as many A100s")
    assert last.published > first.published
    on_the_page("so the MFU is only about three quarters of these shares")
    for run in (first, last):
        needed = step_flops(run.model, run.layout)
        share = needed / step_flops(run.model, run.layout, run.layout.recompute)
        assert share == pytest.approx(0.75, abs=0.02)


def test_three_axes_on_eight_ranks():
    assert len(Grid(2, 2, 2).axes) == 3


def test_losses_on_two_ranks_and_on_one_are_those_that_never_stopped():
    recorded = {
        name: (ROOT / "docs" / "transcripts" / f"16_{name}.txt").read_text()
        for name in ("grid", "another_grid")
    }
    for step in (50, 59):
        lines = {
            name: re.findall(rf"^Step {step} \| (.*)$", text, re.MULTILINE)
            for name, text in recorded.items()
        }
        assert lines["another_grid"] == 2 * lines["grid"]


# Checkpoints


def test_error_of_a_save_is_no_exception():
    assert issubclass(CheckpointException, BaseException)
    assert not issubclass(CheckpointException, Exception)


class RunsCode:
    def __reduce__(self):
        return exec, ("import builtins; builtins.code_was_run = True",)


def test_reading_metadata_can_run_any_code(tmp_path):
    (tmp_path / ".metadata").write_bytes(pickle.dumps(RunsCode()))
    import builtins

    with pytest.raises(AttributeError):  # what it is for, None does not have
        dcp.FileSystemReader(tmp_path).read_metadata()
    assert builtins.__dict__.pop("code_was_run")


def test_metadata_comes_last_and_under_another_name_first(tmp_path, monkeypatch):
    seen, rename = [], Path.rename

    def watched(self, target):
        names = {path.name for path in tmp_path.iterdir()}
        seen.append((self.name, Path(target).name, names))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are no ranks
        dcp.save({"a": torch.ones(3)}, checkpoint_id=tmp_path, no_dist=True)
    [(first, last, there)] = [entry for entry in seen if "metadata" in entry[1]]
    assert (first, last) == (".metadata.tmp", ".metadata")
    assert there == {".metadata.tmp", "__0_0.distcp"}


def test_state_dict_calls_the_parameters_of_the_optimizer_by_their_names():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    _, state = get_state_dict(model, optimizer)
    assert set(state["state"]) == {"0.weight", "0.bias"}
    assert state["param_groups"][0]["params"] == ["0.weight", "0.bias"]
    assert optimizer.state_dict()["param_groups"][0]["params"] == [0, 1]
