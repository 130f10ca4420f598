"""Functions that tests/grader/test_ledger.py runs in ranks."""

import threading

import pytest
import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_reduce
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from grader import expect


@pytest.mark.ranks(2)
def test_call_in_inference_mode_is_a_row(ledger):
    with torch.inference_mode():
        dist.all_reduce(torch.ones(2))
    expect.equal(ledger.ops(), ["all_reduce"], "the rows")


@pytest.mark.ranks(2)
def test_functional_call_is_one_row(ledger):
    """It calls another operator by itself."""
    total = all_reduce(torch.ones(2), "sum", dist.group.WORLD)
    expect.equal((total + 0).tolist(), [2.0, 2.0], "the sum")
    expect.equal(ledger.ops(), ["all_reduce"], "the rows")


@pytest.mark.ranks(2)
def test_calls_of_another_thread_are_no_rows(ledger):
    """Such as those of a checkpoint that is written in the background."""
    group = dist.new_group()
    ledger.clear()
    thread = threading.Thread(target=dist.barrier, args=(group,))
    thread.start()
    thread.join()
    expect.equal(ledger.ops(), [], "the rows")


@pytest.mark.ranks(2)
def test_operators_are_slow_only_while_the_learner_has_a_work(ledger):
    """The mode of torch in which each of them calls Python is off before and after."""
    modes = _get_current_dispatch_mode_stack
    dist.all_reduce(torch.ones(2))
    expect.equal(len(modes()), 0, "modes without a Work")
    begin = "work = dist.all_reduce(torch.ones(2), async_op=True)"
    learner = {"dist": dist, "torch": torch}
    exec(compile(begin, ledger.exercise_path, "exec"), learner)
    expect.equal(len(modes()), 1, "modes with a Work")
    learner["work"].wait()
    dist.all_reduce(torch.ones(2))
    expect.equal(len(modes()), 0, "modes after it")
