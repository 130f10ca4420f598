"""``workshop diagnose``: which rank failed first, which waited, which is absent."""

from __future__ import annotations

import pytest

from tests.grader.test_diagnose import ROOT, written
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.report import diagnose, named

TIMED_OUT = (
    "[rank{rank}]:[E1126 10:00:00.123456789 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, "
    "OpType={op}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for 600020 "
    "milliseconds before timing out.\n"
)
AT_WORK = (
    "[rank{rank}]:[E1126 10:00:01.123456789 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG "
    "GUID {group} Rank {rank}] Exception (either an error or timeout) detected by "
    "watchdog at work: {number}, last enqueued NCCL work: {last}, last completed NCCL "
    "work: 4.\n"
)
INFORMED = (
    "[rank{rank}]:[E1126 10:00:01.123456789 ProcessGroupNCCL.cpp:1685] [PG ID 0 PG "
    "GUID 0(default_pg) Rank {rank}] Received a dump signal due to a collective "
    "timeout from rank 0 and we will try our best to dump the debug info. Last "
    "enqueued NCCL work: {last}, last completed NCCL work: {last}.\n"
)


def timed_out(rank, number, op="ALLREDUCE", size=4):
    return TIMED_OUT.format(rank=rank, number=number, op=op, size=size)


def read(tmp_path, text):
    log = written(tmp_path, text)
    first = first_failed(log)
    sure = named(candidates(load(ROOT), log, first))
    return first, sure and sure.cause.name


@pytest.mark.parametrize(
    "other", [{"op": "_ALLGATHER_BASE"}, {"size": 8}], ids=["operation", "size"]
)
def test_same_number_and_another_call_is_a_mismatch_of_both_ranks(tmp_path, other):
    first, cause = read(tmp_path, timed_out(0, 7) + timed_out(1, 7, **other))
    assert cause == "collective_mismatch"
    assert first.ranks == ()
    assert "rank 0 called ALLREDUCE of 4 elements, and rank 1 called" in first.reason


def test_uneven_all_to_all_is_no_mismatch(tmp_path):
    text = timed_out(0, 7, "ALLTOALL_BASE", 4) + timed_out(1, 7, "ALLTOALL_BASE", 8)
    assert read(tmp_path, text)[1] is None


def test_numbers_of_different_groups_are_not_compared(tmp_path):
    of_groups = [(0, 12, 90), (1, 13, 57)]
    text = "".join(
        timed_out(rank, number)
        + AT_WORK.format(rank=rank, group=group, number=number, last=number)
        for rank, group, number in of_groups
    )
    first, cause = read(tmp_path, text)
    assert cause is None and (first is None or first.ranks == ())
    same = text.replace("GUID 13", "GUID 12")
    assert read(tmp_path, same)[0].ranks == (1,)


def test_rank_that_was_only_told_to_dump_did_not_join(tmp_path):
    text = "".join(timed_out(rank, 5) for rank in (0, 1, 3))
    first, _ = read(tmp_path, text + INFORMED.format(rank=2, last=4))
    assert first.ranks == (2,) and not first.sure


def test_report_of_torch_names_the_absent_ranks(tmp_path):
    row = "   - [1, 2] finished collective #4, but didn't join collective #5\n"
    assert read(tmp_path, timed_out(0, 5) + row)[0].ranks == (1, 2)


KEY = (
    "[rank{0}]: torch.distributed.DistBackendError: [{0}] is setting up NCCL "
    "communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key "
    "'0', but store->get('0') got error: {1}\n"
)


def test_key_of_the_store_says_for_whom_a_rank_waited(tmp_path):
    text = KEY.format(1, "Socket Timeout") + KEY.format(2, "Socket Timeout")
    first, cause = read(tmp_path, text)
    assert first.ranks == (0,) and cause == "late_first_collective"


