"""What CUDA and NCCL print, beside the sentences by which we recognize it."""

import re
import sys
from pathlib import Path

import pytest
import torch

from tests.gpu.results import ROOT, write_transcript
from tests.gpu.running import begin, run, shown
from tests.launched import finish

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TWICE = """
import os
import torch
import torch.distributed as dist

only = torch.device("cuda", 0)
torch.cuda.set_device(only)
dist.init_process_group("nccl", device_id=only)
dist.all_reduce(torch.ones(1, device=only))
"""
FAILURES = {
    "invalid_ordinal": "import torch; torch.zeros(1, device='cuda:99')",
    "out_of_memory": "import torch; torch.empty(2**50, device='cuda')",
}
CAUSES = {
    "invalid_ordinal": "more_ranks_than_gpus",
    "out_of_memory": "gpu_out_of_memory",
    "duplicate_gpu": "duplicate_gpu",
}


def messages(cause: str) -> list[str]:
    """The patterns by which `workshop diagnose` knows a cause."""
    text = (ROOT / "workshop/diagnose/causes.toml").read_text(encoding="utf-8")
    (found,) = [one for one in tomllib.loads(text)["cause"] if one["name"] == cause]
    return found["messages"]


def is_recognized(text: str, cause: str) -> bool:
    return any(re.search(pattern, text) for pattern in messages(cause))


def fail(folder: Path, name: str, code: str, kind: str):
    """Run a program of a few lines; returns its transcript and its errors."""
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    command = f"python {name}.py"
    done = run(folder, command, kind)
    assert done.returncode != 0
    return shown(command, done), done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("name", FAILURES)
def test_error_of_cuda_is_recognized(name, gpu, tmp_path):
    text, errors = fail(tmp_path, name, FAILURES[name], "cuda")
    write_transcript(f"error_{name}", text)
    assert is_recognized(errors, CAUSES[name])


@pytest.mark.gpu
def test_two_ranks_on_one_gpu_are_told_by_nccl(gpu, tmp_path):
    (tmp_path / "twice.py").write_text(TWICE, encoding="utf-8")
    command = "torchrun --standalone --nproc-per-node=2 twice.py"
    done = finish(begin(tmp_path, command, "cuda", NCCL_DEBUG="WARN"), 120)
    write_transcript("error_duplicate_gpu", shown(command, done))
    assert is_recognized(done.stdout + done.stderr, CAUSES["duplicate_gpu"])


@pytest.mark.gpu
def test_more_ranks_than_gpus_are_our_own_sentence(gpu, tmp_path):
    ranks = torch.cuda.device_count() + 1
    start = f"torchrun --standalone --nproc-per-node={ranks}"
    command = f"{start} src/instruments/08_link_speed.py"
    done = run(tmp_path, command, "cuda")
    write_transcript("error_too_many_ranks", shown(command, done))
    assert done.returncode != 0
    assert "has no cuda device" in done.stderr


def test_errors_dry(tmp_path):
    """The same on a machine without a GPU: torch has other words for it."""
    text, errors = fail(tmp_path, "ordinal", FAILURES["invalid_ordinal"], "cpu")
    assert text.endswith("[exit status 1]")
    assert errors and not is_recognized(errors, CAUSES["invalid_ordinal"])
    for cause in CAUSES.values():
        assert messages(cause)
