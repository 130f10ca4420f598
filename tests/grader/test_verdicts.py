"""Each classic mistake gets its verdict, each rank's line, and the right name."""

from __future__ import annotations

import sys
import time
import traceback
from types import SimpleNamespace

import pytest

from grader.engine import channel, peeking, processes, supervisor, whereabouts
from grader.engine.engine import Engine
from grader.verdicts.verdict import MAX_LINES, Kind
from tests.grader.support import RIGHT, grade_code

HEAD = """
import time
import torch
import torch.distributed as dist

def answer(t):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
"""


def body(text: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in text.strip().splitlines())


SUM = "dist.all_reduce(t)\n"
# name -> (code, verdict, suspicion, words of the message)
CASES = {
    # exceptions
    "uses what all_reduce returns": (
        "return dist.all_reduce(t) / 2",
        Kind.EXCEPTION,
        "none_result",
        ["ranks 0, 1 and 2 raised TypeError", "line 9", "in place"],
    ),
    "exception on one rank, others wait": (
        "if rank == 1:\n    raise ValueError('no')\n" + SUM + "return t",
        Kind.EXCEPTION,
        "",
        ["rank 1 raised ValueError: no", "rank 0: waits in all_reduce", "line 11"],
    ),
    "exception of gloo, which names each rank and its time": (
        "dist.reduce_scatter_single(torch.empty(3), torch.ones(7))",
        Kind.EXCEPTION,
        "",
        ["ranks 0, 1 and 2 raised RuntimeError: Check failed"],
    ),
    "hole still open": (
        SUM + "raise NotImplementedError('TODO 2 of 3')",
        Kind.UNFINISHED,
        "",
        ["TODO 2 of 3 is still open, at line 10"],
    ),
    # hangs
    "only rank 0 enters": (
        "if rank == 0:\n    dist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "not_everybody",
        ["rank 0: waits in all_reduce", "line 10", "only some ranks"],
    ),
    "all send first": (
        "dist.send(t, right)\ndist.recv(t, left)\nreturn t",
        Kind.HANG,
        "all_send",
        ["rank 2: waits in send(float64[3], to rank 0) at line 9", "none receives"],
    ),
    "all receive first": (
        "dist.recv(t, left)\ndist.send(t, right)\nreturn t",
        Kind.HANG,
        "all_receive",
        ["rank 2: waits in recv", "none has sent"],
    ),
    "waits for an irecv nobody sends": (
        "work = dist.irecv(t, left)\nwork.wait()\nreturn t",
        Kind.HANG,
        "all_receive",
        ["line 10: work.wait()"],
    ),
    "tags differ": (
        "if rank == 0:\n    dist.send(t, 1, tag=1)\nif rank == 1:\n"
        "    dist.recv(t, 0, tag=2)\nreturn t",
        Kind.HANG,
        "tags_differ",
        ["tag 1", "tag 2"],
    ),
    "a rank that does not exist": (
        "if rank == 2:\n    dist.send(t, 3)\nreturn t",
        Kind.EXCEPTION,
        "",
        ["rank 2 raised ValueError: send names rank 3, but the ranks are 0 to 2"],
    ),
    "one message is never taken": (
        "work = dist.isend(t.clone(), right)\ndist.recv(t, left)\nif rank == 1:\n"
        "    dist.send(t, 0)\ndist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "partner_missing",
        ["rank 1: waits in send(float64[3], to rank 0) at line 12"],
    ),
    "tags differ on all ranks": (
        "work = dist.isend(t.clone(), right, tag=1)\ndist.recv(t, left, tag=2)\n"
        "return t",
        Kind.HANG,
        "tags_differ",
        ["never matches"],
    ),
    "every rank is the root": (
        "dist.broadcast(t, src=rank)\nreturn t",
        Kind.HANG,
        "own_root",
        ["root 0", "root 1", "root 2", "first difference"],
    ),
    "one more iteration on rank 0": (
        "for _ in range(3 if rank else 4):\n    dist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "unequal_iterations",
        ["rank 0: waits in all_reduce", "different lengths"],
    ),
    "group rank where the global rank is meant": (
        "g = dist.new_group([1, 2])\nif rank:\n"
        "    dist.broadcast(t, src=0, group=g)\nreturn t",
        Kind.EXCEPTION,
        "group_rank",
        ["ranks 1 and 2 raised ValueError", "a group rank was passed"],
    ),
    "exception swallowed on one rank": (
        "try:\n    if rank == 1:\n        raise OSError\n    dist.all_reduce(t)\n"
        "except OSError:\n    pass\nreturn t",
        Kind.HANG,
        "not_everybody",
        ["rank 0: waits in all_reduce", "rank 1: went past it"],
    ),
    "second wait on an isend": (
        "if rank == 0:\n    work = dist.isend(t, 1)\n    work.wait()\n    work.wait()\n"
        "if rank == 1:\n    dist.recv(t, 0)\nreturn t",
        Kind.HANG,
        "waited_twice",
        ["rank 0: waits in send", "line 12: work.wait()", "second one"],
    ),
    "send and receive in a circle": (
        "if rank % 2 == 0:\n    dist.send(t, right)\n    dist.recv(t, left)\nelse:\n"
        "    dist.recv(t.clone(), left)\n    dist.send(t, right)\ndist.send(t, right)\n"
        "dist.recv(t, left)\nreturn t",
        Kind.HANG,
        "circle",
        ["waits in send", "change their order on one rank"],
    ),
    "the wrong neighbor": (
        "work = dist.isend(t.clone(), right)\ndist.recv(t, right)\n"
        "work.wait()\nreturn t",
        Kind.HANG,
        "partner_missing",
        ["waits in recv(float64[3], from rank 1)", "wrong neighbor"],
    ),
    "what is waited for is not what was called last": (
        "works = [dist.irecv(t, left)]\nif rank != 1:\n"
        "    works.append(dist.isend(t.clone(), right))\n"
        "for work in works:\n    work.wait()\nreturn t",
        Kind.HANG,
        "partner_missing",
        ["rank 2: waits in recv(float64[3], from rank 1)"],
    ),
    "the others have left the function": (
        "if rank == 0:\n    dist.broadcast(t, src=0)\nreturn t",
        Kind.HANG,
        "not_everybody",
        ["only some ranks"],
    ),
    # messages
    "room for another dtype": (
        "if rank == 0:\n    dist.send(t, 1)\nif rank == 1:\n"
        "    dist.recv(torch.empty(3), 0)\nreturn t",
        Kind.CRASH,
        "message_differs",
        [
            "first difference: message no. 1 from rank 0 to rank 1",
            "rank 0: send(float64[3], to rank 1) at line 10",
            "rank 1: recv(float32[3], from rank 0) at line 12",
            "it last printed: op.preamble.length <= op.nbytes. 24 vs 12",
        ],
    ),
    "another dtype of one width": (
        "if rank == 0:\n    dist.send(t, 1)\nif rank == 1:\n"
        "    t = torch.empty(3, dtype=torch.int64)\n    dist.recv(t, 0)\nreturn t",
        Kind.WRONG_VALUE,
        "message_differs",
        ["rank 1: recv(int64[3], from rank 0)"],
    ),
    # works
    "a Work that is dropped": (
        "dist.isend(t.clone(), right)\nother = t.clone()\ndist.recv(other, left)\n"
        "dist.all_reduce(t)\nreturn t",
        Kind.WRONG_WAY,
        "not_waited",
        ["ranks 0, 1 and 2 never waited for the Work of isend at line 9", "`wait()`"],
    ),
    "a collective that nobody waits for": (
        "time.sleep(0.3 * (rank == 2))\ndist.all_reduce(t, async_op=True)\n"
        "return t.clone()",
        Kind.WRONG_WAY,
        "not_waited",
        ["never waited for the Work of all_reduce at line 10"],
    ),
    "an old name of a collective that nobody waits for": (
        "time.sleep(0.3 * (rank == 2))\nslots = torch.zeros(3 * world_size)\n"
        "dist.all_gather_into_tensor(slots, t.float(), async_op=True)\n"
        "return slots.double().view(world_size, 3).sum(0)",
        Kind.WRONG_WAY,
        "not_waited",
        ["never waited for the Work of all_gather_into_tensor at line 11"],
    ),
    "changed before it is waited for": (
        "work = dist.all_reduce(t, async_op=True)\nt /= world_size\nwork.wait()\n"
        "return t",
        Kind.WRONG_WAY,
        "not_waited",
        [
            "ranks 0, 1 and 2 changed the tensor of all_reduce at line 9 before",
            "line 10: t /= world_size",
        ],
    ),
    "its neighbor in memory is changed": (
        "pair = torch.stack([t, t])\nwork = dist.all_reduce(pair[0], async_op=True)\n"
        "pair[1] += 1\nwork.wait()\npair[0] += 0\nreturn pair[0]",
        Kind.RIGHT,
        "",
        [],
    ),
    "asks whether it is done": (
        "work = dist.all_reduce(t, async_op=True)\nwhile not work.is_completed():\n"
        "    time.sleep(0.01)\nother = t.clone()\n"
        "dist.all_reduce(other, async_op=True).get_future().wait()\nreturn t",
        Kind.RIGHT,
        "",
        [],
    ),
    "one slot for all": (
        "slots = [torch.empty_like(t)] * world_size\ndist.all_gather(slots, t)\n"
        "return sum(slots)",
        Kind.WRONG_VALUE,
        "all_slots_equal",
        ["`[t] * world_size`"],
    ),
    "past the wrapper": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "model = torch.nn.Linear(3, 1, bias=False).double()\nddp = DDP(model)\n"
        "model(t).backward()\nreturn model.weight.grad.flatten() * world_size",
        Kind.WRONG_VALUE,
        "past_ddp",
        ["went past the DDP wrapper", "read: docs/lessons/05_ddp_spawn.rst"],
    ),
    "another None than a collective's": (
        "t.grad.add_(1)\nreturn t",
        Kind.EXCEPTION,
        "no_gradient",
        ["'NoneType' object has no attribute"],
    ),
    # ledgers
    "the reduction differs": (
        "op = dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM\n"
        "dist.all_reduce(t, op=op)\nreturn t",
        Kind.LEDGER,
        "reduce_op_differs",
        ["rank 0: all_reduce(float64[3], SUM)", "ranks 1 and 2", "MAX"],
    ),
    "the order differs, silently": (
        "a, b = t.clone(), t * 2\nfor x in (a, b) if rank else (b, a):\n"
        "    dist.all_reduce(x)\nreturn a",
        Kind.WRONG_VALUE,
        "",
        ["the sum"],
    ),
    "the dtype differs": (
        "if rank == 1:\n    t = t.view(torch.int64)\ndist.all_reduce(t)\n"
        "return t.view(torch.float64)",
        Kind.LEDGER,
        "dtype_differs",
        ["int64[3]", "float64[3]"],
    ),
    "torch says that it has not implemented something": (
        "return torch.empty(3, device='meta').to('cpu')",
        Kind.EXCEPTION,
        "",
        ["NotImplementedError", "Cannot copy out of meta tensor"],
    ),
    # values
    "not averaged": (
        "dist.all_reduce(t)\nreturn t * world_size",
        Kind.WRONG_VALUE,
        "not_averaged",
        ["ranks 0, 1 and 2: is 3 times too big", "never divided"],
    ),
    "averaged twice": (
        "dist.all_reduce(t, op=dist.ReduceOp.AVG)\nreturn t",
        Kind.WRONG_VALUE,
        "averaged_twice",
        ["is 1/3 of the expected value"],
    ),
    "not communicated": (
        "return t",
        Kind.WRONG_VALUE,
        "not_communicated",
        ["own value"],
    ),
    "not waited for": (
        # rank 2 comes when the others have copied: what they have then is no chance
        "store = dist.distributed_c10d._get_default_store()\n"
        "if rank == 2:\n    store.wait(['0 copied', '1 copied'])\n"
        "work = dist.all_reduce(t, async_op=True)\n"
        "if rank == 2:\n    work.wait()\n    return t\n"
        "early = t.clone()\nstore.set(f'{rank} copied', '')\n"
        "work.wait()\nreturn early",
        Kind.WRONG_VALUE,
        "not_communicated",
        ["own value", "not waited for"],
    ),
    "reduce instead of all_reduce": (
        "dist.reduce(t, dst=0)\nreturn t",
        Kind.WRONG_VALUE,
        "only_the_root",
        ["rank 1: got", "rank 0: right", "give it to the root alone"],
    ),
    "other order": (
        SUM + "return t.flip(0)",
        Kind.WRONG_VALUE,
        "other_order",
        ["right numbers in another order"],
    ),
    "wrong shape": (
        SUM + "return t[:2]",
        Kind.WRONG_VALUE,
        "remainder",
        ["has shape [2], expected [3]"],
    ),
    "NaN": (SUM + "return t / 0 * 0", Kind.WRONG_VALUE, "nan", ["3 NaN of 3"]),
    "not a tensor": (
        SUM + "return 'three'",
        Kind.WRONG_VALUE,
        "",
        ["is a str, expected a tensor"],
    ),
    "nothing returned": (
        "dist.all_reduce(t)",
        Kind.WRONG_VALUE,
        "returns_none",
        ["is None", "return"],
    ),
    "nothing returned behind a barrier": (  # which nobody takes for a result
        "dist.barrier()",
        Kind.WRONG_VALUE,
        "",
        ["is None", "return"],
    ),
    # one rank off
    "one rank is off": (
        SUM + "return t + (rank == 1)",
        Kind.WRONG_VALUE,
        "",
        ["rank 1: got", "ranks 0 and 2: right"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_mistake_gets_its_verdict(name, run):
    code, kind, suspicion, words = CASES[name]
    verdict = run(body(code))
    assert verdict.kind is kind, verdict.message
    assert verdict.suspicion == suspicion, verdict.message
    for word in words:
        assert word in verdict.message, verdict.message
    assert len(verdict.lines) <= MAX_LINES


def test_right_answer_is_right_at_many_world_sizes(run):
    for ranks in (1, 2, 3, 4, 8):
        assert run(RIGHT, ranks=ranks).kind is Kind.RIGHT


def test_sleeping_ranks_are_not_a_deadlock(run):
    verdict = run(body("time.sleep(1.8)\n" + SUM + "return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_late_rank_is_not_a_deadlock(run):
    verdict = run(body("time.sleep(2.2 * (rank == 1))\n" + SUM + "return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_ranks_that_a_late_rank_lets_go_get_their_time(monkeypatch):
    """The late rank reports; at that moment the others have waited for long."""
    monkeypatch.setattr(processes, "state_of", lambda pid: "S")
    now, fields = time.monotonic(), channel.FIELDS
    run = object.__new__(supervisor.Run)
    run.live_count, run.changed_at, run.state = 3, now - 9, [0.0] * 3 * fields
    ranks = []
    for number in range(3):
        run.state[number * fields + channel.IN_COMM] = 1.0
        run.state[number * fields + channel.BEAT] = now
        seen = SimpleNamespace(number=number, pid=0, active_at=now - 9, mark=(0.0, 0.0))
        ranks.append(seen)
    assert run._quiet_since(ranks, now) == pytest.approx(9)
    assert run._quiet_since(ranks[:2], now) == 0


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
from grader import expect

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
from grader import expect

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
from grader import expect

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

from grader import expect

@pytest.mark.ranks(3)
def test_answer(exercise, rank, world_size, ledger):
    """The product of two DTensors that are cut against each other."""
    mesh = init_device_mesh("cpu", (world_size,))
    a, b = (distribute_tensor(torch.ones(6, 6), mesh, [Shard(dim)]) for dim in (1, 1))
    ledger.clear()
    product = exercise.multiply(a, b)
    expect.equal(ledger.ops(), ["all_gather_single"], "the collectives inside")
    expect.close(product.full_tensor(), torch.full((6, 6), 6.0), "the product")
'''


def test_ledger_sees_what_an_operation_on_dtensors_calls(run):
    """DTensor moves data inside its operations, where a mode does not look."""
    verdict = run("def multiply(a, b):\n    return a @ b\n", check=DTENSOR)
    assert verdict.kind is Kind.RIGHT, verdict.message


MEAN_OF_MEANS = '''
import pytest

from grader import expect

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


LATE_IMPORT = '''
import pytest
from grader import expect

@pytest.mark.ranks(1)
def test_answer(exercise):
    """Any number will do."""
    expect.equal(exercise.answer(), 3, "the number")
'''


@pytest.mark.full
def test_what_torch_replaces_itself_is_no_tampering(tmp_path):
    code = "import importlib\n\ndef answer():\n"
    code += "    importlib.import_module('torch._' + 'dynamo')\n    return 3\n"
    with Engine() as fresh:  # has not imported torch._dynamo yet
        verdict = grade_code(fresh, tmp_path, code, check=LATE_IMPORT)
    assert verdict.kind is Kind.RIGHT, verdict.message


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


PEEKS = {
    "frame": "sys._getframe(1).f_locals",
    "inspect": "inspect.currentframe().f_back.f_locals",
    "stack": "inspect.stack()[1].frame.f_locals",
    "eval": "eval('sys._getframe(1).f_locals')",
    "threads": "sys._current_frames()",
    "garbage": "gc.get_objects()",
    "generator": "(x for x in '').gi_frame.f_back",
    "own and another": "inspect.currentframe().f_code, sys._getframe(1).f_locals",
    "another name": "(print := sys._getframe)(inspect.currentframe().f_lineno)",
}
OWN_FRAMES = {
    "line": "f'line {inspect.currentframe().f_lineno}'",
    "function": "print(sys._getframe().f_code.co_name)",
    "variables": "len(inspect.currentframe().f_locals)",
}


@pytest.mark.parametrize("how", PEEKS)
def test_look_at_the_variables_of_the_check_is_told(how, run):
    code = body(f"import gc, inspect, sys\nfound = {PEEKS[how]}\n{SUM}return t")
    verdict = run(code)
    assert verdict.kind is Kind.TAMPERED, verdict.message
    assert "reads its caller's variables through" in verdict.message
    assert "line 10: found = " in verdict.message


@pytest.mark.parametrize("how", OWN_FRAMES)
def test_look_at_its_own_frame_is_no_tampering(how, run):
    verdict = run(
        body(f"import inspect, sys\nfound = {OWN_FRAMES[how]}\n{SUM}return t")
    )
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_own_frame_with_a_name_is_harmless_until_it_is_followed(run):
    code = "import inspect\nhere = inspect.currentframe()\n"
    code += f"print(here.f_lineno)\n{SUM}return t"
    assert run(body(code)).kind is Kind.RIGHT
    followed = code.replace("f_lineno", "f_back")
    verdict = run(body(followed))
    assert verdict.kind is Kind.TAMPERED, verdict.message


def test_look_by_an_exception_is_told(run):
    code = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
    code += f"    frame = error.__traceback__.tb_frame\n{SUM}return t"
    verdict = run(body(code))
    assert verdict.kind is Kind.TAMPERED, verdict.message
    assert "through tb_frame" in verdict.message


def test_looks_of_others_at_frames_are_no_tampering(run):
    code = "import collections, logging, traceback, warnings\n"
    code += "Point = collections.namedtuple('Point', 'x y')\n"
    code += "logging.getLogger().warning('careful')\nwarnings.warn('careful')\n"
    code += "try:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\n"
    verdict = run(body(f"{code}{SUM}return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_without_isolation_hidden_folders_stay_hidden(tmp_path):
    (tmp_path / "hidden").mkdir()
    secret = tmp_path / "hidden" / "solution.py"
    secret.touch()
    seen = peeking.Peeking(__file__, [secret.parent])
    with pytest.raises(FileNotFoundError):
        seen._judge("open", (str(secret), "r", 0), sys._getframe())
    seen._judge("open", (str(tmp_path / "other.py"), "r", 0), sys._getframe())
