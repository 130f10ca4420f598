"""What docs/practice_cluster.rst says about Slurm and the cluster, tried out there.

What the cluster's own commands do is tested in tests/jobs/test_practice_cluster.py.
"""

import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.launched import wait_until
from tests.needs import CLUSTER, skip_without
from workshop.cluster.nodes import Cluster

pytestmark = [pytest.mark.nodes, pytest.mark.full]


@pytest.fixture(scope="module")
def cluster():
    skip_without(CLUSTER)
    place = tempfile.TemporaryDirectory(prefix="pc-", dir="/tmp")
    with place as folder, Cluster(Path(folder) / "c") as cluster:
        cluster.up(nodes=2, cpus=4, gpus=2, memory_mb=500)
        yield cluster


def shown(cluster, *words, **options) -> str:
    return cluster.run(words, timeout=60, check=True, **options).stdout


def state_of(cluster, node: str) -> str:
    return shown(cluster, "sinfo", "-h", "-N", "-n", node, "-o", "%T").strip()


def test_slurm_hands_out_gpus_and_pytorch_finds_none(cluster):
    code = "import os, torch; print(os.environ['CUDA_VISIBLE_DEVICES'], "
    code += "torch.cuda.is_available())"
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has real GPUs")
    words = ["srun", "--gres=gpu:2", sys.executable, "-c", code]
    assert shown(cluster, *words) == "0,1 False\n"


def test_there_is_no_sacct_but_scontrol_tells_of_ended_jobs(cluster):
    assert cluster.run(["sacct"]).returncode != 0
    shown(cluster, "sbatch", "--wait", "--output=/dev/null", "--wrap", "true")
    job = shown(cluster, "squeue", "-h", "-t", "all", "-o", "%i").split()[0]
    assert "JobState=COMPLETED" in shown(cluster, "scontrol", "show", "job", job)


def test_options_on_the_command_line_win_over_those_in_the_script(cluster, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=1 --output=a.out\nsrun hostname\n")
    shown(cluster, "sbatch", "--wait", "--nodes=2", script, cwd=tmp_path)
    # to the file that --output names, in the folder where it was submitted
    assert sorted((tmp_path / "a.out").read_text().split()) == ["n1", "n2"]


def test_all_nodes_have_the_same_tmp_and_memory_is_not_enforced(cluster):
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        assert shown(cluster, "ls", file.name, node="n2").strip() == file.name
    big = "x = bytearray(900_000_000); x[::4096] = b'y' * len(x[::4096]); print('fits')"
    words = ["srun", "--mem=100", sys.executable, "-c", big]
    assert shown(cluster, *words) == "fits\n"


def test_salloc_holds_nodes_until_its_command_ends(cluster):
    words = ["salloc", "--nodes=2", "bash", "-c", "srun hostname; squeue -h -o %T"]
    assert sorted(shown(cluster, *words).split()) == ["RUNNING", "n1", "n2"]
    wait_until(lambda: shown(cluster, "squeue", "-h") == "")


def test_a_job_that_asks_for_what_is_taken_waits_for_resources(cluster):
    options = ["--output=/dev/null", "--exclusive", "--nodes=2"]
    for _ in range(2):
        shown(cluster, "sbatch", *options, "--wrap", "sleep 100")
    listing = ["squeue", "-h", "-o", "%t %r"]
    wanted = ["PD Resources", "R None"]
    wait_until(lambda: sorted(shown(cluster, *listing).splitlines()) == wanted)
    shown(
        cluster,
        "scancel",
        "--state=PENDING",
        "--user",
        shown(cluster, "id", "-un").strip(),
    )
    wait_until(lambda: shown(cluster, *listing) == "R None\n")
    shown(cluster, "scancel", *shown(cluster, "squeue", "-h", "-o", "%i").split())
    wait_until(lambda: shown(cluster, "squeue", "-h") == "")


@pytest.mark.nightly
def test_resume_asks_a_node_whose_cable_is_back(cluster):
    wait_until(lambda: state_of(cluster, "n2") == "idle")
    cluster.link("n2", "down")
    wait_until(lambda: state_of(cluster, "n2") == "down*")
    cluster.link("n2", "up")
    time.sleep(3)
    assert state_of(cluster, "n2") == "down*"  # nobody has asked it yet
    shown(cluster, "scontrol", "update", "nodename=n2", "state=resume")
    wait_until(lambda: state_of(cluster, "n2") == "idle")


@pytest.mark.nightly
def test_a_job_is_put_back_when_its_node_is_lost(cluster, tmp_path):
    # Both nodes: which of them Slurm prefers does not matter. Both tasks must have
    # begun: an srun that cannot start one of them fails, and its job with it.
    task = f"srun bash -c 'touch {tmp_path}/$SLURM_NODEID; sleep 200'"
    options = ["--nodes=2", "--output=/dev/null", "--wrap", task]
    job = shown(cluster, "sbatch", "--parsable", *options).strip()
    show = ["scontrol", "show", "job", job]
    wait_until(lambda: {path.name for path in tmp_path.iterdir()} == {"0", "1"})
    cluster.off("n2")
    wait_until(lambda: state_of(cluster, "n2") == "down*")
    wait_until(lambda: "JobState=PENDING" in shown(cluster, *show))
    assert "Requeue=1" in shown(cluster, *show)
    cluster.on("n2")
    wait_until(lambda: "Restarts=1" in shown(cluster, *show))
    shown(cluster, "scancel", job)
