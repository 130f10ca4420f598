"""``workshop diagnose`` knows who wrote a line: a pod, a process of NCCL, an agent.

Shortened and reworded from public threads, which causes.toml names as sources.
"""

from __future__ import annotations

import pytest

from tests.grader.test_diagnose import written
from tests.grader.test_diagnose_other_hands import read, told

SUMMARY = """\
[{pod}] [rank5]: OSError: [Errno 116] Stale file handle: '/home/.triton/cache/a.json'
[{pod}] E0512 14:24:41.701000 1 torch/distributed/elastic/multiprocessing/api.py:874] \
failed (exitcode: 1) local_rank: 1 (pid: 72) of binary: /usr/bin/python3
[{pod}] torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
[{pod}] Root Cause (first observed failure):
[{pod}]   rank      : 5 (local_rank: 1)
[{pod}]   exitcode  : 1 (pid: 72)
"""
JOINED = (
    "{host}:{pid}:{pid} [{gpu}] NCCL INFO comm 0x57 rank {rank} nranks {size} "
    "cudaDev {gpu} - Init COMPLETE\n"
)
WARNED = (
    "{host}:{pid}:99 [{gpu}] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq "
    "failed with error Cannot allocate memory\n"
)
RAISED = """\
[rank10]: Traceback (most recent call last):
[rank10]:   File "train.py", line 3, in <module>
[rank10]: torch.distributed.DistBackendError: Call to ibv_create_cq failed with error \
Cannot allocate memory
"""
PORT_ERROR = """\
step 812 loss 2.11
n48:34050:34121 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : \
port error
n51:73076:73185 [4] transport/net_ib.cc:1238 NCCL WARN NET/IB : Got completion from \
peer n48<37948> with error 12, opcode 2, len 1, vendor err 129
[E ProcessGroupNCCL.cpp:828] [Rank 28] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=18, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800411 \
milliseconds before timing out.
srun: error: n51: task 28: Aborted (core dumped)
"""
LOST = """\
[rank1]:[E415 21:17:08.99 ProcessGroupNCCL.cpp:552] [Rank 1] Collective \
WorkNCCL(SeqNum=335) raised the following async exception: NCCL error: remote process \
exited or there was a network error
E0415 21:17:10.03 1120 torch/distributed/elastic/multiprocessing/api.py:869] failed \
(exitcode: -6) local_rank: 0 (pid: 1151) of binary: /usr/bin/python
"""
CLOSED = (
    "W0415 21:17:09.9 1120 api.py:897] Sending process 1152 closing signal SIGTERM\n"
)
PRESSED = """\
All DDP processes registered. Starting ddp with 2 processes
Traceback (most recent call last):
  File "train.py", line 61, in <module>
    trainer.fit(model)
  File "/opt/torch/distributed/distributed_c10d.py", line 2709, in barrier
    work = default_pg.barrier(opts=opts)
KeyboardInterrupt
"""
PREEMPTED = (
    "slurmstepd: error: *** JOB 37 ON n5146 CANCELLED AT 2026-03-15T18:00:46 DUE TO "
    "PREEMPTION ***\n"
)
MORE_RANKS = (
    "RuntimeError: Timed out initializing process group in store based barrier on "
    "rank: 0, for key: store_based_barrier_key:1 (world_size=8, worker_count=16, "
    "timeout=0:30:00)\n"
)
ONE_GPU = (
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 MiB. "
    "GPU 0 has a total capacity of 23.69 GiB of which 10.94 MiB is free. {others} Of "
    "the allocated memory 7.21 GiB is allocated by PyTorch.\n"
)
OWN = "Including non-PyTorch memory, this process has 7.70 GiB memory in use."
OTHER = "Process {0} has 8.10 GiB memory in use."


def test_name_of_a_pod_in_brackets_hides_no_summary(tmp_path):
    assert read(tmp_path, SUMMARY.format(pod="lora-node-0-1-q8d4z"))[0] == (5,)


def test_word_in_brackets_that_changes_with_each_line_is_kept(tmp_path):
    text = "".join(f"[step-{n}] loss 0.{n}\n" for n in range(5))
    lines = written(tmp_path, text).lines
    assert [line.text for line in lines] == text.splitlines()


def of_nccl(ranks, size):
    """Processes that join a group of that size as these ranks, and warn."""
    members = [
        {"host": "n2", "pid": pid, "gpu": pid, "rank": rank}
        for pid, rank in enumerate(ranks, 1)
    ]
    joined = "".join(JOINED.format(size=size, **each) for each in members)
    return joined + "".join(WARNED.format(**each) for each in members)


