"""What goes wrong on a cluster, really caused, and how the Slurm jobs come through.

Whatever happened to a job: its weights are in the end, bit for bit, those of a job to
which nothing happened. A slow network gives each fault the time to come in the middle
of a training: it makes steps long without any work for this machine.
"""

import re
import subprocess
import sys

import pytest

from tests.jobs.conftest import WAITING
from tests.launched import wait_until
from tests.needs import skip_without

pytestmark = pytest.mark.full

EPOCHS = {"EPOCHS": "10", "SAVE_EVERY": "1", "RANKS_PER_NODE": "2"}
LONG = 400  # seconds for a whole training, on a machine that has much else to do
RANKS = r"python\S* -u src/08_multinode|python src/09_"  # of torchrun, of srun


def start(submit, script: str, nodes="n1,n2", args=(), **variables: str) -> int:
    """Submit a training of four ranks on these nodes; "": any two."""
    path = f"job_scripts/{script}.sbatch"
    options = [f"--nodelist={nodes}"] if nodes else []
    return submit.start(path, *options, args=args, env={**EPOCHS, **variables})


def until(submit, job: int, happened):
    """The job once ``happened(job)``, which must be before its end."""
    seen = submit.until(
        job, lambda now: happened(now) or now.state not in WAITING, timeout=LONG
    )
    assert happened(seen), f"it ended before that: {seen}"
    return seen


def in_the_middle(submit, job: int, epoch: int = 3) -> None:
    """Wait until a training has begun this epoch and saved the ones before it."""
    begun = f"rank 0] Epoch {epoch} "
    seen = until(submit, job, lambda now: begun in now.output)
    assert seen.state == "RUNNING", f"it was too quick for a fault: {seen}"
    saved = (f"Snapshot of {epoch} epochs", f"Snapshot of {12 * epoch} steps")
    assert saved[0] in seen.output or saved[1] in seen.output


def finish(submit, job: int):
    """The job, which must have ended well."""
    seen = submit.wait(job, timeout=LONG)
    assert (seen.state, seen.exit_code) == ("COMPLETED", 0), seen.output
    return seen


def resumed_after(output: str) -> list[int]:
    """The steps that were not repeated, each time that training was resumed."""
    resumed = re.findall(r"Resuming from \S+ after (\d+) (steps|epochs)", output)
    return [int(n) * (12 if unit == "epochs" else 1) for n, unit in resumed]


def assert_same_end(checkout, job: int, other: int) -> None:
    """Weights, optimizer, learning rate, random numbers: equal in every bit."""
    names = [f"snapshots/job{number}.pt" for number in (job, other)]
    compare = [sys.executable, "src/instruments/06_compare_snapshots.py", *names]
    done = subprocess.run(compare, cwd=checkout, capture_output=True, text=True)
    assert done.stdout.endswith("Equal in every bit\n"), done.stdout + done.stderr


def ranks_on(cluster, node: str) -> list[str]:
    """The processes of any training on a node."""
    skip_without("pgrep")
    return cluster.run(["pgrep", "-f", RANKS], node).stdout.split()


def is_idle(cluster, node: str) -> bool:
    words = ["sinfo", "-h", "-n", node, "-o", "%T"]
    return cluster.run(words, timeout=60).stdout.strip() == "idle"


@pytest.fixture(scope="module")
def undisturbed(submit) -> int:
    """A job to which nothing happens; the launcher makes no difference."""
    return finish(submit, start(submit, "multinode_srun")).id


@pytest.fixture(scope="module")
def never_stopped(submit) -> int:
    """A requeue job that nothing stops; it draws other random numbers than the rest."""
    return finish(submit, start(submit, "requeue")).id


@pytest.fixture
def slow(cluster):
    """Call it with a delay, then with "off" once the fault has come."""
    yield cluster.delay
    cluster.delay("off")
    # a test that failed may have left a fault
    for node in cluster.status().nodes:
        if not node.power:
            cluster.on(node.name)
        if not node.link:
            cluster.link(node.name, "up")


def test_cancelled_job_leaves_a_snapshot_and_no_process(
    cluster, submit, checkout, undisturbed, slow
):
    """scancel: nothing runs on; another job goes on from what it had saved."""
    slow("5ms")
    job = start(submit, "multinode_torchrun")
    in_the_middle(submit, job)
    assert ranks_on(cluster, "n1") and ranks_on(cluster, "n2")
    cluster.run(["scancel", str(job)], check=True)
    seen = submit.wait(job, timeout=60)
    assert (seen.state, seen.restarts) == ("CANCELLED", 0)
    for node in ("n1", "n2"):
        gone = f"no rank on {node}"
        wait_until(lambda node=node: not ranks_on(cluster, node), what=gone)
        wait_until(lambda node=node: is_idle(cluster, node), what=f"{node} is idle")
    slow("off")
    snapshot = f"snapshots/job{job}.pt"
    again = finish(submit, start(submit, "multinode_torchrun", SNAPSHOT=snapshot))
    assert resumed_after(again.output)[0] >= 36
    assert_same_end(checkout, job, undisturbed)


def test_killed_worker_is_replaced(cluster, submit, checkout, undisturbed, slow):
    """SIGKILL for a rank: torchrun starts all ranks again, in the same job."""
    slow("5ms")
    job = start(submit, "multinode_torchrun")
    in_the_middle(submit, job)
    victim = ranks_on(cluster, "n2")[-1]
    cluster.run(["kill", "-KILL", victim], "n2", check=True)
    until(submit, job, lambda now: "Resuming from" in now.output)
    slow("off")
    seen = finish(submit, job)
    # torchrun names the victim, or another rank that ended of its loss meanwhile
    assert seen.restarts == 0
    assert re.search(r"failed \(exitcode: (-9|1)\)", seen.output), seen.output
    assert resumed_after(seen.output)[0] >= 36
    assert_same_end(checkout, job, undisturbed)


