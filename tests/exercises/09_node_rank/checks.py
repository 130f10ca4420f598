"""Checks of exercises/09_node_rank.sbatch."""

import pytest

from workshop.grader import expect


@pytest.mark.ranks(1, init=False, limit=60)
def test_each_torchrun_is_told_the_rank_of_its_node(exercise_path, scheduler, seed):
    """Each node starts one torchrun, which gets its own node rank."""
    gap = [] if seed % 2 else ["--exclude=n2"]  # the names don't number the nodes
    job = scheduler.submit(exercise_path, *gap, nodes=2 + seed % 2, only_launch=True)
    expect.that(job.state == "COMPLETED", job.ending)
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that start torchrun")
    launches = {launch.host: launch for launch in job.started("torchrun")}
    backends = {launch.option("--rdzv-backend") for launch in launches.values()}
    expect.right_way(
        backends <= {None, "static"},
        f"--rdzv-backend is {' and '.join(map(str, backends))}, so not static",
    )
    for number, host in enumerate(job.nodes):
        expect.told([launches[host]], "--node-rank", str(number))


@pytest.mark.ranks(1, init=False, limit=60)
def test_all_agents_are_sent_to_the_first_node(exercise_path, scheduler, seed):
    """All agents get the number of nodes, and one address on the first node."""
    job = scheduler.submit(exercise_path, nodes=2 + seed % 2, only_launch=True)
    launches = job.started("torchrun")
    expect.told(launches, "--nnodes", str(len(job.nodes)))
    expect.told(launches, "--nproc-per-node", "2")
    ports = set()
    for launch in launches:
        endpoint = launch.option("--rdzv-endpoint")  # torchrun takes it for the address
        if endpoint is None:
            expect.told([launch], "--master-addr", job.nodes[0])
            ports.add(launch.option("--master-port"))
        else:
            host, _, port = endpoint.partition(":")
            what = f"the host of --rdzv-endpoint on {launch.host}"
            expect.equal(host, job.nodes[0], what)
            ports.add(port)
    expect.that(len(ports) == 1, f"the agents get different ports: {ports}")
    expect.that(ports != {None}, "no torchrun got --master-port")


@pytest.mark.ranks(1, init=False, limit=100)
def test_all_ranks_run(exercise_path, scheduler, seed):
    """On two nodes, ranks 0 and 1 run on the first, ranks 2 and 3 on the second."""
    if seed % 2 == 0 and not scheduler.dry:
        return  # torchrun takes its time; with one of the two seeds is enough
    job = scheduler.submit(exercise_path, nodes=2, limit=60)
    expect.that(job.state == "COMPLETED", job.ending)
    if scheduler.dry:
        scheduler.not_checked("whether the two nodes connect")
        return
    found = [(worker.rank, worker.host) for worker in job.workers]
    one, other = job.nodes
    expected = [(0, one), (1, one), (2, other), (3, other)]
    expect.equal(found, expected, "the ranks and their hosts")
    for worker in job.workers:
        enough = len(worker.args) >= 2
        expect.that(enough, f"{worker.program} needs two numbers, got {worker.args}")