def test_process_of_nccl_has_the_rank_that_it_joined_as(tmp_path):
    first, _, _ = read(tmp_path, of_nccl((15, 8), 16) + RAISED)
    assert first == ()
    said = told(tmp_path, of_nccl((15, 8), 16) + RAISED)[0]
    assert "ranks 8, 10 and 15 report errors" in said


@pytest.mark.parametrize("ranks, size", [((1, 1), 2), ((0, 1), 8)])
def test_ranks_in_smaller_groups_are_no_ranks_of_all(tmp_path, ranks, size):
    """Two processes with one number, or a rank that speaks and is too large."""
    lines = written(tmp_path, of_nccl(ranks, size) + RAISED).lines
    assert {line.rank for line in lines if "NCCL WARN" in line.text} == {None}


def test_port_that_lost_its_link_is_the_cause_and_no_rank_that_waited(tmp_path):
    first, cause, _ = read(tmp_path, PORT_ERROR)
    assert (first, cause) == ((), "port_lost_link")
    assert "GPU 0 of n48" in told(tmp_path, PORT_ERROR)[0]


def test_abort_of_a_rank_that_had_not_waited_is_its_own(tmp_path):
    rows = [row for row in PORT_ERROR.splitlines() if "NCCL" not in row]
    assert read(tmp_path, "\n".join(rows))[0] == (28,)


def test_only_rank_of_an_agent_is_not_rank_0(tmp_path):
    said = told(tmp_path, "world_size: 2\n" + LOST)
    assert said[0].startswith("Suspect: rank 0 (no error in the log, but rank 1 lost")
    assert "First to fail: no single rank" in told(tmp_path, LOST)[0]


def test_rank_of_an_agent_with_several_is_the_local_one(tmp_path):
    said = told(tmp_path, CLOSED + LOST)
    assert said[0].startswith("First to fail: rank 0 (torchrun's agent reports signal")


def test_launcher_of_composer_names_the_rank_that_crashed(tmp_path):
    text = "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.\n"
    assert read(tmp_path, text)[0] == (2,)


def test_rank_that_reached_the_monitored_barrier_gives_a_sign_of_life(tmp_path):
    text = (
        "[I1 ProcessGroupGloo.cpp:1] Rank 3 successfully reached monitoredBarrier\n"
        "[rank0]: RuntimeError: Rank 2 failed to pass monitoredBarrier in 30000 ms\n"
        "world_size: 4\n"
    )
    silent = [row for row in told(tmp_path, text) if "No sign of life" in row]
    assert silent == ["    No sign of life in this log: rank 1"]


def test_place_where_ctrl_c_met_the_run_is_shown(tmp_path):
    said = told(tmp_path, PRESSED)
    assert "It stood here:" in said
    assert any("in barrier" in row for row in said)


def test_earlier_end_of_the_job_is_told_beside_its_last_one(tmp_path):
    said = told(tmp_path, PREEMPTED + MORE_RANKS)
    assert said[-2:-1] == ["Before that, the job had been stopped once:"]
    assert "Before that" not in "".join(told(tmp_path, MORE_RANKS + PREEMPTED))


@pytest.mark.parametrize(
    "others, cause",
    [
        (f"{OTHER.format(7)} {OWN}", "several_on_one_gpu"),
        (f"{OWN} {OTHER.format(7)}", "several_on_one_gpu"),
        # in a container, a process doesn't know its own number
        (f"{OTHER.format(7)} {OTHER.format(8)}", "several_on_one_gpu"),
        (OTHER.format(7), "gpu_out_of_memory"),
        (OWN, "gpu_out_of_memory"),
    ],
)
def test_memory_that_other_processes_have_is_told_apart(tmp_path, others, cause):
    assert read(tmp_path, ONE_GPU.format(others=others))[2] == cause


def test_name_that_nobody_knows_is_not_an_unreachable_host(tmp_path):
    text = (
        "[W socket.cpp:558] [c10d] The IPv4 network addresses of (head, 50176) cannot "
        "be retrieved (gai error: -2 - Name or service not known).\n"
        "[E socket.cpp:610] [c10d] The client socket has failed to connect to any "
        "network address of (head, 50176).\n"
        "ValueError: The client socket has failed to connect to any network address "
        "of (head, 50176). The name or service is not known.\n"
    )
    assert read(tmp_path, text)[1] == "name_not_resolved"
