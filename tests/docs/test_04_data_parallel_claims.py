"""What docs/lessons/04_data_parallel says about PyTorch, tried out.

On four devices that imagined_devices.py stands in for. What the scripts do is tested
in tests/scripts/test_04_data_parallel.py.
"""

import inspect
import os
import re
import subprocess
import sys
import threading
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.docs.imagined_devices import (
    Scatter,
    Seen,
    batch,
    documented,
    forget_gpus,
    gradients,
    imagine_devices,
    network,
)
from tests.docs.pages import checked_page

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from common.data import WIDTH, make_model  # noqa: E402

DataParallelByHand = import_module("04_data_parallel_by_hand").DataParallelByHand

on_the_page = checked_page("04_data_parallel")


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch):
    forget_gpus(monkeypatch)


@pytest.fixture
def wrap(monkeypatch):
    """``wrap(model)``: nn.DataParallel on four imagined devices."""
    return imagine_devices(monkeypatch)


# What it is


def test_documentation_recommends_ddp():
    on_the_page("the documentation of ``nn.DataParallel`` itself recommends")
    documented("It is recommended to use")
    documented("DistributedDataParallel`, instead of this class")
    on_the_page("even on a single machine")
    documented("even if there is only a single node")


def test_without_gpus_it_just_calls_the_module():
    on_the_page("``nn.DataParallel`` just calls the module: there are no parts")
    on_the_page("Without GPUs, or with one, it just calls the module.")
    seen = Seen()
    parallel_model = nn.DataParallel(seen)
    images, _ = batch(10)
    assert parallel_model(images) is images, "the very tensor that the module returned"
    assert seen.calls == [(os.getpid(), threading.main_thread(), 10)]
    assert parallel_model.device_ids == []
    forward = " ".join(inspect.getsource(nn.DataParallel.forward).split())
    assert "if len(self.device_ids) == 1: return self.module(" in forward


# One step, by PyTorch's own code


def test_forward_is_scatter_replicate_parallel_apply_gather(wrap, monkeypatch):
    on_the_page("which have the same names in PyTorch")
    on_the_page("Scatter, replicate, parallel_apply, gather: in every forward pass")
    parallel_model, order = wrap(network()), []

    def note(name):
        original = getattr(parallel_model, name)

        def noted(*args):
            order.append(name)
            return original(*args)

        monkeypatch.setattr(parallel_model, name, noted)

    for name in ("scatter", "replicate", "parallel_apply", "gather"):
        note(name)
    for _ in range(2):
        parallel_model(batch(10)[0])
    assert order == 2 * ["scatter", "replicate", "parallel_apply", "gather"]


@pytest.mark.parametrize("size", [32, 30, 10, 6, 3])
def test_gradient_of_the_parts_is_that_of_the_batch(wrap, size):
    """PyTorch's code on imagined devices, and the algorithm by hand."""
    on_the_page("The rest of the program can't tell that anything was split")
    images, labels = batch(size)
    model = network()
    whole = gradients(model, model, images, labels)
    for parallel_model in (wrap(model), DataParallelByHand(model, 4)):
        found = gradients(parallel_model, model, images, labels)
        for a, b in zip(found, whole, strict=True):
            torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


def test_sizes_of_the_parts(wrap):
    on_the_page("8, 8, 8 and 6; then 3, 3, 3 and 1; then 2, 2 and 2.")
    on_the_page("``chunk(4)`` of 32 images makes four parts of 8")
    documented("splitting the input across the specified devices by chunking")
    expected = {32: [8] * 4, 30: [8, 8, 8, 6], 10: [3, 3, 3, 1], 6: [2, 2, 2]}
    for size, sizes in expected.items():
        assert [len(part) for part in batch(size)[0].chunk(4)] == sizes


def test_a_device_without_images_takes_no_part(wrap):
    on_the_page("the fourth device gets nothing and sits out this step")
    seen = Seen()
    wrap(seen)(batch(6)[0])
    assert [size for _, _, size in seen.calls] == [2, 2, 2]


def test_one_process_and_a_thread_for_each_part(wrap):
    on_the_page("starts a thread for each part")
    on_the_page("there is still only one process")
    seen = Seen()
    wrap(seen)(batch(12)[0])
    assert {process for process, _, _ in seen.calls} == {os.getpid()}
    threads = {thread for _, thread, _ in seen.calls}
    assert len(threads) == 4 and threading.main_thread() not in threads


def test_weights_are_copied_in_every_forward_pass(wrap):
    on_the_page("the optimizer has changed the original since")
    on_the_page("that's 3 times 791,080 bytes each way")
    model = make_model(width=WIDTH)
    parallel_model = wrap(model)
    for _ in range(2):
        Scatter.copied.clear()
        parallel_model(torch.randn(8, 1, 8, 8))
        sent = sum(n for name, n in Scatter.copied if name == "broadcast")
        assert sent == 3 * 791_080
    assert sum(p.nbytes for p in model.parameters()) == 791_080


