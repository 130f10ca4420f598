"""Checks of exercises/09_two_jobs.sbatch."""

import pytest

from grader import expect


def meeting_point(job):
    """(host, port, id) that the agents of a job are told, all of them the same."""
    expect.that(job.state == "COMPLETED", job.ending)
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that start torchrun")
    told = {
        (launch.option("--rdzv-endpoint"), launch.option("--rdzv-id"))
        for launch in job.started("torchrun")
    }
    expect.that(len(told) == 1, f"the agents of one job are told different: {told}")
    endpoint, number = told.pop()
    host, _, port = (endpoint or "").rpartition(":")
    expect.equal(host, job.nodes[0], "the host of --rdzv-endpoint")
    expect.that(port.isdecimal(), f"the port of --rdzv-endpoint is {port!r}")
    expect.that(
        1024 <= int(port) <= 32767,
        f"the port of job {job.id} is {port}: nothing from 1024 to 32767",
    )
    return host, int(port), number


@pytest.mark.ranks(1, init=False, limit=60)
def test_two_jobs_on_the_same_nodes_do_not_meet(exercise_path, scheduler):
    """Two jobs on the same nodes at the same time have different ports and ids."""
    one, other = scheduler.submit_twice(exercise_path, only_launch=True)
    _, port, number = meeting_point(one)
    _, other_port, other_number = meeting_point(other)
    expect.that(port != other_port, f"both jobs use the port {port} of {one.nodes[0]}")
    expect.right_way(
        number != other_number, f"the --rdzv-id of both jobs is {number!r}"
    )


@pytest.mark.ranks(1, init=False, limit=60)
def test_port_is_one_for_every_number_of_a_job(exercise_path, scheduler):
    """Jobs with eight digits, one after the other, have different, possible ports."""
    ports = []
    for number in ("48151623", "48151624"):
        variables = {"SLURM_JOB_ID": number, "SLURM_JOBID": number}
        job = scheduler.submit(exercise_path, on_paper=True, env=variables)
        ports.append(meeting_point(job)[1])
    expect.that(ports[0] != ports[1], f"jobs 48151623 and 48151624 share port {ports}")


@pytest.mark.ranks(1, init=False, limit=120)
def test_both_jobs_run_at_the_same_time(exercise_path, scheduler, seed):
    """Two jobs on the same two nodes end well, each with four ranks of its own."""
    if scheduler.dry:
        scheduler.not_checked("two jobs that run at the same time")
        return
    if seed % 2 == 0:
        return  # torchrun takes its time; with one of the two seeds is enough
    for job in scheduler.submit_twice(exercise_path, limit=80):
        expect.that(job.state == "COMPLETED", job.ending)
        found = [(worker.rank, worker.host) for worker in job.workers]
        one, other = job.nodes
        expected = [(0, one), (1, one), (2, other), (3, other)]
        expect.equal(sorted(found), sorted(expected), f"the ranks of job {job.id}")
