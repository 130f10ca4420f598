"""What docs/lessons/07_torchrun says about a rank that fails, tried out.

The restart, a program that doesn't exit, and which rank failed first. Each test is
named after its sentence on the page.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torch.distributed import TCPStore
from torch.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
)

from tests.docs.pages import checked_page
from tests.docs.torchruns import LIMIT, clean_environment, start, torchrun

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
on_the_page = checked_page("07_torchrun")


# Watch a restart

# Rank 1 of the first start fails, once all have started; the others would sleep for
# longer than the test.
FAILS_ONCE = """
import glob, os, signal, sys, time
rank, count = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def say(what):
    os.write(1, f"{what} {rank} {count} {os.getpid()}\\n".encode())

def told(*_):
    say("sigterm")
    os._exit(1)

signal.signal(signal.SIGTERM, told)
say("starts")
open(f"started_{count}_{rank}", "w").close()
if count < int(sys.argv[1]):
    if rank == "1":
        while len(glob.glob(f"started_{count}_*")) < int(os.environ["WORLD_SIZE"]):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(100)
"""


def test_a_failure_ends_all_ranks_and_starts_all_as_new_processes(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS_ONCE)
    options = ["--standalone", "--nproc-per-node=3", "--max-restarts=1", script, 1]
    output = torchrun(tmp_path, *options)
    lines = re.findall(r"^(starts|sigterm) (\d) (\d) (\d+)$", output, re.M)
    starts = sorted(line[1:3] for line in lines if line[0] == "starts")
    assert starts == [(r, c) for r in "012" for c in "01"]
    assert len({line[3] for line in lines if line[0] == "starts"}) == 6
    told = sorted(line[1] for line in lines if line[0] == "sigterm")
    assert told == ["0", "2"], "the agent asks the others with SIGTERM"


def test_without_restarts_left_the_agent_gives_up_with_status_1(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS_ONCE)
    options = ["--standalone", "--nproc-per-node=2", "--max-restarts=1", script, 9]
    output = torchrun(tmp_path, *options, status=1)
    assert len(re.findall(r"^starts 1 ", output, re.M)) == 2
    assert "exitcode  : -9" in output


def test_restart_in_the_figure_takes_seven_times_what_the_lost_steps_took():
    """10 steps of 0.05 s on average, against the time until training begins again."""
    run = json.loads((ROOT / "docs/figures/07_elastic_run.json").read_text("utf-8"))
    (resumed,) = [at for at, line in run["lines"] if line.startswith("Starting from")]
    price = resumed - run["killed"]["at"]
    on_the_page(f"In the figure that's {price:.1f} s, seven times as much")
    assert round(price / (10 * 0.05)) == 7


# Rank 1 is killed after the first all-reduce; rank 0 then prints how the second one
# fails. No agent is there to end it.
LOSES_RANK_1 = """
import os, signal, sys, time
import torch
import torch.distributed as dist

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
dist.all_reduce(torch.ones(1))
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0.5)
try:
    dist.all_reduce(torch.ones(1))
except RuntimeError as error:
    print(error, flush=True)
