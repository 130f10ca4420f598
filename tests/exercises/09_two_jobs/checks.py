"""Checks of exercises/09_two_jobs.sbatch."""

import random

import pytest

from workshop.grader import expect


def meeting_point(job, number):
    """(port, id) that the agents of a job got, all of them the same."""
    expect.that(job.state == "COMPLETED", f"job {number}: {job.complaint}")
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that start torchrun")
    told = {
        (launch.option("--rdzv-endpoint"), launch.option("--rdzv-id"))
        for launch in job.started("torchrun")
    }
    expect.that(
        len(told) == 1, f"the agents of one job get different ports or ids: {told}"
    )
    endpoint, name = told.pop()
    host, _, port = (endpoint or "").rpartition(":")
    expect.equal(host, job.nodes[0], "the host of --rdzv-endpoint")
    expect.that(port.isdecimal(), f"the port of --rdzv-endpoint is {port!r}")
    expect.that(
        1024 <= int(port) <= 32767,
        f"the port of job {number} is {port}, which isn't between 1024 and 32767",
    )
    return int(port), name


@pytest.mark.ranks(1, init=False, limit=60)
def test_two_jobs_on_the_same_nodes_do_not_meet(exercise_path, scheduler):
    """Two jobs on the same nodes at the same time have different ports and ids."""
    one, other = scheduler.submit_twice(exercise_path, only_launch=True)
    port, name = meeting_point(one, one.id)
    other_port, other_name = meeting_point(other, other.id)
    expect.that(port != other_port, f"both jobs use the port {port} of {one.nodes[0]}")
    expect.right_way(name != other_name, f"the --rdzv-id of both jobs is {name!r}")


def told(scheduler, path, number, **more):
    """(port, id) that the script makes for the job with this number, on paper."""
    variables = {"SLURM_JOB_ID": str(number), "SLURM_JOBID": str(number), **more}
    job = scheduler.submit(path, on_paper=True, nodes=1, env=variables)
    return meeting_point(job, number)


def different(one, other, port_and_id, other_port_and_id):
    (port, name), (other_port, other_name) = port_and_id, other_port_and_id
    expect.that(port != other_port, f"{one} and {other} share the port {port}")
    expect.right_way(name != other_name, f"{one} and {other} share the id {name!r}")


@pytest.mark.ranks(1, init=False, limit=60)
def test_port_and_id_are_made_from_the_job(exercise_path, scheduler, seed):
    """One job always makes the same port and id; a task of an array has its own."""
    number = random.Random(seed).randrange(10_000_000, 90_000_000)
    first = told(scheduler, exercise_path, number)
    again = told(scheduler, exercise_path, number)
    expect.that(
        again == first,
        f"job {number} has port {first[0]} and id {first[1]}, and asked a second time "
        f"port {again[0]} and id {again[1]}: make both from what Slurm says about the "
        "job, not from the time or a random number",
    )
    octal = number - number % 10_000 + 87  # to bash, 0088 is no number
    tasks = [
        told(
            scheduler,
            exercise_path,
            octal + task,
            SLURM_ARRAY_JOB_ID=str(number),
            SLURM_ARRAY_TASK_ID=str(task),
        )
        for task in (1, 2)
    ]
    different("task 1", "task 2 of one array", *tasks)


@pytest.mark.ranks(1, init=False, limit=60)
def test_port_is_one_for_every_number_of_a_job(exercise_path, scheduler, seed):
    """Consecutive jobs of any number have different ports, all of them allowed."""
    draw = random.Random(seed)
    begins = [10009089, 10031743] if seed % 2 else [draw.randrange(10, 9_000_000)]
    begins.append(draw.randrange(10_000_000, 90_000_000))
    for begin in begins:
        numbers = range(begin, begin + 3)
        seen = [told(scheduler, exercise_path, number) for number in numbers]
        for one, other in ((0, 1), (1, 2), (0, 2)):
            names = f"job {numbers[one]}", f"job {numbers[other]}"
            different(*names, seen[one], seen[other])
    first, port = begins[-1], seen[0][0]
    later = told(scheduler, exercise_path, first + 100)
    different(f"job {first}", f"job {first + 100}", seen[0], later)
    # the port before the first, and the last, if they count up
    for number in (1023 - port, 32767 - port, 32768 - port):
        told(scheduler, exercise_path, first + number)


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
