"""On a busy machine nobody is misjudged: right stays right, deadlock deadlock."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.grader.support import RIGHT
from workshop.grader.verdicts.verdict import Kind

pytestmark = pytest.mark.full

BURN = "while True: pass"
DDP_STEP = '''
import pytest, torch
import torch.distributed as dist
from workshop.grader import expect

@pytest.mark.ranks(4)
def test_answer(exercise, rank, world_size, seed):
    """Three steps of DDP leave the same weights on all ranks."""
    torch.manual_seed(seed)
    model = exercise.train(torch.nn.Linear(8, 3), torch.randn(6, 8) + rank)
    expect.same_on_all_ranks(model.weight, "the weight")
'''
DDP_ANSWER = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(model, x):
    ddp_model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        ddp_model(x).square().mean().backward()
        optimizer.step()
    return model
"""


@pytest.fixture
def burners():
    """Eight processes that use the CPU for as long as the test runs."""
    running = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(8)]
    yield
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.nightly
def test_twenty_right_answers_beside_eight_busy_processes(burners, run):
    wrong = []
    for number in range(20):
        check = {"check": DDP_STEP, "ranks": 4} if number % 2 else {"ranks": 4}
        verdict = run(DDP_ANSWER if number % 2 else RIGHT, **check)
        if verdict.kind is not Kind.RIGHT:
            wrong.append(verdict.message)
    assert not wrong, "\n".join(wrong)


def test_deadlock_beside_eight_busy_processes_is_still_one(burners, run):
    code = """
    import torch.distributed as dist
    def answer(t):
        dist.recv(t, (dist.get_rank() + 1) % dist.get_world_size())
    """
    for _ in range(3):
        assert run(code).kind is Kind.HANG
