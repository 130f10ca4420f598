"""What docs/lessons/03_collectives says about torch.distributed, tried out.

Each test quotes its sentence on the page. The mistakes that the exercises teach are
tried again, in the grader, by tests/exercises/03_*/answers.md.
"""

import re
import subprocess
import sys

import pytest
import torch.distributed as dist

from tests.docs.forked_ranks import HANGS, ranks, values
from tests.docs.pages import ROOT, checked_page, lesson_source
from tests.launched import environment

pytestmark = pytest.mark.full

on_the_page = checked_page("03_collectives")

OWN = "t = torch.arange(3.0) + 10 * rank\n"


# -- start -------------------------------------------------------------------------
@pytest.mark.nightly
def test_the_program_reads_the_variables_of_torchrun():
    """Srun starts one torchrun, which starts the ranks: alone, srun's tasks refuse."""
    on_the_page("so ``srun`` starts one torchrun, which starts the ranks")
    page = lesson_source("03_collectives").replace("\\\n", " ")
    lines = [" ".join(line.split()) for line in re.findall(r"\$ (srun .*)", page)]
    assert lines and all("--ntasks=1 " in line for line in lines)
    assert all(" torchrun --standalone " in line for line in lines)
    task = {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0"}
    done = subprocess.run(
        [sys.executable, "src/03_collectives.py"],
        cwd=ROOT,
        env=environment(**task),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "a single rank has no partner" in done.stderr


# -- calls -------------------------------------------------------------------------
def test_collectives_write_in_place_and_return_none():
    """Collectives write into the tensors that you pass and return ``None``."""
    code = OWN + "result = [dist.all_reduce(t), dist.broadcast(t, 0), t.tolist()]"
    assert values(3, code) == [[None, None, [30.0, 33.0, 36.0]]] * 3


def test_nothing_is_promised_of_reduce_outside_the_root():
    """Gloo leaves partial sums behind: there's no promise about them."""
    found = values(3, OWN + "dist.reduce(t, dst=0); result = t.tolist()")
    assert found[0] == [30.0, 33.0, 36.0]
    own = [[10.0, 11.0, 12.0], [20.0, 21.0, 22.0]]
    assert found[1:] != own, "gloo no longer touches the others: change the page"


def test_sharding_of_parameters_sends_half_as_much_again():
    """Lesson 15 says the same, and test_which_parallelism.py computes it."""
    on_the_page("If you shard the parameters as well, it costs half as much again")
    lesson_15 = lesson_source("15_sharded_data_parallel")
    assert "Stage 3 sends half as much again" in lesson_15


def test_reduce_scatter_then_all_gather_is_all_reduce():
    """Run those two one after the other, and you've done an all_reduce."""
    code = (
        OWN
        + """if True:
        piece, whole = torch.empty(1), torch.empty(3)
        dist.reduce_scatter_single(piece, t)
        dist.all_gather_single(whole, piece)
        dist.all_reduce(t)
        result = torch.equal(whole, t)"""
    )
    assert values(3, code) == [True] * 3


def test_older_names_are_beside_the_new_ones():
    """Before torch 2.13 their names were ...: both names are there."""
    for name in ("all_gather_single", "reduce_scatter_single"):
        assert hasattr(dist, name)
    for name in ("all_gather_into_tensor", "reduce_scatter_tensor"):
        assert hasattr(dist, name)


def test_an_asynchronous_call_may_be_read_only_after_wait():
    """With ``async_op=True`` they return a Work at once."""
    code = (
        OWN
        + """if True:
        import os, time
        while rank == 2 and not os.path.exists(looked):
            time.sleep(0.02)
        work = dist.all_reduce(t, async_op=True)
        early = t.clone()
        if rank == 0:
            open(looked, "w").close()
        work.wait()
        result = [early.tolist() == t.tolist(), t.tolist()]"""
    )
    found = values(3, code)
    assert [said[1] for said in found] == [[30.0, 33.0, 36.0]] * 3
    assert found[0][0] is False  # rank 2 had not come when rank 0 looked


# -- deadlocks -----------------------------------------------------------------------
def test_send_waits_even_for_four_bytes():
    """``dist.send`` waits for the receiver even if it sends only four bytes."""
    code = "dist.send(torch.zeros(1), (rank + 1) % world_size)"
    assert ranks(3, code) == [HANGS] * 3
    code += " if rank == 0 else dist.recv(torch.zeros(1), 0) if rank == 1 else None"
    assert ranks(3, code, patience=20) == [["value", None]] * 3


EXTRA_CALL = """if True:
    import traceback
    from datetime import timedelta
    group = dist.new_group(timeout=timedelta(seconds=2))
    result = []
    try:
        for value in [100.0] * (rank == 0) + {later}:
            t = torch.tensor([value + rank])
            dist.all_reduce(t, group=group)
            result.append(t.item())
    except RuntimeError:
        result.append(traceback.format_exc())"""


@pytest.mark.nightly
@pytest.mark.parametrize("size", [2, 4])
def test_an_extra_call_of_rank_0_is_paired_with_the_next_of_the_others(size):
    """Wrong numbers without an error, and rank 0 hangs in its *last* call."""
    on_the_page("rank 0 times out if no collective follows; otherwise its extra call")
    alone, *others = values(size, EXTRA_CALL.format(later="[]"))
    assert len(alone) == 1 and "Timed out" in alone[0]
    assert others == [[]] * (size - 1)
    first, *others = values(size, EXTRA_CALL.format(later="[1.0, 11.0]"))
    right = [sum(value + rank for rank in range(size)) for value in (1.0, 11.0)]
    # what rank 0 passed one call earlier, instead of 1 and of 11
    wrong = [right[0] - 1 + 100, right[1] - 11 + 1]
    assert others == [wrong] * (size - 1)
    assert first[:2] == wrong and "Timed out" in first[2] and len(first) == 3


def test_a_traceback_of_gloo_shows_where_a_rank_waited():
    """It shows the line where *that* rank waited, and doesn't name the missing one."""
    on_the_page("also shows the line where *that* rank waited")
    on_the_page("the error that you finally get doesn't say which rank is missing")
    on_the_page("until a time-out, which doesn't name the missing rank")
    (text,) = values(2, EXTRA_CALL.format(later="[]"))[0]
    lines = EXTRA_CALL.splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "all_reduce" in line)
    assert f'File "<string>", line {number}, in <module>' in text
    assert ", in all_reduce" in text
    assert "rank" not in text.lower().rpartition("runtimeerror")[2]


def test_another_order_gives_wrong_numbers_if_the_shapes_fit():
    """Or wrong numbers and no error at all, if the shapes happen to fit."""
    code = """if True:
        small, large = torch.ones(2), torch.full((2,), 100.0)
        for t in ([small, large] if rank else [large, small]):
            dist.all_reduce(t)
        result = [small.tolist(), large.tolist()]"""
    right = [[3.0, 3.0], [300.0, 300.0]]
    assert all(found != right for found in values(3, code))


def test_detail_says_nothing_of_send_and_receive():
    """``all_send`` times out in the same way with the variable as without it."""
    code = """if True:
        from datetime import timedelta
        group = dist.new_group(timeout=timedelta(seconds=1))
        dist.send(torch.zeros(1), (rank + 1) % world_size, group=group)"""
    found = ranks(3, code, patience=20, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    told = [said[2] for said in found]
    assert any("Timed out waiting 1000ms for send" in text for text in told)
    assert not any("rank" in text.lower() for text in told)


@pytest.mark.parametrize(
    ("everyone", "named"), [(False, "Rank 1 failed"), (True, "Ranks 1, 2 failed")]
)
def test_monitored_barrier_names_the_missing_ranks(everyone, named):
    """By default, it names the first missing rank that it finds."""
    on_the_page("with ``wait_all_ranks=True``, it names all of them")
    code = f"""if True:
        from datetime import timedelta
        if rank == 0:
            second = timedelta(seconds=1)
            dist.monitored_barrier(timeout=second, wait_all_ranks={everyone})"""
    found = ranks(3, code, patience=20)
    assert found[0][0] == "raised" and f"{named} to pass" in found[0][2]
    assert ("2" in found[0][2].partition(" failed")[0]) is everyone


def test_monitored_barrier_waits_for_half_an_hour_whatever_its_group_does():
    """It waits for 30 minutes unless you pass a time-out."""
    code = """if True:
        from datetime import timedelta
        group = dist.new_group(timeout=timedelta(seconds=5))
        dist.barrier(group)  # both are connected
        if rank == 1:
            os._exit(0)  # before its time is up
        dist.monitored_barrier(group)"""
    found = ranks(2, "import os\n" + code, patience=20)
    assert "Rank 1 failed to pass monitoredBarrier in 1800000 ms" in found[0][2]


def test_monitored_barrier_is_gloos_alone():
    """With gloo, and only there: the backend of this group is another one."""
    code = """if True:
        import torch.distributed as dist
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
        dist.monitored_barrier()"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "monitored_barrier is only implemented for GLOO backend" in done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("all_gather_into_tensor(torch.zeros(1), t)", "all_gather_single"),
        ("reduce_scatter_tensor(torch.zeros(1), t)", "reduce_scatter_single"),
    ],
)
def test_old_names_of_collectives_work_and_warn(old, new):
    """The old names still work, with a ``FutureWarning``."""
    code = f"""if True:
        import warnings
        t = torch.ones(1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dist.{old}
        result = [(w.category.__name__, str(w.message)) for w in caught]"""
    (told,) = values(1, code)
    assert any(kind == "FutureWarning" and new in text for kind, text in told), told


# -- common mistakes -----------------------------------------------------------------
def test_assigning_the_result_gives_a_none():
    """``t = dist.all_reduce(t)``: 'NoneType' object ... on all ranks."""
    found = ranks(3, OWN + "t = dist.all_reduce(t)\nt = t / world_size", patience=20)
    assert all("NoneType" in said[2] for said in found)
    found = ranks(3, OWN + "t = dist.all_reduce(t)\nt.item()", patience=20)
    assert all("'NoneType' object" in said[2] for said in found)


def test_average_divided_again_is_too_small():
    """Averaged by ``ReduceOp.AVG`` and divided again."""
    code = OWN + "dist.all_reduce(t, op=dist.ReduceOp.AVG); result = t.tolist()"
    assert values(3, code) == [[10.0, 11.0, 12.0]] * 3


def test_one_tensor_many_times_makes_all_parts_equal():
    """``[t] * world_size`` is one tensor many times."""
    code = (
        OWN
        + """if True:
        slots = [torch.empty(3)] * world_size
        dist.all_gather(slots, t)
        result = [slot.tolist() for slot in slots]"""
    )
    for found in values(3, code):
        assert found[0] == found[1] == found[2]


@pytest.mark.nightly
@pytest.mark.parametrize("start", ["isend", "irecv"])
def test_second_wait_on_a_message_hangs(start):
    """With gloo you can wait only once for a finished message."""
    other = "recv" if start == "isend" else "send"
    code = (
        OWN
        + f"""if True:
        if rank == 0:
            work = dist.{start}(t, 1)
            work.wait()
            work.wait()
        elif rank == 1:
            dist.{other}(t, 0)"""
    )
    assert ranks(3, code, patience=5) == [HANGS, ["value", None], ["value", None]]


def test_second_wait_on_a_collective_is_harmless():
    """The page speaks of send and receive only."""
    code = OWN + "w = dist.all_reduce(t, async_op=True); w.wait(); w.wait()"
    assert values(3, code) == [None] * 3


def test_a_view_that_is_not_contiguous_overwrites_neighbors():
    """The right numbers in the wrong places, and neighbors overwritten."""
    code = """if True:
        whole = torch.arange(6.0).view(3, 2)
        column = whole[:, 0]
        dist.all_reduce(column)
        result = whole.tolist()"""
    wanted = [[0.0, 1.0], [6.0, 3.0], [12.0, 5.0]]
    for found in values(3, code):
        assert found != wanted
        assert [row[1] for row in found] != [1.0, 3.0, 5.0]


def test_gloo_does_not_notice_different_reductions():
    """All ranks agree, and all are wrong: ``SUM`` on one rank, ``MAX`` on another."""
    code = (
        OWN
        + """if True:
        op = dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM
        dist.all_reduce(t, op=op)
        result = t.tolist()"""
    )
    found = values(3, code)
    assert found[0] == found[1] == found[2] != [30.0, 33.0, 36.0]


@pytest.mark.parametrize(
    "tensor",
    [
        "torch.ones(1000, dtype=torch.float64 if rank == 1 else torch.float32)",
        "torch.ones(1500 if rank == 1 else 1000)",
    ],
    ids=["dtype", "shape"],
)
def test_another_dtype_or_shape_on_one_rank_aborts(tensor):
    """SIGABRT on one rank, *Connection closed by peer* on others."""
    found = ranks(3, f"dist.all_reduce({tensor})", patience=10)
    assert ["signal", -6] in found
    others = [said for said in found if said != ["signal", -6]]
    assert any("onnection" in said[-1] for said in others)


def test_own_rank_as_root_hangs():
    """Hangs in ``broadcast``, each rank in the same line."""
    assert ranks(3, OWN + "dist.broadcast(t, src=rank)") == [HANGS] * 3


def test_after_new_group_by_members_only_the_next_group_hangs():
    """Hangs at a new group, although an earlier one works."""
    code = """if True:
        first = dist.new_group([0, 1]) if {} else None
        if rank < 2:
            dist.barrier(group=first)
        second = dist.new_group([0, 1, 2])
        dist.barrier(group=second)"""
    only_first, _, _ = code.partition("        second")
    assert values(3, only_first.format("rank < 2")) == [None] * 3
    assert ranks(3, code.format("rank < 2")) == [HANGS] * 3
    assert values(3, code.format("True")) == [None] * 3


def test_src_is_a_global_rank_and_group_src_is_not():
    """ValueError: *Global rank 0 is not part of group*."""
    code = """if True:
        group = dist.new_group([1, 2])
        t = torch.tensor([float(rank)])
        if rank > 0:
            dist.broadcast(t, {}=0, group=group)
        result = t.item()"""
    found = ranks(3, code.format("src"), patience=20)
    for said in found[1:]:
        assert said[:2] == ["raised", "ValueError"]
        assert "Global rank 0 is not part of group" in said[2]
    assert values(3, code.format("group_src")) == [0.0, 1.0, 1.0]


def test_a_ring_the_wrong_way_round_is_right_with_two_ranks_only():
    """A ring is right with 2 ranks and wrong with 4."""
    code = """if True:
        got = torch.zeros(1)
        sending = dist.isend(torch.tensor([float(rank)]), (rank - 1) % world_size)
        dist.recv(got, (rank + 1) % world_size)
        sending.wait()
        result = got.item() == (rank - 1) % world_size"""
    assert values(2, code) == [True, True]
    assert values(4, code) == [False] * 4


def test_two_ways_to_reduce_may_differ_in_the_last_bits():
    """A sum of floating-point numbers depends on the order in which it is taken."""
    numbers = [0.1, 0.2, 0.3]
    assert (numbers[0] + numbers[1]) + numbers[2] != numbers[0] + (
        numbers[1] + numbers[2]
    )
