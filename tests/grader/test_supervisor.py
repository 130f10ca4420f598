"""The supervisor at moments that are rare: made to happen here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.launched import wait_until
from workshop.grader.engine import channel, rank_process, whereabouts
from workshop.system import processes, stopwatch

ROOT = Path(__file__).resolve().parents[2]

# A process starts another one and ends at the moment that is asked for. This takes
# a process of its own: the tests' one has other children.
MEANWHILE = """
import ctypes, itertools, os, time
from workshop.grader.engine import supervisor
from workshop.system import processes

ctypes.CDLL(None).prctl(supervisor._PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

def left_running(module, moment, flag):
    asked, ask = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.read(asked, 1)
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)

    def look(what, usual=getattr(module, moment)):
        seen = usual(what) if moment == "listdir" else None
        setattr(module, moment, usual)
        os.write(ask, b"x")
        os.waitid(os.P_PID, parent, os.WEXITED | flag)
        return usual(what) if seen is None else seen

    setattr(module, moment, look)
    run = object.__new__(supervisor.Run)
    run.ranks, run.left_running, run.init = [], [], None
    try:
        run.note_what_still_runs()
        return len(run.left_running)
    finally:
        run.end_everything()

moments = [(os, "listdir"), (processes, "command_of")]
for moment, zombie in itertools.product(moments, (os.WNOWAIT, 0)):
    print(moment[1], zombie > 0, left_running(*moment, zombie))
"""


def test_process_started_while_one_looks_is_seen():
    """Its parent was there when /proc was listed, and had ended when it was read."""
    done = subprocess.run(
        [sys.executable, "-c", MEANWHILE], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "listdir True 1",
        "listdir False 1",
        "command_of True 1",
        "command_of False 1",
    ]


def test_rank_that_waits_for_a_core_gets_its_time(monkeypatch):
    """What it had waited before does not count, and there is an end to it."""
    waited = {1: 5.0, 2: 0.0}
    monkeypatch.setattr(processes, "waited_for_a_core", waited.get)
    ranks = [1, 2]
    clock = stopwatch.Stopwatch(ranks)
    assert not clock.passed(10, ranks)
    waited[2] = 12.0
    clock.looked -= 15
    assert not clock.passed(10, ranks), "3 of the 15 seconds count"
    clock.looked -= 15
    assert clock.passed(10, ranks), "nobody waited in the second 15"
    clock = stopwatch.Stopwatch(ranks)
    clock.start -= 11 * stopwatch.PATIENCE
    assert clock.passed(10, ranks)


BUSY_THREAD = """
import os, threading, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
def work():
    while True: pass
threading.Thread(target=work, daemon=True).start()
print(flush=True)
time.sleep(600)
"""


@pytest.mark.cold("the threads of a process are looked at, by its number")
def test_waits_of_all_threads_of_a_rank_count():
    """Two processes on one core whose main threads sleep."""
    command = [sys.executable, "-c", BUSY_THREAD]
    rivals = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for rival in rivals:
            rival.stdout.readline()
        waited = [processes.waited_for_a_core(rival.pid) for rival in rivals]
        time.sleep(2)
        for rival, before in zip(rivals, waited, strict=True):
            assert processes.waited_for_a_core(rival.pid) - before > 0.2
    finally:
        for rival in rivals:
            rival.kill()
            rival.communicate()


@pytest.mark.cold("a process is looked for by its environment")
def test_processes_of_a_job_are_found_by_its_number():
    """Not those of job 47110, when those of job 4711 are wanted."""
    sleepers = [
        subprocess.Popen(["sleep", "600"], env={"SLURM_JOB_ID": f"of-a-test-{number}"})
        for number in ("4711", "47110")
    ]
    try:
        found = processes.with_variable("SLURM_JOB_ID=of-a-test-4711")
        assert list(found) == [sleepers[0].pid]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def test_what_else_is_written_into_the_channel_is_no_message():
    """A learner's code may write into any descriptor; the report still counts."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        rank = rank_process.RankProcess(0, os.getpid(), ours, output=-1)
        theirs.sendall(b'3\n{\n\xff\n["status"]\n{"status": "call"}\n')
        rank.read_messages()
        assert rank.report is None and not rank.calls
        theirs.sendall(b'{"status": "ok"}\n')
        rank.read_messages()
        assert rank.report == {"status": "ok"}


GRADES = """
import sys
from pathlib import Path
from workshop.grader.engine.engine import Engine
from tests.grader.support import grade_code
with Engine() as engine:
    grade_code(engine, Path(sys.argv[1]), "import time\\ntime.sleep(600)")
"""


@pytest.mark.full
@pytest.mark.cold("processes are looked for by their environment")
def test_killed_grader_leaves_no_process(monkeypatch, tmp_path):
    """SIGKILL while three ranks run: server, supervisor and ranks end by themselves."""
    monkeypatch.setenv("OF_A_KILLED_GRADER", str(tmp_path))
    setting = f"OF_A_KILLED_GRADER={tmp_path}"
    client = subprocess.Popen([sys.executable, "-c", GRADES, tmp_path], cwd=ROOT)
    try:
        wait_until(lambda: len(list(processes.with_variable(setting))) >= 6)
    finally:
        client.kill()
        client.wait()
    wait_until(lambda: not list(processes.with_variable(setting)))


def test_ranks_that_wait_in_turn_get_the_time_of_all_their_waits(monkeypatch):
    waited = {1: 0.0, 2: 0.0}
    monkeypatch.setattr(processes, "waited_for_a_core", waited.get)
    ranks = [1, 2]
    clock = stopwatch.Stopwatch(ranks)
    for turn in range(10):  # one waits for a core, the other one for it
        waited[1 + turn % 2] += 3
        clock.looked -= 3
        assert not clock.passed(5, ranks)


LATE = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
import torch.distributed as dist
from workshop.grader.engine import rendezvous

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
connected = folder / "connected"
connect = dist.distributed_c10d._new_process_group_helper

def late(*args, **kwargs):
    group = connect(*args, **kwargs)
    if rank == 1:
        time.sleep(1)
        connected.touch()
    return group

dist.distributed_c10d._new_process_group_helper = late
job = SimpleNamespace(store=str(folder / "store"), world_size=2, init=True)
rendezvous.join(job, rank)
assert connected.exists()
"""


def test_no_rank_begins_while_another_still_connects(tmp_path):
    ranks = [
        subprocess.Popen([sys.executable, "-c", LATE, str(tmp_path), str(rank)])
        for rank in (0, 1)
    ]
    assert [rank.wait(timeout=60) for rank in ranks] == [0, 0]


def test_rank_that_waits_to_join_is_in_no_deadlock(monkeypatch):
    """The others may come late on a busy machine."""
    monkeypatch.setattr(whereabouts, "communicates", lambda frame: True)
    state = [0.0] * channel.FIELDS
    reporter: Any = None
    ledger: Any = SimpleNamespace(rows=[])
    job: Any = SimpleNamespace(exercise_path="")
    watcher = whereabouts.Watcher(job, state, reporter, ledger)
    found = {}
    for phase in (channel.JOINING, channel.CHECKING):
        state[channel.PHASE] = phase
        watcher._beat()
        found[phase] = state[channel.IN_COMM]
    assert found == {channel.JOINING: 0.0, channel.CHECKING: 1.0}