def test_own_error_of_the_rank_that_others_waited_for_is_the_cause(tmp_path):
    text = KEY.format(1, "Socket Timeout") + "[rank0]: MemoryError\n"
    first, cause = read(tmp_path, text)
    assert first.ranks == (0,) and cause == "allocation_failed"
    first, cause = read(tmp_path, text.replace("MemoryError", "ValueError: 63 pixels"))
    assert first.ranks == (0,) and cause is None


@pytest.mark.parametrize(
    ("count", "cause"), [(1, "fewer_ranks"), (4, "more_ranks"), (2, None)]
)
def test_numbers_of_a_barrier_tell_fewer_from_more(tmp_path, count, cause):
    text = (
        "RuntimeError: Timed out initializing process group in store based barrier on "
        f"rank: 0, for key: store_based_barrier_key:1 (world_size=2, worker_count="
        f"{count}, timeout=0:02:00)\n"
    )
    assert read(tmp_path, text)[1] == cause


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "NCCL WARN Call to ibv_reg_mr failed: Cannot allocate memory",
            "locked_memory",
        ),
        ("OSError: [Errno 12] Cannot allocate memory", "allocation_failed"),
        ("SemLock: sem_open: Cannot allocate memory", "shared_memory_full"),
        (
            "DistNetworkError: n1: Temporary failure in name resolution",
            "name_not_resolved",
        ),
        (
            "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in "
            "name resolution>",
            "no_internet",
        ),
    ],
)
def test_same_words_of_another_speaker_are_another_cause(tmp_path, line, cause):
    assert read(tmp_path, line + "\n")[1] == cause


def test_victims_and_absent_ranks_are_listed_apart(tmp_path):
    lost = "[rank{}]: RuntimeError: Connection closed by peer [127.0.0.1]:2997\n"
    text = (
        'world_size: 4\n[rank2]:   File "train.py", line 3, in step\n'
        "[rank2]: ValueError: label 7 of 5\n" + lost.format(0) + lost.format(1)
    )
    told, _ = diagnose(written(tmp_path, text), ROOT)
    assert told[0].startswith("First to fail: rank 2")
    assert told[1] == "    Failed because of it, or later: ranks 0 and 1"
    assert told[2] == "    No sign of life in this log: rank 3"
    assert "Rank 2's own words:" in told


def test_first_ranks_own_words_are_whole_where_others_only_timed_out(tmp_path):
    words = "ValueError: " + "a very long reason, " * 20 + "the end"
    text = f"[rank3]: {words}\n" + timed_out(0, 5) + timed_out(1, 5)
    told, sure = diagnose(written(tmp_path, text), ROOT)
    assert not sure and told[0].startswith("First to fail: rank 3")
    assert any(words in line for line in told)
    assert not any("A collective timed out" in line for line in told)


def test_nccls_own_words_are_quoted_beside_the_wrapper(tmp_path):
    text = (
        "n1:4711:4720 [0] bootstrap.cc:42 NCCL WARN Something that nobody knows\n"
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: P.cpp:1, "
        "internal error\n[rank0]: ncclInternalError: Internal check failed.\n"
    )
    told, _ = diagnose(written(tmp_path, text), ROOT)
    assert "NCCL's own words:" in told
    assert any("Something that nobody knows" in line for line in told)


def test_log_of_one_rank_makes_no_other_rank_suspect(tmp_path):
    """Whether rank 0 is silent isn't known: its lines are in another file."""
    first, _ = read(tmp_path, timed_out(2, 7) + timed_out(2, 8))
    assert first.ranks == ()


def test_product_in_an_error_is_no_world_size(tmp_path):
    text = (
        "[rank0]: AssertionError: train_batch_size is not equal to "
        "micro_batch_per_gpu * gradient_acc_step * world_size 32 != 2 * 1 * 8\n"
    )
    told, _ = diagnose(written(tmp_path, text), ROOT)
    assert not any("No sign of life" in line for line in told)
