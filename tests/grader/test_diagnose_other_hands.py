"""``workshop diagnose`` on kinds of logs that strangers brought, and that it misread.

Shortened and reworded from public threads, which causes.toml names as sources.
"""

from __future__ import annotations

import pytest

from tests.grader.test_diagnose import ROOT, written
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.report import diagnose, named

MIXED = "got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor"
RAISED = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "{path}", line 219, in {function}
[rank0]:     run()
[rank0]: RuntimeError: {message}
"""
IN_CLIP = {"path": "/lib/torch/nn/utils/clip_grad.py", "function": "_get_total_norm"}
IN_STEP = {"path": "/lib/torch/optim/adamw.py", "function": "_multi_tensor_adamw"}
IN_FORWARD = {"path": "/w/model.py", "function": "forward"}


def told(tmp_path, text):
    return diagnose(written(tmp_path, text), ROOT)[0]


def read(tmp_path, text):
    """(the ranks that failed first, the named cause, the first candidate)."""
    log = written(tmp_path, text)
    first = first_failed(log)
    found = candidates(load(ROOT), log, first)
    sure = named(found)
    likeliest = found[0].cause.name if found else None
    return first and first.ranks, sure and sure.cause.name, likeliest


@pytest.mark.parametrize(
    "message",
    [
        f"aten._foreach_norm.Scalar: {MIXED}",
        f"aten.stack.default: {MIXED}",
        "All operands in aten.stack.default must have the same mesh",
        f"aten._foreach_mul_.Tensor: {MIXED}",
    ],
)
def test_mix_inside_of_clipping_is_not_the_optimizers(tmp_path, message):
    text = RAISED.format(message=message, **IN_CLIP)
    assert read(tmp_path, text)[1] == "clip_mix"


def test_mix_inside_of_the_optimizer_is_its_own(tmp_path):
    text = RAISED.format(message=f"aten._foreach_mul_.Scalar: {MIXED}", **IN_STEP)
    assert read(tmp_path, text)[1] == "foreach_mix"


@pytest.mark.parametrize("operation", ["_foreach_norm.Scalar", "_foreach_mul_.Scalar"])
def test_mix_elsewhere_names_neither_clipping_nor_optimizer(tmp_path, operation):
    text = RAISED.format(message=f"aten.{operation}: {MIXED}", **IN_FORWARD)
    assert read(tmp_path, text)[1] not in ("clip_mix", "foreach_mix")