os._exit(0)
"""


def test_all_reduce_with_a_killed_rank_fails_at_once_with_gloo(tmp_path):
    """Also said in docs/lessons/09_slurm/2_end.rst."""
    on_the_page("so their next all-reduce can't complete. With gloo it fails at once.")
    script = tmp_path / "loses.py"
    script.write_text(LOSES_RANK_1)
    meeting = f"file://{tmp_path}/store"
    one, other = [
        subprocess.Popen(
            [sys.executable, script, str(rank), meeting],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        error = one.communicate(timeout=LIMIT)[0]
        assert other.wait(timeout=LIMIT) == -signal.SIGKILL
    finally:
        one.kill()
        other.kill()
    assert "onnection" in error and "Timed out" not in error


# Make sure the program exits: those that release DDP first do, as the transcript shows


@pytest.mark.nightly
@pytest.mark.cold("how Python itself ends is the subject")
def test_ddp_that_outlives_its_group_may_hang():
    """Recorded on the page with 10 runs; here until one ends badly, which is chance.

    Two threads of a rank must run at the same time. Beside other programs they seldom
    do, so the runs go first, where the machine allows it.
    """

    def end_badly():
        command = [
            "nice",
            "--adjustment=-20",
            sys.executable,
            SRC / "instruments/07_teardown.py",
        ]
        command += ["usual", "--runs", "3"]
        variables = clean_environment() | {"OMP_NUM_THREADS": "1"}
        printed = subprocess.check_output(command, env=variables, text=True)
        (well,) = re.findall(r"^usual: of 3 runs (\d) end well", printed)
        return int(well) < 3

    assert any(end_badly() for _ in range(32))


# Find the rank that failed first


@pytest.mark.nightly
@pytest.mark.cold("whose end the agent sees first is the subject")
def test_killed_rank_leaves_no_file_and_the_others_a_consequence(tmp_path):
    options = ["--standalone", "--nproc-per-node=3", "--log-dir", "logs"]
    script = SRC / "instruments/07_one_rank_fails.py"
    output = torchrun(tmp_path, *options, script, 2, "killed", status=1)
    (attempt,) = tmp_path.glob("logs/*/attempt_0")
    assert not (attempt / "2" / "error.json").exists()
    report = re.search(r"\(local_rank: 2\)\s+exitcode.*\s+error_file.*", output)[0]
    assert "exitcode  : -9" in report
    assert "error_file: <N/A>" in report
    for path in attempt.glob("*/error.json"):
        said = json.loads(path.read_text())["message"]
        assert "Connection" in said["message"] or "Broken pipe" in said["message"]


def shown(name):
    """The commands of a transcript."""
    text = (ROOT / f"docs/transcripts/{name}.txt").read_text("utf-8")
    return re.findall(r"^\$ (.*)", text.replace("\\\n", ""), re.M)


def test_files_of_the_newest_run_are_shown_beside_those_of_an_older_one(tmp_path):
    """Typed a second time, the commands find two folders in ``logs``."""
    for number, run in enumerate(("a_older", "b_newer")):
        report = tmp_path / "logs" / run / "attempt_0" / "2" / "error.json"
        report.parent.mkdir(parents=True)
        report.write_text(f'{{"message": "{run}"}}')
        os.utime(report.parents[1], (number, number))
    show = shown("07_first_failure")[1]
    assert "newer" in subprocess.check_output(show, cwd=tmp_path, shell=True, text=True)


@pytest.mark.parametrize("name", ["07_kill", "07_elastic"])
def test_demos_of_a_kill_begin_without_the_snapshots_of_an_earlier_one(name):
    first, *others = shown(name)
    saved = set(re.findall(r"--snapshot (\S+)", " ".join(others))) or {"elastic.pt"}
    assert first.split()[:2] == ["rm", "-f"] and set(first.split()[2:]) == saved


def failure(folder, local_rank, second, exitcode=1):
    """What the agent knows of a rank; without a second it has written no file."""
    path = folder / f"error_{local_rank}.json"
    if second is not None:
        extra = {"py_callstack": "", "timestamp": str(second)}
        path.write_text(json.dumps({"message": {"message": "", "extraInfo": extra}}))
    return ProcessFailure(local_rank, 1234, exitcode, str(path))


def test_within_a_second_the_agent_names_whom_it_saw_first(tmp_path):
    failures = {rank: failure(tmp_path, rank, 1795241785) for rank in (1, 0)}
    assert ChildFailedError("train", failures).get_first_failure()[0] == 1
    failures = {rank: failures[rank] for rank in (0, 1)}
    assert ChildFailedError("train", failures).get_first_failure()[0] == 0


@pytest.mark.nightly
def test_each_agent_names_a_root_cause_of_its_own(tmp_path):
    """The second node fails seconds after the first, and is a root cause, too.

    The store is here. If it were the first agent's, it would be gone too early.
    """
    on_the_page("A job on four nodes prints up to four root causes")
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    script = tmp_path / "fails.py"
    script.write_text(
        "import os, time\ntime.sleep(2 * int(os.environ['RANK']))\nraise SystemExit(3)"
    )
    options = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"]
    options += [f"--rdzv-endpoint=127.0.0.1:{store.port}", "--rdzv-id=1"]
    options += ["--rdzv-conf=is_host=0", "--local-addr=127.0.0.1", script]
    processes = [start(tmp_path, *options) for _ in range(2)]
    try:
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    reports = [output.split("Root Cause")[1] for output in outputs]
    ranks = [re.findall(r"rank +: (\d) \(local_rank: 0\)", said) for said in reports]
    assert sorted(ranks) == [["0"], ["1"]], outputs


def test_time_of_a_killed_rank_is_when_the_agent_noticed(tmp_path):
    failures = {
        1: failure(tmp_path, 1, None, exitcode=-9),
        0: failure(tmp_path, 0, int(time.time()) - 1),  # its complaint came before
    }
    assert ChildFailedError("train", failures).get_first_failure()[0] == 0


def test_each_start_and_local_rank_has_a_folder_with_its_error_file(tmp_path):
    torchrun(
        tmp_path,
        *("--standalone", "--nproc-per-node=2", "--max-restarts=1"),
        *("--log-dir", "logs", SRC / "instruments/07_one_rank_fails.py", 1),
        status=1,
        TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
    )
    for restart in (0, 1):  # an error of the program comes again after the restart
        of_rank_1 = [*tmp_path.glob(f"logs/*/attempt_{restart}/1/error.json")]
        others = [path.read_text() for path in tmp_path.rglob("error.json")]
        assert of_rank_1, f"start {restart}: rank 1 wrote nothing, others {others}"
        said = json.loads(of_rank_1[0].read_text())["message"]
        assert said["message"] == "ValueError: image 1017 has 63 pixels, not 64"
        assert re.fullmatch(r"\d{10}", said["extraInfo"]["timestamp"])


def test_without_record_there_is_no_error_file(tmp_path):
    script = tmp_path / "raises.py"
    script.write_text("raise ValueError('63 pixels')")
    options = ["--standalone", "--nproc-per-node=1", script]
    root = torchrun(tmp_path, *options, status=1).split("Root Cause")[1]
    assert "error_file: <N/A>" in root
    assert "63 pixels" not in root
