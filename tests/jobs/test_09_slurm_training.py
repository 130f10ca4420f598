"""Each .sbatch, submitted as it is, trains on 2 and on 4 nodes as one device does."""

import re

import pytest

from tests.needs import CLUSTER, needs

pytestmark = pytest.mark.full

EPOCH = re.compile(r"^\[node (\d+) local (\d+) rank (\d+)\] Epoch (\d+) ", re.M)
ACCURACY = re.compile(r"^Test accuracy [\d.]+% \((\d+) of 359\)$", re.M)
SHORT = {"EPOCHS": "3", "SAVE_EVERY": "3"}
PROGRAMS = {
    "torchrun": "08_multinode_torchrun.py",
    "srun": "09_srun.py",
    "mpirun": "09_srun.py",
}
NEAR = 15  # test images of 359: the ranks draw other random numbers than one process


def same_batch(ranks: int) -> list[str]:
    """Arguments for steps of 32 images of all ranks together, as on one device."""
    return ["--batch-size", str(32 // ranks)]


def correct(output: str) -> int:
    found = ACCURACY.findall(output)
    assert len(found) == 1, output
    return int(found[0])


def places(output: str) -> set[tuple[int, ...]]:
    """(node, local rank, rank) of all who trained."""
    return {tuple(map(int, found[:3])) for found in EPOCH.findall(output)}


@pytest.fixture(scope="module")
def one_device(submit) -> int:
    """Right answers of 359 after the same training by one process."""
    command = [".venv/bin/python", "src/01_single_device.py", "3", "3"]
    done = submit.run([*command, "--snapshot", "one.pt"], node="n1")
    assert done.returncode == 0, done.stderr
    return correct(done.stdout)


@pytest.mark.parametrize(
    ("nodes", "per_node"),
    [
        pytest.param(2, 2, marks=pytest.mark.quick),
        pytest.param(4, 1, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize(
    "launcher",
    ["torchrun", "srun", pytest.param("mpirun", marks=needs(CLUSTER, "mpirun"))],
)
def test_many_nodes_train_as_one_device(
    launcher, nodes, per_node, submit, checkout, one_device
):
    script, ranks = f"job_scripts/multinode_{launcher}.sbatch", nodes * per_node
    assert f":-src/{PROGRAMS[launcher]}}}" in (checkout / script).read_text()
    options, variables = [f"--nodes={nodes}"], dict(SHORT)
    if launcher == "torchrun":
        variables["RANKS_PER_NODE"] = str(per_node)
    else:
        options.append(f"--ntasks-per-node={per_node}")
    job = submit(script, *options, args=same_batch(ranks), env=variables, timeout=240)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    assert len(job.nodes) == nodes
    everyone = {(r // per_node, r % per_node, r) for r in range(ranks)}
    assert places(job.output) == everyone
    assert abs(correct(job.output) - one_device) <= NEAR
    assert (checkout / "snapshots" / f"job{job.id}.pt").exists()


def test_one_node_trains_with_a_rank_for_each_gpu(submit, one_device):
    script = "job_scripts/singlenode_torchrun.sbatch"
    options = ["--gres=gpu:2", "--cpus-per-task=1"]
    job = submit(script, *options, args=same_batch(2), env=SHORT, timeout=240)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    assert places(job.output) == {(0, 0, 0), (0, 1, 1)}
    assert abs(correct(job.output) - one_device) <= NEAR


@pytest.mark.nightly
def test_scaling_array_measures_one_node_then_two(submit, checkout):
    variables, small = {"RANKS_PER_NODE": "1"}, ["--blocks", "1", "--context", "8"]
    script = "job_scripts/scaling_array.sbatch"
    number = submit.start(script, args=small, env=variables)
    outputs = [checkout / f"scaling_array-{number}_{k}.out" for k in (1, 2)]
    submit.until(
        number,
        lambda job: all(p.exists() and "Weak" in p.read_text() for p in outputs),
        timeout=240,
    )
    ranks = [re.findall(r"(\d) ranks, each", p.read_text()) for p in outputs]
    assert ranks == [["1"], ["2"]]
    measured = sorted((checkout / "scaling").glob(f"{number}.*"))
    assert [path.name[-10:] for path in measured] == ["nodes1.csv", "nodes2.csv"]
    compare = [".venv/bin/python", "src/instruments/18_scaling.py"]
    done = submit.run([*compare, *(f"scaling/{path.name}" for path in measured)])
    assert done.returncode == 0, done.stderr
    assert [line[:5].strip() for line in done.stdout.splitlines()[2:4]] == ["1", "2"]


def test_interactive_job_trains_on_two_nodes(submit, one_device):
    start = ["srun", "--nodes=2", "--gres=gpu:2"]
    done = submit.run([*start, "./job_scripts/interactive.sh"], env=SHORT, timeout=240)
    assert done.returncode == 0, done.stderr
    assert places(done.stdout) == {(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)}
    assert "snapshot snapshots/job" in done.stdout


def test_interactive_script_runs_any_program_inside_salloc(submit):
    start = ["salloc", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1", "srun"]
    done = submit.run([*start, "./job_scripts/interactive.sh", "src/02_hello_ranks.py"])
    assert done.returncode == 0, done.stderr
    assert "launcher: torchrun" in done.stdout
    assert "sum of all ranks: 1, expected: 1" in done.stdout


def test_hello_ranks_meets_under_a_live_srun(submit):
    command = ["srun", "--nodes=2", "--ntasks-per-node=2", "--gres=gpu:2"]
    done = submit.run([*command, ".venv/bin/python", "src/02_hello_ranks.py"])
    assert done.returncode == 0, done.stderr
    assert "launcher: srun | backend: gloo" in done.stdout
    assert "(first host of SLURM_STEP_NODELIST" in done.stdout
    pattern = (
        r"^rank (\d) of 4 \| node rank (\d) \| local rank (\d) of 2 \| CPU0 \| "
        r"host (n\d)$"
    )
    lines = re.findall(pattern, done.stdout, re.M)
    numbers = [tuple(map(int, line[:3])) for line in lines]
    assert numbers == [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]
    hosts = [line[3] for line in lines]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
    assert "sum of all ranks: 6, expected: 6" in done.stdout
