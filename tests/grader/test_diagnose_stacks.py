"""Stacks of ranks that hang: which rank to look at first."""

from __future__ import annotations

from pathlib import Path

import pytest

from workshop.diagnose.logs import read_logs
from workshop.diagnose.report import diagnose

ROOT = Path(__file__).resolve().parents[2]

# Three ranks of DDP, recorded with torch 2.13.0 and gloo by py-spy 0.4.3.
IN_BACKWARD = """\
Process 27966: /venv/bin/python -u train.py late
Python v3.11.7 (/usr/bin/python3.11)

Thread 27966 (idle): "MainThread"
    _engine_run_backward (torch/autograd/graph.py:979)
    backward (torch/autograd/__init__.py:395)
    Tensor.backward (torch/_tensor.py:623)
    step (train.py:9)
    main (train.py:24)
    <module> (train.py:26)
"""
READS = """\
Process 27973: /venv/bin/python -u train.py late
Python v3.11.7 (/usr/bin/python3.11)

Thread 27973 (idle): "MainThread"
    read_image (train.py:5)
    main (train.py:21)
    <module> (train.py:26)
Thread 27980 (idle): "Thread-1 (beat)"
    wait (threading.py:331)
    beat (train.py:90)
    run (threading.py:982)
"""
IN_BARRIER = """\
Process 5907: /venv/bin/python -u train.py path
Python v3.11.7 (/usr/bin/python3.11)

Thread 5907 (idle): "MainThread"
    barrier (torch/distributed/distributed_c10d.py:5356)
    _exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:83)
    main (train.py:23)
    <module> (train.py:26)
"""
# What faulthandler.dump_traceback_later printed of two of them.
DUMPED = """\
Timeout (0:00:12)!
Thread 0x00007fbfe866cb80 (most recent call first):
  File "/v/site-packages/torch/autograd/graph.py", line 979 in _engine_run_backward
  File "/v/site-packages/torch/_tensor.py", line 623 in backward
  File "/app/train.py", line 9 in step
  File "/app/train.py", line 26 in <module>
"""
DUMPED_IN_IMAGE = """\
Timeout (0:00:12)!
Thread 0x00007f315bfeab80 (most recent call first):
  File "/app/train.py", line 5 in read_image
  File "/app/train.py", line 26 in <module>
"""
FIRST_DUMP = """\
Timeout (0:00:06)!
Thread 0x00007f315bfeab80 (most recent call first):
  File "/app/train.py", line 24 in main
  File "/app/train.py", line 26 in <module>
"""
SENDS = """\
Thread 0x1A2B (idle): "MainThread"
    send (torch/distributed/distributed_c10d.py:2500)
    exchange (ring.py:8)
    <module> (ring.py:20)
"""


def told(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    log = read_logs([str(folder / name) for name in files])
    lines, sure = diagnose(log, ROOT)
    assert not sure
    return "\n".join(lines)


def in_one_log(texts: list[str]) -> str:
    """As torch's own prefix marks the lines of each rank, in turn."""
    marked = [
        [f"[rank{rank}]: {line}" for line in text.splitlines()]
        for rank, text in enumerate(texts)
    ]
    most = max(map(len, marked))
    return "\n".join(one[at] for at in range(most) for one in marked if at < len(one))


def test_rank_that_waits_for_no_other_is_named_first(tmp_path):
    files = {"rank0.txt": IN_BACKWARD, "rank1.txt": IN_BACKWARD, "rank2.txt": READS}
    said = told(tmp_path, files)
    assert "ranks 0 and 1: in backward, called at train.py:9 in step\n" in said
    assert "rank 2: at train.py:5 in read_image\n" in said
    assert "Look at rank 2 first" in said


def test_different_calls_are_no_meeting(tmp_path):
    said = told(tmp_path, {"rank0.txt": IN_BACKWARD, "rank1.txt": IN_BARRIER})
    assert "rank 1: in barrier, called at train.py:23 in main\n" in said
    assert "They wait in different calls" in said


def test_processes_of_one_file_have_their_numbers(tmp_path):
    said = told(tmp_path, {"stacks.txt": IN_BACKWARD + IN_BARRIER})
    assert "process 27966: in backward" in said and "process 5907: in barrier" in said


def test_one_call_of_all_leaves_who_is_not_here(tmp_path):
    said = told(tmp_path, {"rank0.txt": IN_BARRIER, "rank1.txt": IN_BARRIER})
    assert "All wait in the same call." in said
    alone = told(tmp_path, {"rank0.txt": IN_BARRIER})
    assert "Take the stacks of all other ranks, too." in alone


def test_sends_need_a_look_at_each_partner(tmp_path):
    said = told(tmp_path, {"rank0.txt": SENDS, "rank1.txt": SENDS})
    assert "ranks 0 and 1: in send, called at ring.py:8 in exchange\n" in said
    assert "sends and receives" in said


@pytest.mark.parametrize("together", [False, True])
def test_dumps_of_faulthandler_are_read_too(tmp_path, together):
    texts = [DUMPED, FIRST_DUMP + DUMPED_IN_IMAGE]
    files = {"rank0.txt": texts[0], "rank1.txt": texts[1]}
    if together:
        files = {"job.log": in_one_log(texts)}
    said = told(tmp_path, files)
    assert "rank 0: in backward, called at train.py:9 in step\n" in said
    assert "rank 1: at train.py:5 in read_image\n" in said, "its last dump counts"
    assert "Look at rank 1 first" in said


def test_log_without_stacks_has_none(tmp_path):
    said = told(tmp_path, {"rank0.txt": "step 1 loss 2.3\nstep 2 loss 2.2\n"})
    assert "No failure found" in said


TIMED_OUT = "".join(
    f"[rank{rank}]:[E1126 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog "
    "caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, "
    "NumelIn=26214400, NumelOut=26214400, Timeout(ms)=600000) ran for 600027 "
    "milliseconds before timing out.\n"
    for rank in (0, 1)
)


def test_stacks_beside_a_timeout_say_whom_it_waited_for(tmp_path):
    files = {"rank0.txt": IN_BACKWARD, "rank1.txt": IN_BACKWARD, "rank2.txt": READS}
    said = told(tmp_path, {"job.log": TIMED_OUT} | files)
    assert "A collective timed out" in said
    assert "Main threads, in the stacks of 3 processes:" in said
    assert "Look at rank 2 first" in said


def test_stack_of_one_process_beside_a_timeout_says_nothing(tmp_path):
    said = told(tmp_path, {"job.log": TIMED_OUT, "rank0.txt": IN_BACKWARD})
    assert "A collective timed out" in said and "Main thread" not in said


def test_rank_that_surely_failed_needs_no_stacks(tmp_path):
    failed = "[rank2]: ValueError: image 17 has no label\n"
    files = {"rank0.txt": IN_BACKWARD, "rank1.txt": IN_BACKWARD}
    said = told(tmp_path, {"job.log": failed} | files)
    assert "First to fail: rank 2" in said and "Main thread" not in said
