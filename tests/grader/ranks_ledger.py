"""Functions that tests/grader/test_ledger.py runs in ranks."""

import threading

import pytest
import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_reduce

from workshop.grader import expect


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
