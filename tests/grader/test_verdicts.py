"""Each classic mistake gets its verdict, each rank's line, and the right name."""

from __future__ import annotations

import sys
import time
import traceback
from types import SimpleNamespace
from typing import Any

import pytest

from tests.grader.support import RIGHT, SUM, body
from tests.grader.verdict_cases import CASES
from workshop.grader.engine import channel, supervisor, whereabouts
from workshop.grader.verdicts.evidence import Evidence
from workshop.grader.verdicts.questions import values
from workshop.grader.verdicts.verdict import MAX_LINES, Kind
from workshop.system import processes


@pytest.mark.parametrize("name", CASES)
def test_mistake_gets_its_verdict(name, run):
    code, kind, suspicion, words = CASES[name]
    verdict = run(body(code))
    assert verdict.kind is kind, verdict.message
    assert verdict.suspicion == suspicion, verdict.message
    for word in words:
        assert word in verdict.message, verdict.message
    assert len(verdict.lines) <= MAX_LINES


def test_rank_that_wrote_to_a_crashed_one_is_not_the_first(run):
    """SIGPIPE ends a rank whose message nobody reads any more."""
    verdict = run(body("import signal\nsignal.raise_signal((13, 6, 6)[rank])"))
    assert "ranks 1 and 2 were killed by SIGABRT" in verdict.message, verdict.message
    assert "rank 0: is gone (status -13)" in verdict.message, verdict.message


def test_each_rank_is_told_its_own_sentence():
    told = [("", "holds 3"), ("", "holds 3"), ("the loss", "is zero"), ("", "holds 4")]
    failed = {n: {"what": w, "problem": p} for n, (w, p) in enumerate(told)}
    seen: Any = SimpleNamespace(who=lambda ranks: f"{ranks}: ")
    assert values._sentences(seen, failed) == [
        "[0, 1]: holds 3",
        "  [2]: the loss: is zero",
        "  [3]: holds 4",
    ]


def test_long_sentence_about_a_rank_ends_with_a_whole_word():
    what = (
        "report_loss called 0 collectives on this rank: keep the collective, which is"
    )
    rank: Any = SimpleNamespace(report={"status": "wrong", "what": what}, calls=[])
    nothing: Any = None
    told = Evidence._state_of_reported(nothing, rank)
    assert "on this rank: keep the ...), after 0 calls" in told


def test_right_answer_is_right_at_many_world_sizes(run):
    for ranks in (1, 2, 3, 4, 8):
        assert run(RIGHT, ranks=ranks).kind is Kind.RIGHT


