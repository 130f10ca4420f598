"""src/starter, submitted by job scripts of each kind: it meets, saves and resumes."""

import re
import time

import pytest

from tests.jobs import which_pbs
from tests.needs import CLUSTER, needs
from workshop.cluster.pbs import Delays

pytestmark = pytest.mark.full

DDP, FSDP = "src/starter/train_ddp.py", "src/starter/train_fsdp.py"
SHORT = {"EPOCHS": "2", "SAVE_EVERY": "1"}  # of 62 steps
EPOCHS = 12
LONG = EPOCHS * (4001 // 320)  # steps: time enough to be stopped in
ONE_RANK = ("-l", "select=2:ncpus=1", "-l", "place=scatter")  # on each of two hosts
LIMIT = 300  # seconds for a job that trains


def steps_before(output):
    """How many steps each run of a job had before it; that of the first start is 0."""
    return [int(n) for n in re.findall(r"^After (\d+) steps", output, re.M)]


def ends_trained(output, steps):
    """Whether the last lines say that all is saved and that the loss has fallen."""
    losses = [float(n) for n in re.findall(r"validation loss ([\d.]+)", output)]
    saved = f"step {steps} of {steps} | saved" in output
    return saved and losses[-1] < 1.5


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("multinode_torchrun", DDP),
        ("multinode_srun", FSDP),
        pytest.param("multinode_mpirun", DDP, marks=needs(CLUSTER, "mpirun")),
        ("singlenode_torchrun", FSDP),
    ],
)
def test_trains_under_each_launcher(script, program, submit, checkout):
    job = submit(
        f"job_scripts/{script}.sbatch", env=SHORT | {"SCRIPT": program}, timeout=LIMIT
    )
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    assert ends_trained(job.output, 2 * 62), job.output
    ranks = 2 if script.startswith("singlenode") else 4
    assert f"world_size={ranks}," in job.output
    assert (checkout / "snapshots" / f"job{job.id}.pt").exists()


@pytest.mark.parametrize(
    "program", [pytest.param(DDP, marks=pytest.mark.nightly), FSDP]
)
def test_signal_before_the_limit_saves_and_the_requeued_job_resumes(program, submit):
    """Saved at the end and when Slurm asks: the requeued job resumes what was asked."""
    epochs = str(EPOCHS)
    variables = {"EPOCHS": epochs, "SAVE_EVERY": epochs, "SCRIPT": program}
    number = submit.start(
        "job_scripts/requeue.sbatch",
        "--ntasks-per-node=1",
        args=["--batch-size", "320"],
        env=variables,
    )
    submit.until(number, lambda job: "step 20 " in job.output, timeout=LIMIT)
    signal = ["scancel", "--batch", "--signal=USR1", str(number)]
    submit.cluster.run(signal, check=True)
    job = submit.wait(number, timeout=LIMIT)
    assert (job.state, job.exit_code, job.restarts) == ("COMPLETED", 0, 1), job.output
    assert "requeue: the time is up" in job.output
    first, second = steps_before(job.output)
    assert first == 0 and 20 <= second < LONG
    assert ends_trained(job.output, LONG), job.output


@pytest.fixture(scope="module")
def pbs(start_pbs, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    allow = "OMPI_ALLOW_RUN_AS_ROOT"
    (home / ".bash_profile").write_text(f"export {allow}=1 {allow}_CONFIRM=1\n")
    hosts, delays = ["n1", "n2"], Delays().divided_by(10)
    with start_pbs(hosts=hosts, home=home, delays=delays, ssh=True) as pbs:
        yield pbs


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("multinode_torchrun", FSDP),
        pytest.param("multinode_mpirun", DDP, marks=which_pbs.needs("mpirun")),
        ("multinode_ssh", FSDP),
    ],
)
def test_trains_under_each_launcher_of_pbs(script, program, pbs, checkout):
    given = f"EPOCHS=1,SAVE_EVERY=1,SCRIPT={program}"
    script = f"job_scripts/{script}.pbs"
    job = pbs.wait(pbs.qsub(*ONE_RANK, "-v", given, script, cwd=checkout), LIMIT)
    assert job.exit_status == 0, job.output
    assert "world_size=2," in job.output
    assert "step 62 of 62 | saved" in job.output
    assert (checkout / "snapshots" / f"job{job.id}.pt").exists()


@pytest.mark.parametrize(
    "program", [pytest.param(DDP, marks=pytest.mark.nightly), FSDP]
)
def test_chain_of_pbs_jobs_trains_to_the_end(program, pbs, checkout):
    """The first job is ended by its walltime, its successor resumes what it saved."""
    given = f"EPOCHS={EPOCHS},SAVE_EVERY=1,SCRIPT={program},ARGS=--batch-size 320"
    script = "job_scripts/chained.pbs"
    first = pbs.qsub(*ONE_RANK, "-v", given, script, cwd=checkout)
    snapshot = checkout / "snapshots" / f"chain{first}.pt"
    end = time.monotonic() + LIMIT
    while not (snapshot.is_file() or [*snapshot.glob("*/.metadata")]):
        assert time.monotonic() < end, pbs.job(first).output
        time.sleep(0.05)
    pbs.expire(first)
    assert pbs.wait(first, LIMIT).exit_status == -29
    last = pbs.wait(str(int(first.split(".")[0]) + 1), LIMIT)
    assert last.exit_status == 0, last.output
    (resumed,) = steps_before(last.output)
    assert 0 < resumed < LONG
    assert ends_trained(last.output, LONG), last.output