def test_first_device_has_scores_and_gradients(wrap):
    on_the_page("joins the scores of all parts on the first device")
    documented("output_device (int or torch.device): device location of output")
    documented("(default: device_ids[0])")
    wrap(network())(batch(8)[0])
    assert ("gather", 0) in Scatter.copied
    on_the_page("it holds the gradients and the optimizer")
    documented("must have its parameters and buffers on ``device_ids[0]``")
    documented("gradients from each replica are summed into the original module")


def test_a_billion_parameters_on_four_devices_are_12_gb_each_way():
    on_the_page("With a billion parameters in 32 bits, 4 GB, each step on four devices")
    on_the_page("each step on four devices copies 12 GB of weights")
    assert 3 * 10**9 * torch.zeros(1).nbytes == 12e9


def test_autograd_adds_the_gradients_of_clones():
    on_the_page("by an operation that autograd records; here it is ``clone``")
    on_the_page("autograd adds them there")
    weight = torch.ones(2, requires_grad=True)
    copies = [weight.clone() for _ in range(4)]
    sum((i + 1.0) * copy.sum() for i, copy in enumerate(copies)).backward()
    assert weight.grad.tolist() == [10.0, 10.0]


def test_new_thread_records_gradients_under_no_grad():
    on_the_page("A new thread starts with gradient recording on")
    enabled = []
    with torch.no_grad():
        thread = threading.Thread(
            target=lambda: enabled.append(torch.is_grad_enabled())
        )
        thread.start()
        thread.join()
        assert not torch.is_grad_enabled()
    assert enabled == [True]


def test_memory_of_the_optimizer():
    on_the_page("which keeps one or two more numbers for each weight")
    for optimizer, kept in (
        (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), 1),
        (lambda p: torch.optim.AdamW(p), 2),
    ):
        model = network()
        optimizer = optimizer(model.parameters())
        gradients(model, model, *batch(4))
        optimizer.step()
        for parameter, state in optimizer.state.items():
            whole = [v for v in state.values() if torch.is_tensor(v) and v.dim()]
            assert sum(v.numel() for v in whole) == kept * parameter.numel()


# One interpreter


@pytest.fixture
def patient_threads():
    """A thread that runs Python gives way only when it waits for something."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("this Python has no GIL")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def side_by_side(*functions):
    """Run each in a thread; all begin when all are there."""
    together = threading.Barrier(len(functions))

    def run(function):
        together.wait()
        function()

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_take_turns_with_python(patient_threads):
    on_the_page("one Python interpreter, which only one of them can use at a time")
    events = []

    def work(name):
        for _ in range(200_000):
            events.append(name)

    side_by_side(lambda: work("a"), lambda: work("b"))
    turns = sum(a != b for a, b in pairwise(events))
    assert len(events) == 400_000 and turns == 1, "the two worked at the same time"


def test_large_operation_lets_other_threads_run(patient_threads):
    on_the_page("PyTorch lets other threads run while a large operation computes")
    matrix = torch.randn(1500, 1500, dtype=torch.float64)

    def between():
        """Whether the other thread ran Python while this one multiplied."""
        events, begun = [], threading.Event()

        def multiply():
            begun.set()
            events.append("begins")
            torch.mm(matrix, matrix)
            events.append("ends")

        def other():
            begun.wait()
            events.append("other")

        side_by_side(multiply, other)
        return events == ["begins", "other", "ends"]

    # on a busy machine the other one may come too late, but not every time
    assert any(between() for _ in range(20))


def test_recorded_speeds_are_as_the_page_says():
    on_the_page("Splitting the batch makes it *slower*")
    text = (ROOT / "docs/transcripts/04_by_hand.txt").read_text()
    speeds = re.findall(r"^\d parts? +([0-9,]+) images/s$", text, re.M)
    one, two, four = (float(speed.replace(",", "")) for speed in speeds)
    assert two < one and four < one


# Beside DDP


KEYS = """
import torch, torch.distributed as dist, torch.distributed.nn.functional
from torch import nn
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
ddp_model = nn.parallel.DistributedDataParallel(nn.Linear(2, 3))
print(*ddp_model.state_dict())
del ddp_model
dist.destroy_process_group()
"""


def test_keys_of_both_wrappers_begin_with_module():
    on_the_page("begin with ``module.``")
    done = subprocess.run(
        [sys.executable, "-c", KEYS], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["module.weight", "module.bias"], done.stderr
    keys = list(nn.DataParallel(nn.Linear(2, 3)).state_dict())
    assert keys == ["module.weight", "module.bias"]