@pytest.mark.nightly
def test_job_trains_on_when_a_lost_node_is_back(
    cluster, submit, checkout, never_stopped, slow
):
    """Power of the first node off: Slurm misses it and requeues the job."""
    slow("5ms")
    job = start(submit, "requeue")
    in_the_middle(submit, job)
    cluster.off("n1")  # where the script itself and rank 0 run
    waiting = until(submit, job, lambda now: now.state == "PENDING")
    assert waiting.restarts == 1
    slow("off")
    assert not is_idle(cluster, "n1")
    cluster.on("n1")
    seen = finish(submit, job)
    assert (seen.restarts, seen.nodes) == (1, ["n1", "n2"])
    assert resumed_after(seen.output)[0] >= 36
    assert_same_end(checkout, job, never_stopped)


@pytest.mark.nightly
def test_slurm_itself_stops_a_job_before_its_time_limit(
    cluster, submit, checkout, never_stopped, slow
):
    """--signal=B:USR1@120: saved inside an epoch, requeued, trained to the end."""
    slow("20ms")
    never = {"SAVE_EVERY": "10"}  # before the end: saved only when asked
    job = start(submit, "requeue", **never)
    begun = "rank 0] Epoch 1 "
    until(submit, job, lambda now: begun in now.output)

    def limit(minutes: int) -> bool:
        words = ["scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}"]
        return cluster.run(words).returncode == 0

    assert limit(2)  # the signal is due at once; Slurm looks every 30 seconds
    until(submit, job, lambda now: "requeue: the time is up" in now.output)
    # for the next start; between the two the job may count as finished
    wait_until(lambda: limit(10), 60, "the job is in the queue again")
    slow("off")
    seen = finish(submit, job)
    assert seen.restarts == 1
    (steps,) = resumed_after(seen.output)
    assert 12 < steps < 120 and seen.output.count("Snapshot of") == 2
    assert_same_end(checkout, job, never_stopped)


def test_torchrun_waits_for_a_node_that_joins_late(
    cluster, submit, checkout, undisturbed
):
    """One node is not ready: the others wait for it, then all train."""
    # a site whose n2 has a slow file system: torchrun takes long to start there
    folder = checkout / "late"
    folder.mkdir()
    torchrun = folder / "torchrun"
    torchrun.write_text(
        "#!/bin/bash\n"
        'while [ "$(hostname)" = n2 ] && [ ! -e late/over ]; do\n'
        "  touch late/begun; sleep 0.1\n"
        "done\n"
        'exec .venv/bin/torchrun "$@"\n'
    )
    torchrun.chmod(0o755)
    (checkout / "job_scripts" / "sites" / "late.sh").write_text(
        "SITE_SCHEDULER=slurm\n"
        "site_environment() { activate_environment; PATH=$PWD/late:$PATH; }\n"
    )
    job = start(submit, "multinode_torchrun", WORKSHOP_SITE="late")
    port = str(20000 + job * 11)
    reach = ["bash", "-c", f"echo > /dev/tcp/n1/{port}"]
    wait_until(
        lambda: cluster.run(reach).returncode == 0 and (folder / "begun").exists(),
        what="torchrun on n1 waits for the other",
    )
    seen = submit.look(job)
    assert seen.state == "RUNNING" and "Epoch" not in seen.output
    (folder / "over").touch()
    assert "Epoch" in finish(submit, job).output
    assert_same_end(checkout, job, undisturbed)


def test_two_jobs_on_the_same_nodes_do_not_meet(
    cluster, submit, checkout, undisturbed, slow
):
    """Ports and rendezvous of a job are its own: each ends at its own weights."""
    slower = ["--learning-rate", "0.01"]
    alone = finish(submit, start(submit, "multinode_torchrun", args=slower)).id
    slow("5ms")
    jobs = [
        start(submit, "multinode_torchrun"),
        start(submit, "multinode_torchrun", args=slower),
    ]
    for job in jobs:
        until(submit, job, lambda now: "Epoch 1 " in now.output)
    seen = [submit.look(job) for job in jobs]
    assert [each.state for each in seen] == ["RUNNING"] * 2
    assert [each.nodes for each in seen] == [["n1", "n2"]] * 2
    slow("off")
    for job, other in zip(jobs, (undisturbed, alone), strict=True):
        finish(submit, job)
        assert_same_end(checkout, job, other)


@pytest.mark.nightly
def test_job_trains_on_elsewhere_when_a_cable_is_pulled(
    cluster, submit, checkout, never_stopped, slow
):
    """A node without a network: another one takes its place, its ranks are ended.

    The last test: Slurm takes a minute to call the node idle again.
    """
    slow("5ms")
    job = start(submit, "requeue", nodes="")
    in_the_middle(submit, job)
    lost = submit.look(job).nodes[1]
    cluster.link(lost, "down")
    until(submit, job, lambda now: now.restarts == 1)
    slow("off")
    seen = finish(submit, job)
    assert seen.restarts == 1 and len(seen.nodes) == 2 and lost not in seen.nodes
    assert resumed_after(seen.output)[0] >= 36
    assert_same_end(checkout, job, never_stopped)
    assert ranks_on(cluster, lost), "they cannot know that the job goes on without"
    cluster.link(lost, "up")
    wait_until(lambda: not ranks_on(cluster, lost), what=f"no rank on {lost}")
