"""Checks of exercises/09_node_rank.sbatch."""

import pytest

from grader import expect


@pytest.mark.ranks(1, init=False, limit=60)
def test_each_torchrun_is_told_the_rank_of_its_node(exercise_path, scheduler, seed):
    """Each node starts one torchrun that is told its own node rank."""
    job = scheduler.submit(exercise_path, nodes=2 + seed % 2, only_launch=True)
    expect.that(job.state == "COMPLETED", job.ending)
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that start torchrun")
    launches = {launch.host: launch for launch in job.started("torchrun")}
    in_order = [launches[host] for host in job.nodes]
    told = [launch.option("--node-rank") for launch in in_order]
    expect.right_way(
        None not in told, "torchrun is started without --node-rank, so not static"
    )
    expected = [str(number) for number in range(len(job.nodes))]
    expect.equal(told, expected, "--node-rank, node by node")


@pytest.mark.ranks(1, init=False, limit=60)
def test_all_agents_are_sent_to_the_first_node(exercise_path, scheduler, seed):
    """All agents are told the number of nodes, and one address on the first node."""
    job = scheduler.submit(exercise_path, nodes=2 + seed % 2, only_launch=True)
    launches = job.started("torchrun")
    told = [launch.nodes for launch in launches]
    expect.equal(told, [str(len(job.nodes))] * len(launches), "--nnodes of the agents")
    for option, expected in (
        ("--master-addr", job.nodes[0]),
        ("--nproc-per-node", "2"),
    ):
        told = [launch.option(option) for launch in launches]
        expect.equal(told, [expected] * len(launches), f"{option} of the agents")
    ports = {launch.option("--master-port") for launch in launches}
    expect.that(len(ports) == 1, f"the agents are told different ports: {ports}")


@pytest.mark.ranks(1, init=False, limit=100)
def test_all_ranks_run(exercise_path, scheduler, seed):
    """On two nodes, ranks 0 and 1 run on the first, ranks 2 and 3 on the second."""
    if seed % 2 == 0 and not scheduler.dry:
        return  # torchrun takes its time; with one of the two seeds is enough
    job = scheduler.submit(exercise_path, nodes=2, limit=60)
    expect.that(job.state == "COMPLETED", job.ending)
    if scheduler.dry:
        scheduler.not_checked("whether the two nodes meet")
        return
    found = [(worker.rank, worker.host) for worker in job.workers]
    one, other = job.nodes
    expected = [(0, one), (1, one), (2, other), (3, other)]
    expect.equal(found, expected, "the ranks and their hosts")