def test_sleeping_ranks_are_not_a_deadlock(run):
    verdict = run(body("time.sleep(1.8)\n" + SUM + "return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_late_rank_is_not_a_deadlock(run):
    verdict = run(body("time.sleep(2.2 * (rank == 1))\n" + SUM + "return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


@pytest.fixture
def blocked(monkeypatch):
    """A run whose three ranks wait for each other, and ``later(seconds)`` of it.

    ``waited`` has the seconds for which each process waited for a core.
    """
    waited = dict.fromkeys(range(3), 0.0)
    monkeypatch.setattr(processes, "state_of", lambda pid: "S")
    monkeypatch.setattr(processes, "waited_for_a_core", waited.get)
    fields = channel.FIELDS
    run = object.__new__(supervisor.Run)
    run.live_count, run.still, run.state = 3, None, [0.0] * 3 * fields
    ranks = [SimpleNamespace(number=n, pid=n, mark=(0.0, 0.0)) for n in range(3)]

    def later(seconds, live=ranks):
        if run.still is not None:
            run.still.looked -= seconds
        for rank in ranks:
            run.state[rank.number * fields + channel.IN_COMM] = 1.0
            run.state[rank.number * fields + channel.BEAT] = time.monotonic()
        return run._stand_still(live)

    assert not later(0)
    return SimpleNamespace(run=run, ranks=ranks, waited=waited, later=later)


def test_ranks_that_wait_for_each_other_stand_still_after_a_second(blocked):
    assert not blocked.later(0.8)
    assert blocked.later(0.8)


def test_ranks_that_a_late_rank_lets_go_get_their_time(blocked):
    """The late rank reports; at that moment the others have waited for long."""
    others = blocked.ranks[:2]
    assert not blocked.later(9, live=others)
    assert not blocked.later(0, live=others), "the first look after it starts a second"
    assert not blocked.later(0.8, live=others)
    assert blocked.later(0.8, live=others)


def test_ranks_that_wait_for_a_core_do_not_stand_still(blocked):
    """On a busy machine a message may be on its way for more than a second."""
    for _ in range(5):
        blocked.waited[2] += 0.9
        assert not blocked.later(0.9)
    assert blocked.later(1.1)


def test_sign_of_life_begins_the_second_again(blocked):
    row = blocked.ranks[1].number * channel.FIELDS
    assert not blocked.later(0.8)
    blocked.run.state[row + channel.CALLS] += 1
    assert not blocked.later(0.8)
    assert not blocked.later(0.8), "the first look after it starts the second"
    assert blocked.later(1.1)


def test_forked_process_keeps_its_own_exit_status(run):
    forking = """
import os
import torch.distributed as dist

def answer(t):
    child = os.fork()
    if child == 0:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    dist.all_reduce(t)
    return t
"""
    verdict = run(forking)
    assert verdict.kind is Kind.RIGHT, verdict.message


@pytest.mark.full
def test_large_transfer_is_not_a_deadlock(run):
    code = "x = torch.ones(40_000_000)\n" + "dist.all_reduce(x)\n" * 2 + SUM
    verdict = run(body(code + "return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_deadlock_is_named_within_two_and_a_half_seconds_of_the_start(run):
    seconds = sorted(run(body("dist.recv(t, left)")).seconds for _ in range(3))
    assert seconds[1] < 2.5


PLAIN_ASSERT = '''
import pytest


@pytest.mark.ranks(2)
def test_answer(exercise, rank):
    """The answer is 42."""
    value = exercise.answer()
    assert value == 42
'''


def test_plain_assert_shows_the_values(run):
    verdict = run("def answer():\n    return 41\n", check=PLAIN_ASSERT)
    assert verdict.kind is Kind.WRONG_VALUE
    assert "assert 41 == 42" in verdict.message
    assert "The answer is 42." in verdict.message


def test_check_that_fails_on_a_missing_function_names_it(run):
    verdict = run("x = 1\n", check=PLAIN_ASSERT)
    assert verdict.kind is Kind.WRONG_VALUE
    assert "your file defines no answer" in verdict.message


WRONG_WAY = '''
import pytest, torch
import torch.distributed as dist
from workshop.grader import expect

@pytest.mark.ranks(3)
def test_answer(exercise, rank, ledger):
    """One collective is enough."""
    t = torch.full((2,), float(rank), dtype=torch.float64)
    expect.close(exercise.answer(t), torch.full((2,), 3.0).double(), "the sum")
    expect.right_way(ledger.count("all_reduce") == 1, "call all_reduce once")
'''


def test_right_value_in_a_wrong_way_has_a_verdict_of_its_own(run):
    assert run(RIGHT, check=WRONG_WAY).kind is Kind.RIGHT
    twice = body("dist.all_reduce(torch.ones(1))\ndist.all_reduce(t)\nreturn t")
    verdict = run(twice, check=WRONG_WAY)
    assert verdict.kind is Kind.WRONG_WAY
    assert "call all_reduce once" in verdict.message


OWN_INIT = '''
import os
import pytest, torch
import torch.distributed as dist
from workshop.grader import expect

@pytest.mark.ranks(3, init=False)
def test_answer(exercise, rank, world_size):
    """The ranks meet."""
    expect.equal(int(os.environ["RANK"]), rank, "RANK")
    expect.equal(exercise.answer(), world_size, "the world size")
'''


def test_exercise_may_initialize_the_group_itself(run):
    code = """
    import torch.distributed as dist
    def answer():
        dist.init_process_group("gloo")
        n = dist.get_world_size()
        dist.destroy_process_group()
        dist.init_process_group("gloo")
        return n
    """
    assert run(code, check=OWN_INIT).kind is Kind.RIGHT
    verdict = run(code.replace("dist.destroy_process_group()", ""), check=OWN_INIT)
    assert verdict.kind is Kind.EXCEPTION
    assert verdict.suspicion == "init_twice"


DDP = '''
import pytest, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from workshop.grader import expect

@pytest.mark.ranks(3)
def test_answer(exercise, rank, world_size, ledger):
    """Gradients are averaged in the backward pass."""
    torch.manual_seed(0)
    model = exercise.wrap(torch.nn.Linear(3, 2).double())
    ledger.clear()
    model(torch.full((1, 3), rank + 1.0).double()).sum().backward()
    expect.equal(ledger.ops(), ["all_reduce"], "the collectives of backward")
    weight = next(iter(model.parameters()))
    expect.close(weight.grad, torch.full((2, 3), 2.0).double(), "the gradient")
'''


def test_ledger_sees_what_ddp_calls(run):
    code = """
    from torch.nn.parallel import DistributedDataParallel as DDP
    def wrap(m):
        return DDP(m)
    """
    verdict = run(code, check=DDP)
    assert verdict.kind is Kind.RIGHT, verdict.message
    alone = run("def wrap(m):\n    return m\n", check=DDP)
    assert alone.kind is Kind.WRONG_VALUE


DTENSOR = '''
import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from workshop.grader import expect

@pytest.mark.ranks(3)
def test_answer(exercise, rank, world_size, ledger):
    """The product of two DTensors that are cut against each other."""
    mesh = init_device_mesh("cpu", (world_size,))
    a, b = (distribute_tensor(torch.ones(6, 6), mesh, [Shard(dim)]) for dim in (1, 1))
    ledger.clear()
    product = exercise.multiply(a, b)
    expect.equal(ledger.ops(), ["all_gather_into_tensor"], "the collectives inside")
    expect.close(product.full_tensor(), torch.full((6, 6), 6.0), "the product")
'''


def test_ledger_sees_what_an_operation_on_dtensors_calls(run):
    """DTensor moves data inside its operations, where a mode does not look."""
    verdict = run("def multiply(a, b):\n    return a @ b\n", check=DTENSOR)
    assert verdict.kind is Kind.RIGHT, verdict.message


MEAN_OF_MEANS = '''
import pytest

from workshop.grader import expect

@pytest.mark.ranks(1)
def test_answer(exercise):
    """The mean of all."""
    named = {"the mean of the means": 5.5, "the sum": 12.0}
    expect.close(exercise.answer(), 4.0, "the mean", mistaken=named)
'''


def test_value_of_a_known_mistake_is_called_by_its_name(run):
    verdict = run("def answer():\n    return 5.5\n", check=MEAN_OF_MEANS)
    assert verdict.kind is Kind.WRONG_VALUE
    assert "is the mean of the means; got 5.5, expected 4" in verdict.message
    other = run("def answer():\n    return 6.5\n", check=MEAN_OF_MEANS)
    assert "  got 6.5, expected 4" in other.message


def test_watch_survives_a_frame_without_a_line_number(monkeypatch):
    monkeypatch.setattr(traceback, "walk_stack", lambda f: iter([(f, None)]))
    assert whereabouts.communicates(sys._getframe()) is False


OWN_COLLECTIVE = '''
import pytest, torch
import torch.distributed as dist

@pytest.mark.ranks(3)
def test_answer(exercise, rank):
    """A collective of the check follows."""
    exercise.answer(torch.ones(3))
    dist.all_gather_object([None] * 3, rank)
'''


def test_collective_of_the_check_is_no_other_order(run):
    code = body("for _ in range(1 + (rank == 0)):\n    dist.all_reduce(t)")
    verdict = run(code, check=OWN_COLLECTIVE)
    assert verdict.suspicion == "unequal_iterations", verdict.message
    assert "ranks 1 and 2: returned from your code before" in verdict.message
    assert "different order" not in verdict.message


def test_tensor_of_whole_numbers_is_named_where_a_check_computes(run):
    check = """
        import pytest

        @pytest.mark.ranks(1)
        def test_answer(exercise):
            exercise.answer().mean()
    """
    code = "import torch\ndef answer(): return torch.ones(4, 3, dtype=torch.int64)"
    verdict = run(code, check=check)
    assert verdict.kind is Kind.WRONG_VALUE, verdict.message
    assert "answer" in verdict.message
    assert "returned a tensor int64 [4, 3]" in verdict.message
