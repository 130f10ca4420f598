"""Checks of exercises/10_every_node.pbs: submitted to two and to three hosts."""

import pytest

from workshop.grader import expect

UNTIL_ENDED = 90  # seconds
# How long a torchrun waits for the others; without this, ten minutes.
PATIENCE = ("-v", "PET_RDZV_CONF=join_timeout=30")


def submit(scheduler, path, nodes, ncpus=1, mpiprocs=1, **more):
    """One process on each host is enough for a check that runs it."""
    select = f"select={nodes}:ncpus={ncpus}:mpiprocs={mpiprocs}"
    asked = ("-l", select, "-l", "place=scatter", *PATIENCE)
    job = scheduler.submit(path, *asked, nodes=nodes, **more)
    expect.that(job.state != "REFUSED", f"qsub refused the script: {job.output}")
    return job


def meeting_host(launch):
    """The host of a torchrun's endpoint."""
    endpoint = launch.option("--rdzv-endpoint") or launch.option("--master-addr") or ""
    return endpoint.split(":")[0]


def meeting_port(launch):
    """The port of a torchrun's endpoint, or "" for torchrun's own."""
    endpoint = launch.option("--rdzv-endpoint")
    if endpoint is None:
        return launch.option("--master-port") or ""
    return endpoint.partition(":")[2]


def one_for_all(agents, value, what):
    """All hosts got the same options."""
    told = {agent.host: value(agent) for agent in agents}
    different = ", ".join(f"{told[host]} on {host}" for host in sorted(told))
    one = len(set(told.values())) == 1
    expect.that(one, f"each host needs the same {what}, but they have {different}")


@pytest.mark.ranks(1, init=False, limit=60)
def test_every_host_starts_torchrun(exercise_path, scheduler, seed):
    """Each host starts one torchrun, with the number of hosts and one meeting point."""
    only = {"limit": 40, "only_launch": True}
    job = submit(scheduler, exercise_path, 2 + seed % 2, ncpus=2, **only)
    started = job.hosts("torchrun")
    what = "the hosts that started torchrun"
    expect.that(started, f"no host started torchrun; {job.complaint}")
    expect.equal(started, job.nodes, what)
    agents = job.started("torchrun")
    for agent in agents:
        folder = str(scheduler.folder)
        expect.equal(agent.cwd, folder, f"the folder of torchrun on {agent.host}")
    expect.told(agents, "--nnodes", str(len(job.nodes)))
    expect.told(agents, "--nproc-per-node", "2")
    places = {meeting_host(agent) for agent in agents}
    expect.equal(len(places), 1, f"the number of different endpoints ({places})")
    place = places.pop()
    known = place in job.nodes or place.startswith("10.77.0.")
    sentence = f"their endpoint is on {place!r}, which is not a host of this job"
    expect.that(known, f"{sentence}: {', '.join(job.nodes)}")
    if all(agent.option("--rdzv-backend") in (None, "static") for agent in agents):
        ranks = sorted(agent.option("--node-rank") or "0" for agent in agents)
        wanted = [str(rank) for rank in range(len(agents))]
        expect.equal(ranks, wanted, "the node ranks (without --rdzv-backend=c10d)")
    one_for_all(agents, meeting_port, "port of the rendezvous")
    one_for_all(agents, lambda agent: agent.option("--rdzv-id"), "--rdzv-id")
    expect.that(job.state == "COMPLETED", job.ending)


@pytest.mark.ranks(1, init=False, limit=120)
def test_any_host_that_fails_counts(exercise_path, scheduler, seed):
    """The job fails if one or more hosts do, whichever, and only then."""
    bad = (("n1",), ("n2", "n3")) if seed % 2 else (("n2",), ("n3",))
    for hosts in (bad[0], (), bad[1]):
        more = {"only_launch": True, "failing_hosts": hosts}
        more["failing_first"] = hosts is bad[1]  # in bad[0], they end last
        job = submit(scheduler, exercise_path, 3, limit=40, **more)
        if hosts:
            failed = job.exit_code not in (0, None)
            sentence = f"torchrun on {' and '.join(hosts)} has failed, but the job has"
            expect.that(failed, f"{sentence} the exit status {job.exit_code}")
        else:
            when = "no host has failed, but one had in the job before"
            expect.that(job.state == "COMPLETED", f"{when}; {job.ending}")


@pytest.mark.ranks(1, init=False, limit=60)
def test_host_with_two_lines_starts_one_torchrun(exercise_path, scheduler, seed):
    """With mpiprocs=2, each host is in the node file twice, and starts one torchrun."""
    if scheduler.dry:
        scheduler.not_checked("what mpiprocs=2 does")
        return
    if seed % 2 == 0:
        return
    more = {"ncpus": 2, "mpiprocs": 2, "limit": 40, "only_launch": True}
    job = submit(scheduler, exercise_path, 2, **more)
    started = job.hosts("torchrun")
    twice = len(started) == 2 * len(set(started))
    expect.that(
        not twice,
        f"with mpiprocs=2, torchrun started twice on each host ({', '.join(started)}): "
        "the node file has a line for each of them, and a host needs one torchrun",
    )
    what = "the hosts that started torchrun, with two lines each in the node file"
    expect.equal(started, job.nodes, what)
    expect.told(job.started("torchrun"), "--nnodes", "2")
    expect.that(job.state == "COMPLETED", job.ending)


@pytest.mark.ranks(1, init=False, limit=120)
def test_how_the_job_ends(exercise_path, scheduler, seed):
    """The hosts connect, and the job succeeds."""
    if scheduler.dry:
        scheduler.not_checked("whether the hosts meet")
        return
    if seed % 2 == 0:
        return  # torchrun takes its time; with one of the two seeds is enough
    job = submit(scheduler, exercise_path, 2, limit=UNTIL_ENDED)
    found = [(worker.rank, worker.host) for worker in job.workers]
    ranks = [rank for rank, _ in found]
    expect.that(job.state == "COMPLETED", job.ending)
    expect.equal(ranks, [0, 1], "the ranks")
    expect.equal(sorted(host for _, host in found), job.nodes, "the hosts of the ranks")
    programs = str(scheduler.folder / ".venv" / "bin")
    bare = [w.host for w in job.workers if programs not in w.env.get("PATH", "")]
    expect.that(
        not bare,
        f"the ranks on {' and '.join(sorted(bare))} don't have the environment that "
        f"the script has activated: {programs} is not on their PATH",
    )
