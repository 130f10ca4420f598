"""Checks of exercises/09_one_launcher_per_node.sbatch."""

import re

import pytest

from workshop.grader import expect

RANKS_PER_NODE = 4


@pytest.mark.ranks(1, init=False, limit=60)
def test_srun_starts_one_torchrun_on_each_node(exercise_path, scheduler, seed):
    """Each node of the job starts one torchrun, however many nodes there are."""
    nodes = 3 if seed % 2 else 1
    job = scheduler.submit(exercise_path, nodes=nodes, only_launch=True)
    expect.that(job.state == "COMPLETED", job.ending)
    expect.that(
        len(job.nodes) == nodes,
        f"submitted with --nodes={nodes}, but the job got {len(job.nodes)}: "
        "do the #SBATCH lines ask for fewer tasks, or for fixed nodes?",
    )
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that start torchrun")
    expect.told(job.started("torchrun"), "--nnodes", str(nodes))
    expect.told(job.started("torchrun"), "--nproc-per-node", str(RANKS_PER_NODE))


@pytest.mark.ranks(1, init=False, limit=100)
def test_all_ranks_run(exercise_path, scheduler, seed):
    """On two nodes, eight ranks run to their end: four on each, with four CPUs."""
    if seed % 2 == 0 and not scheduler.dry:
        return  # torchrun takes its time; with one of the two seeds is enough
    job = scheduler.submit(exercise_path, nodes=2, limit=60)
    expect.that(job.state == "COMPLETED", job.ending)
    if scheduler.dry:
        scheduler.not_checked("whether the two nodes connect, and the CPUs of the job")
        return
    expected = [host for host in job.nodes for _ in range(RANKS_PER_NODE)]
    found = sorted(worker.host for worker in job.workers)
    expect.equal(found, expected, "the hosts of the ranks")
    for worker in job.workers:
        cpus = int(re.findall(r"\d+", worker.env["SLURM_JOB_CPUS_PER_NODE"])[0])
        expect.that(
            cpus >= RANKS_PER_NODE,
            f"the job has {cpus} CPU on each node for {RANKS_PER_NODE} ranks: "
            "one task per node has one CPU, unless you ask for more",
        )
