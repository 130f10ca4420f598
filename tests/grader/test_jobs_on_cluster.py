"""Checks of job scripts: the verdict on a script, on a practice cluster and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.grader.written_jobs import GOOD, write
from tests.launched import wait_until
from tests.needs import CLUSTER, skip_without
from workshop.cluster.jobs.cluster_of_checks import ClusterOfChecks
from workshop.cluster.jobs.scheduler import Scheduler
from workshop.grader.checks import checks_in
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind

ROOT = Path(__file__).resolve().parents[2]
PBS = """\
#!/bin/bash
#PBS -l select=2:ncpus=1:mpiprocs=1
#PBS -l place=scatter
cd "$PBS_O_WORKDIR" || exit 1
source job_scripts/site_environment.sh
host=$(head -n 1 "$PBS_NODEFILE")
pbsdsh -- /bin/bash -l -c "cd '$PWD' && source job_scripts/site_environment.sh && \\
  torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=$host:29401 \\
  src/08_multinode_torchrun.py 2 1"
"""
CHECK = '''
import pytest
from workshop.grader import expect

@pytest.mark.ranks(1, init=False, limit=150)
def test_every_node_starts_one(exercise_path, scheduler):
    """Every node starts one torchrun."""
    job = scheduler.submit(exercise_path, nodes=2, limit={limit})
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that start torchrun")
    expect.that(job.state == "COMPLETED", job.ending)
    scheduler.not_checked("whether the nodes connect")
'''


@pytest.fixture(scope="module")
def engine_with_cluster():
    """An engine that submits; its cluster lives as long as these tests."""
    skip_without(CLUSTER)
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def engine_with_paper():
    """An engine on a machine that has no practice cluster."""
    with Engine() as engine:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WORKSHOP_NO_CLUSTER", "1")
            engine._cluster = ClusterOfChecks(None)
        yield engine


def verdict_on(
    engine: Engine, folder: Path, script: str, name: str, waits: bool = False
):
    """What CHECK finds in a script."""
    limit = 8 if waits else 120  # a busy machine takes a while to start a torchrun
    (folder / "test_job.py").write_text(CHECK.replace("{limit}", str(limit)))
    check = checks_in(folder / "test_job.py")[0]
    return engine.run_check(check, script, write(folder, script, name))


@pytest.mark.full
@pytest.mark.parametrize("where", ["cluster", "paper"])
@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        (GOOD, Kind.RIGHT, ""),
        (GOOD.replace("srun ", ""), Kind.WRONG_VALUE, "1 item, expected 2"),
        (GOOD.replace("per-node=1", "per-node=2"), Kind.WRONG_VALUE, "4 items"),
        (GOOD + "nonsense_here\n", Kind.WRONG_VALUE, "line 7: nonsense_here"),
        (
            GOOD.replace("srun", 'echo "TODO 1 of 1 is still open" >&2; exit 64; srun'),
            Kind.UNFINISHED,
            "TODO 1 of 1 is still open, at line 5",
        ),
    ],
    ids=["right", "no_srun", "twice", "unknown_command", "open_hole"],
)
def test_verdict(script, kind, words, where, tmp_path, request):
    if kind is Kind.RIGHT and where == "paper":
        kind = Kind.NOT_FULLY
    engine = request.getfixturevalue(f"engine_with_{where}")
    waits = "item" in words  # for nodes that never come
    verdict = verdict_on(engine, tmp_path, script, "job.sbatch", waits)
    assert verdict.kind is kind, verdict.message
    assert words in verdict.message
    told = "whether the nodes connect" in verdict.message
    assert "rank 0:" not in verdict.message
    assert told == (kind is Kind.NOT_FULLY)


@pytest.mark.full
@pytest.mark.parametrize("where", ["cluster", "paper"])
@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        (PBS, Kind.RIGHT, ""),
        (PBS.replace("pbsdsh -- /bin/", "/bin/"), Kind.WRONG_VALUE, "1 item,"),
        (PBS.replace("#PBS -l place", "#PBS -q gpu -l place"), Kind.WRONG_VALUE, ""),
    ],
    ids=["right", "first_node_only", "unknown_queue"],
)
def test_verdict_on_pbs(script, kind, words, where, tmp_path, request):
    if "gpu" in script and where == "paper":
        kind = Kind.RIGHT  # what nobody is asked, nobody refuses
    if kind is Kind.RIGHT and where == "paper":
        kind = Kind.NOT_FULLY
    engine = request.getfixturevalue(f"engine_with_{where}")
    waits = "item" in words
    verdict = verdict_on(engine, tmp_path, script, "job.pbs", waits)
    assert verdict.kind is kind, verdict.message
    assert words in verdict.message


@pytest.fixture(scope="module")
def cluster_of_checks():
    skip_without(CLUSTER)
    cluster = ClusterOfChecks(None)
    yield cluster
    cluster.close()


@pytest.fixture
def scheduler(cluster_of_checks, tmp_path, monkeypatch):
    """What a check gets, in an environment like that of its rank."""
    monkeypatch.setenv("RANK", "7")
    return Scheduler(tmp_path, **cluster_of_checks.description(ROOT))


RANKS = """\
#!/bin/bash
#SBATCH --ntasks-per-node=1
source job_scripts/site_environment.sh
srun --kill-on-bad-exit=1 python src/09_srun.py $SLURM_JOB_ID
"""


def test_two_jobs_at_once_are_told_apart(scheduler, tmp_path):
    for job in scheduler.submit_twice(write(tmp_path, RANKS)):
        assert job.state == "COMPLETED", job.output
        assert job.nodes == ["n1", "n2"] == job.hosts("python")
        assert [worker.rank for worker in job.workers] == [0, 1]
        assert {worker.args for worker in job.workers} == {(job.id,)}


def test_rank_that_was_ended_has_not_finished(scheduler, tmp_path):
    script = write(tmp_path, RANKS)
    job = scheduler.submit(script, failing_rank=1, work_seconds=60, limit=40)
    assert job.state == "FAILED", job.output
    assert [worker.finished for worker in job.workers] == [False, False]
    job = scheduler.submit(script, work_seconds=0.2, working_rank=1)
    assert [worker.finished for worker in job.workers] == [True, True]


def test_program_that_is_only_launched_does_nothing(scheduler, tmp_path):
    job = scheduler.submit(write(tmp_path, RANKS), only_launch=True, work_seconds=60)
    assert (job.state, job.workers) == ("COMPLETED", []), job.output
    assert job.hosts("python") == ["n1", "n2"]


def test_cluster_of_the_checks_ends_with_the_grader():
    skip_without(CLUSTER)
    program = """
import time
from pathlib import Path
from workshop.cluster.jobs.cluster_of_checks import ClusterOfChecks
print(ClusterOfChecks(None).description(Path("."))["state"], flush=True)
time.sleep(60)
"""
    with tempfile.TemporaryDirectory(prefix="jobs-", dir="/tmp") as folder:
        one = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": folder},
            stdout=subprocess.PIPE,
            text=True,
        )
        with one:
            state = one.stdout.readline().strip()
            one.kill()
        assert state.startswith(folder)
        facts = json.loads(Path(state, "cluster.json").read_text())
        ended = "the cluster ends with the grader"
        pid = facts["first"]["pid"]
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), 20, ended)
