"""workshop doctor --job --submit: what it concludes from a job's measurements.

tests/jobs/test_08_prove_in_jobs.py measures on real nodes.
"""

import copy
from pathlib import Path

import pytest

from tests.grader.small_house import workshop
from workshop.doctor import submission
from workshop.doctor.proof import judge
from workshop.doctor.submission import Submitted, read, state, with_variable
from workshop.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


def rank(number: int, **changes) -> dict:
    """One of four ranks on two nodes where all is well."""
    node = 1 + number // 2
    facts = {
        "rank": number,
        "local_rank": number % 2,
        "host": f"n{node}",
        "device": "NVIDIA H100",
        "uuid": f"GPU-{number % 2}",
        "visible": "0,1",
        "cores": list(range(8)),
        "shared_mb": 64e3,
        "shared_free_mb": 60e3,
        "limits": {"-l": -1, "-n": 65536, "-u": -1},
        "versions": {"Python": "3.11", "torch": "2.13.0", "NCCL": "2.29"},
        "address": f"10.0.0.{node}",
        "interface": "ib0",
        "interface_gbit": 200.0,
        "infiniband": ["mlx5_0"],
    }
    return facts | changes


def measured(**changes) -> dict:
    """The report of a job of four such ranks."""
    report = {
        "ranks": [rank(number) for number in range(4)],
        "backend": "gloo",
        "busbw": {
            "inside a node": {"4096": 1e7, "16777216": 2e10},
            "between nodes": {"4096": 1e6, "16777216": 3e9},
        },
        "folder": "snapshots",
        "seen_after": [0.0, 0.0, 0.1, 0.1],
        "write_speed": 4e8,
        "resumed": ["", "", "", ""],
        "first_step_after": 30.0,
    }
    return report | changes


def with_rank(number: int, **changes) -> dict:
    report = copy.deepcopy(measured())
    report["ranks"][number].update(changes)
    return report


def test_nothing_is_found_where_nothing_is_wrong():
    assert judge(measured()) == []


# The small message fits a buffer on the way, and seems to be fast.
SLOW = {"between nodes": {"262144": 9e8, "16777216": 4e8}}


