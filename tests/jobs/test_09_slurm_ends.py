"""How the Slurm jobs end: with the status of the rank that failed, or requeued."""

import os
import re
import subprocess
import sys

import pytest

from tests.needs import CLUSTER, needs

pytestmark = pytest.mark.full

# In place of the training: rank 1 fails once all have begun, the others would work on
# for ten minutes. Without torch, so that only launcher and script are under test.
ONE_FAILS = r"""
import os, sys, time
names = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
rank = next(os.environ[name] for name in names if name in os.environ)
print(f"rank {rank}\n", end="", flush=True)
if rank == "1":
    time.sleep(3)
    sys.exit(7)
time.sleep(600)
"""
# The first start works for ten minutes, the next is done at once.
DONE_WHEN_RESTARTED = r"""
import os, time
restarts = os.environ.get("SLURM_RESTART_COUNT", "0")
print(f"at work, port {os.environ['MASTER_PORT']}\n", end="", flush=True)
if restarts == "0":
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def programs(checkout):
    """Write the stand-ins to where the job scripts find them."""
    (checkout / "one_fails.py").write_text(ONE_FAILS)
    (checkout / "done_when_restarted.py").write_text(DONE_WHEN_RESTARTED)


# 600 s is what the other ranks would take: the job must not wait for them
@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("multinode_srun", 7),
        pytest.param("multinode_mpirun", 7, marks=needs(CLUSTER, "mpirun")),
        ("multinode_torchrun", 1),  # torchrun's own, whatever its rank's was
        ("singlenode_torchrun", 1),
        ("requeue", 7),
    ],
)
def test_job_ends_with_the_status_of_what_failed(script, status, submit, programs):
    variables = {"SCRIPT": "one_fails.py", "MAX_RESTARTS": "0"}
    job = submit(f"job_scripts/{script}.sbatch", env=variables, timeout=90)
    assert (job.state, job.exit_code) == ("FAILED", status), job.output
    assert "rank 1" in job.output
    assert job.restarts == 0


def test_interactive_job_ends_when_a_rank_fails(submit, programs):
    start = ["srun", "--nodes=2", "--kill-on-bad-exit=1"]
    done = submit.run([*start, "./job_scripts/interactive.sh", "one_fails.py"])
    assert done.returncode != 0 and "exitcode  : 7" in done.stderr


def test_interactive_script_refuses_several_tasks_on_a_node(submit):
    start = ["srun", "--nodes=2", "--ntasks-per-node=2"]
    done = submit.run([*start, "./job_scripts/interactive.sh"])
    assert done.returncode == 2
    assert "needs one task per node: srun --nodes=N --ntasks=N" in done.stderr


def test_array_element_larger_than_the_job_is_refused(submit):
    number = submit.start("job_scripts/scaling_array.sbatch", "--array=3")
    job = submit.wait(number, timeout=30)
    assert (job.state, job.exit_code) == ("FAILED", 2)
    assert "element 3 needs as many nodes, and the job has 2" in job.output


def test_job_submitted_from_elsewhere_says_where_to_go(submit, checkout):
    for path in sorted((checkout / "job_scripts").glob("*.sbatch")):
        name = f"job_scripts/{path.name}"
        job = submit(name, "--chdir=/tmp", "--output=%x-%j.out", timeout=30)
        os.unlink(f"/tmp/{path.stem}-{job.id}.out")
        assert (job.state, job.exit_code) == ("FAILED", 2), name
        assert "run sbatch in the workshop's folder" in job.output, name


@pytest.mark.nightly
def test_lost_node_that_is_back_at_once_requeues_the_job(submit, programs):
    variables = {"SCRIPT": "done_when_restarted.py"}
    number = submit.start("job_scripts/requeue.sbatch", env=variables)
    submit.until(number, lambda job: job.output.count("at work") == 4, timeout=60)
    submit.cluster.off("n2")
    submit.cluster.on("n2")
    job = submit.wait(number, timeout=120)
    assert (job.state, job.exit_code, job.restarts) == ("COMPLETED", 0, 1), job.output
    ports = set(re.findall(r"port (\d+)", job.output))
    assert len(ports) == 2, "a start may meet what is left of the one before"


def test_cancelled_job_is_not_requeued(submit, programs):
    variables = {"SCRIPT": "done_when_restarted.py"}
    number = submit.start("job_scripts/requeue.sbatch", env=variables)
    submit.until(number, lambda job: job.output.count("at work") == 4, timeout=60)
    submit.cluster.run(["scancel", str(number)], check=True)
    job = submit.wait(number, timeout=60)
    assert (job.state, job.restarts) == ("CANCELLED", 0)
    assert "requeue:" not in job.output


@pytest.mark.quick
def test_signal_saves_within_an_epoch_and_the_requeued_job_ends_alike(submit, checkout):
    """What Slurm does before the time limit (--signal=B:USR1@120), without the wait."""
    script = "job_scripts/requeue.sbatch"
    assert ":-src/09_requeue.py}" in (checkout / script).read_text()
    variables = {"EPOCHS": "25", "SAVE_EVERY": "25"}  # saved at the end, or when asked
    number = submit.start(script, "--ntasks-per-node=1", env=variables)
    submit.until(number, lambda job: "Epoch 2 " in job.output, timeout=120)
    signal = ["scancel", "--batch", "--signal=USR1", str(number)]
    submit.cluster.run(signal, check=True)
    job = submit.wait(number, timeout=240)
    assert (job.state, job.exit_code, job.restarts) == ("COMPLETED", 0, 1), job.output
    assert "requeue: the time is up" in job.output
    steps = int(re.search(r"Resuming from .* after (\d+) steps", job.output)[1])
    assert 0 < steps < 25 * 23
    whole = submit(script, "--ntasks-per-node=1", env=variables, timeout=240)
    assert (whole.state, whole.restarts) == ("COMPLETED", 0), whole.output
    snapshots = [f"snapshots/job{each}.pt" for each in (number, whole.id)]
    compared = subprocess.run(
        [sys.executable, "src/instruments/06_compare_snapshots.py", *snapshots],
        cwd=checkout,
        capture_output=True,
        text=True,
    )
    assert compared.stdout.endswith("Equal in every bit\n"), compared.stdout
