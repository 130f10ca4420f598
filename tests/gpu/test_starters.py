"""The starters on a GPU: train, end on SIGTERM, resume, and how exactly they do."""

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch

from tests.gpu.results import ROOT, write_numbers, write_transcript
from tests.gpu.running import LIMIT, begin, run, shown
from tests.launched import finish
from tests.scripts.starters import read_until, state

NAMES = "train_ddp.py", "train_fsdp.py"
EPOCHS = 20  # of 15 steps
OPTIONS = "--batch-size 256 --workers 2 --log-every 5"
# Before the starter: choose kernels that add in one order, or refuse those without
DETERMINISTIC = """
import runpy
import sys

import torch

torch.use_deterministic_algorithms(True)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ONE_WORKSPACE = ":4096:8"  # without it cuBLAS may sum in another order


@dataclass
class Ends:
    """How a run that was ended and resumed compares with one that was not."""

    text: str  # what the resumed run printed
    steps: int
    same_bits: bool
    largest_difference: float


def tensors_of(found):
    """Name -> tensor of a model's state, wherever it was saved."""
    return {name: value.double().cpu() for name, value in found["model"].items()}


def compare(left, right):
    """(all bits equal, the largest difference) of two models' parameters."""
    left, right = tensors_of(left), tensors_of(right)
    assert left.keys() == right.keys()
    gaps = [(left[name] - right[name]).abs().max().item() for name in left]
    return all(torch.equal(left[name], right[name]) for name in left), max(gaps)


def end_and_resume(folder, name, epochs, kind, deterministic):
    """Train in one go, and again with a SIGTERM on the way."""
    program, more = name, {}
    for part in ("whole", "cut"):
        (folder / part).mkdir(parents=True)
        shutil.copy(ROOT / "src/starter" / name, folder / part)
        (folder / part / "exact.py").write_text(DETERMINISTIC, encoding="utf-8")
    if deterministic:
        program, more = f"exact.py {name}", {"CUBLAS_WORKSPACE_CONFIG": ONE_WORKSPACE}
    command = f"python {program} {epochs} {OPTIONS}"
    done = run(folder / "whole", command, kind, **more)
    assert done.returncode == 0, done.stderr

    process = begin(folder / "cut", command, kind, **more)
    read_until(process, "step 5 ")
    process.send_signal(signal.SIGTERM)
    ended = finish(process, LIMIT)
    assert ended.returncode == 0, ended.stderr
    resumed = run(folder / "cut", command, kind, **more)
    assert resumed.returncode == 0, resumed.stderr
    assert "After 0 steps" not in resumed.stdout, "SIGTERM did not save"

    whole, cut = (state(folder / part, name) for part in ("whole", "cut"))
    assert whole["step"] == cut["step"]
    same, gap = compare(whole, cut)
    return Ends(shown(command, resumed), whole["step"], same, gap)


@pytest.fixture(scope="module")
def pool():
    """What shares the GPU, four runs at a time: nothing here is timed."""
    return ThreadPoolExecutor(4)


@pytest.fixture(scope="module")
def fast(request, tmp_path_factory, pool):
    """(starter, more options) -> the future of a transcript; nothing, if not chosen."""
    items = [item for item in request.session.items if item.path == request.path]
    if not any(item.name.startswith("test_options_for_speed") for item in items):
        return {}
    folder = tmp_path_factory.mktemp("options")
    return {
        (name, more): pool.submit(with_options, folder, name, more, "cuda")
        for more in MORE
        for name in NAMES
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory, pool, fast):
    """(starter, deterministic) -> the future of an :class:`Ends`; `fast` run beside."""
    folder = tmp_path_factory.mktemp("starters")
    return {
        (name, exact): pool.submit(
            end_and_resume, folder / f"{name}_{exact}", name, EPOCHS, "cuda", exact
        )
        for name in NAMES
        for exact in (True, False)
    }


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_resumed_run_ends_at_the_same_bits(name, runs):
    found = runs[name, True].result()
    write_transcript(f"starter_{name[:-3]}", found.text)
    assert found.same_bits, f"they differ by up to {found.largest_difference}"


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_how_far_a_resumed_run_is_off_without_deterministic_kernels(name, runs):
    found = runs[name, False].result()
    numbers = {"steps": found.steps, "same_bits": found.same_bits}
    numbers["largest_difference"] = found.largest_difference
    write_numbers(f"resumed_{name[:-3]}", numbers)
    assert found.largest_difference < 0.1


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        pytest.param("train_ddp.py", True, marks=pytest.mark.nightly),
        pytest.param("train_fsdp.py", False, marks=pytest.mark.nightly),
    ],
)
def test_starters_dry(name, exact, tmp_path):
    found = end_and_resume(tmp_path, name, EPOCHS, "cpu", exact)
    assert found.steps == EPOCHS * 15
    assert found.same_bits and found.largest_difference == 0


# Options for speed and memory

FOR_SPEED = {
    "train_ddp.py": "--fused --tf32",
    "train_fsdp.py": "--fused --tf32 --prefetch --checkpoint-activations",
}


MORE = " --compile", ""  # to compile takes longest


def with_options(folder, name, more, kind):
    """Train two epochs with the options for speed and these; returns the transcript."""
    command = f"python src/starter/{name} 2 {OPTIONS} {FOR_SPEED[name]}{more}"
    done = run(folder / f"{name}{more}".replace(" ", ""), command, kind)
    assert done.returncode == 0, done.stderr
    assert "step 30 of 30 | saved" in done.stdout
    return shown(command, done)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("more", MORE)
def test_options_for_speed(name, more, fast):
    text = fast[name, more].result()
    write_transcript(f"speed_{name[:-3]}{more.strip(' -')}", text)


def test_options_dry(tmp_path):
    with_options(tmp_path, "train_fsdp.py", "", "cpu")


def test_one_different_bit_is_seen():
    one = {"model": {"weight": torch.ones(3)}}
    other = {"model": {"weight": torch.tensor([1, 1, 1 + 2**-23])}}
    assert compare(one, one) == (True, 0)
    assert compare(one, other) == (False, 2**-23)