@pytest.mark.parametrize(
    "report, words",
    [
        (with_rank(1, uuid="GPU-0"), "ranks 0 and 1 on n1 use the same NVIDIA"),
        (with_rank(2, device="cpu", uuid=""), "rank 0, rank 1, rank 3; cpu on"),
        (with_rank(2, shared_mb=64, shared_free_mb=64), "/dev/shm of n2 has 64 MB"),
        (with_rank(2, shared_free_mb=3), "/dev/shm of n2 is full (3 of 64000 MB free)"),
        (
            with_rank(2, limits={"-l": -1, "-n": 256, "-u": -1}),
            "n2 allows 256 open files (ulimit -n)",
        ),
        (
            with_rank(2, limits={"-l": -1, "-n": 4096, "-u": 100}),
            "n2 allows 100 processes (ulimit -u)",
        ),
        (
            with_rank(2, limits={"-l": 65536, "-n": 4096, "-u": -1}),
            "n2 lets a process lock 64 KB of memory (ulimit -l): NCCL needs more",
        ),
        (
            with_rank(2, address="127.0.0.1"),
            "n2 reaches the first node by 127.0.0.1, which is itself",
        ),
        (measured(busbw=SLOW), "carries 0.400 GB/s, and ib0 announces 25.00"),
        (
            measured(seen_after=[0.0, 0.0, -1.0, -1.0]),
            "n2 can't see what n1 writes in snapshots",
        ),
        (measured(seen_after=[0.0, 0.0, 9.0, 9.0]), "n2 see a file in snapshots only"),
        (measured(write_speed=2e6), "snapshots takes 2.0 MB/s"),
        (
            measured(resumed=["", "", "no such file", "no such file"]),
            "does not resume on rank 2, 3: no such file",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_each_fault_is_one_line(report, words):
    found = judge(report)
    assert len(found) == 1, found
    assert words in found[0]


def test_version_that_differs_is_found():
    report = measured()
    for number in (2, 3):
        report["ranks"][number]["versions"] = {"Python": "3.11", "torch": "2.6.0"} | {
            "NCCL": "2.29"
        }
    assert [line[:40] for line in judge(report)] == [
        "torch: 2.13.0 on n1; 2.6.0 on n2: activa"
    ]


def test_ranks_that_share_a_core_are_found():
    report = measured()
    for each in report["ranks"]:
        each["cores"] = [0]
    found = judge(report)
    assert found[0].startswith("2 ranks share 1 core(s) on n1: ask for more")
    assert len(found) == 2


@pytest.mark.parametrize(
    "report",
    [
        with_rank(2, uuid="GPU-1", local_rank=1),  # another node's GPU
        measured(busbw=SLOW, backend="nccl"),  # it may use other adapters
        measured(busbw={}),
        with_rank(2, limits={"-l": 65536, "-n": 4096, "-u": -1}, infiniband=[]),
        with_rank(2, interface_gbit=0.0),  # it announces nothing
    ],
    ids=["another node", "NCCL", "one rank", "no adapter", "unknown link"],
)
def test_what_is_no_fault_is_not_found(report):
    same = [line for line in judge(report) if "same NVIDIA" not in line]
    assert same == []


def test_job_that_left_nothing_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("workshop.doctor.submission.LATE_FILES", 0.0)
    job = Submitted("slurm", "7", tmp_path / "log.txt", tmp_path / "report.json")
    with pytest.raises(UserError, match=r"job 7 has left no log in .*: did it start"):
        read(job, tmp_path)


def test_findings_inside_the_job_are_those_of_the_proof(tmp_path):
    job = Submitted("slurm", "7", tmp_path / "log.txt", tmp_path / "report.json")
    job.log.write_text("- n1 has no interface ib0: it has lo\nsrun: error: x\n")
    proof = read(job, tmp_path)
    assert (proof.log, proof.findings) == ("", ["n1 has no interface ib0: it has lo"])


@pytest.mark.parametrize(
    "scheduler, command, told, expected",
    [
        ("slurm", "squeue", "echo PENDING Resources", "PENDING Resources"),
        ("slurm", "squeue", "echo RUNNING None", "RUNNING"),
        ("slurm", "squeue", "exit 1", ""),
        ("pbs", "qstat", "echo '    job_state = Q'", "Q"),
        ("pbs", "qstat", "echo '    job_state = F'", ""),
        ("pbs", "qstat", "exit 35", ""),
    ],
)
def test_state_is_the_word_of_the_scheduler(
    scheduler, command, told, expected, tmp_path, monkeypatch
):
    program = tmp_path / command
    program.write_text(f"#!/bin/sh\n{told}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert state(Submitted(scheduler, "7", Path(), Path())) == expected


def test_jobs_of_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    """The first one may have been refused at once."""
    monkeypatch.setattr(submission, "find_scheduler", lambda root: "slurm")
    monkeypatch.setattr(submission.sites, "plan", lambda *words: None)
    monkeypatch.setattr(submission.sites, "submit_and_read", lambda *words: "7")
    monkeypatch.setattr(submission.time, "time", iter((100.1, 100.3)).__next__)
    first, second = (submission.submit(tmp_path, ()) for _ in range(2))
    assert first.log.parent != second.log.parent
    assert first.log.parent.is_dir() and second.log.parent.is_dir()


@pytest.mark.parametrize(
    "options",
    [["-v", "A=1", "-q", "gpu"], ["-q", "gpu", "-vA=1"]],
)
def test_variables_of_the_user_and_ours_are_one_option_of_qsub(options):
    given = with_variable("ARGS", "--report r", options)
    assert given == ["-v", "ARGS=--report r,A=1", "-q", "gpu"]


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["doctor", "--submit"], "--submit belongs to --job"),
        (["doctor", "--job", "--", "--nodes=2"], "'--nodes=2' is no option of doctor"),
        (
            ["doctor", "--job", "--submit", "--nnodes", "2"],
            "--submit chooses the endpoint, the id and the nodes itself",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(words, sentence):
    done = workshop(ROOT, *words)
    assert done.returncode == 2, done
    assert sentence in done.stderr and "Traceback" not in done.stderr
