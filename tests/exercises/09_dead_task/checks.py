"""Checks of exercises/09_dead_task.sbatch."""

import re

import pytest

from workshop.grader import expect

RANKS_PER_NODE = 2


@pytest.mark.ranks(1, init=False, limit=90)
def test_rank_that_fails_ends_the_job(exercise_path, scheduler, seed):
    """When one rank fails, the others are ended, and the job is reported as FAILED."""
    if scheduler.dry:
        scheduler.not_checked("what becomes of the job when a rank fails")
        return
    nodes = 2 + seed % 2
    failing = 3 * (seed % 2)  # a rank of another node, and rank 0
    # five seconds stand for the time until the limit of the job
    job = scheduler.submit(
        exercise_path, nodes=nodes, failing_rank=failing, work_seconds=5, limit=40
    )
    ran = sorted(worker.rank for worker in job.workers)
    expect.that(
        not ran or failing in ran,
        f"rank {failing} was never started: the ranks are {ran}, and each node has "
        f"{RANKS_PER_NODE} tasks",
    )
    worked_on = [w.rank for w in job.workers if w.finished and w.rank != failing]
    expect.that(
        not worked_on,
        f"rank {failing} failed, but the step continued: ranks {worked_on} were not "
        "ended",
    )
    expect.that(
        job.state == "FAILED",
        f"rank {failing} failed with status 3, and {job.ending}",
    )
    announced(job)


def announced(job):
    """The last line says that the training has ended."""
    lines = [line for line in job.output.splitlines() if line.strip()] or [""]
    says = re.compile(r"ended|finished|done|complete|stopped|\bover\b").search
    of_bash = ".sbatch: line " in lines[-1]
    expect.that(not of_bash, f"the last line of the output is an error: {lines[-1]}")
    earlier = any(map(says, lines))
    problem = "the last line of the output doesn't say that training has ended"
    if earlier:
        problem += " (an earlier line does)"
    expect.that(bool(says(lines[-1])), f"{problem}; {job.ending}")


def limits(job):
    """What would end ranks that have not failed: options of srun, and timeout."""
    for launch in job.started("srun"):
        for option in ("--wait", "-W", "--time", "-t"):
            value = launch.option(option)
            if value is not None and value != "0":
                yield f"srun {option}={value}"
        yield from (word for word in launch.args if re.match(r"-[Wt][1-9]", word))
    yield from (f"timeout {launch.args[0]}" for launch in job.started("timeout"))


@pytest.mark.ranks(1, init=False, limit=60)
def test_ranks_that_do_not_fail_run_to_their_end(exercise_path, scheduler, seed):
    """Two ranks run on each node to their end, even if one needs longer."""
    nodes = 2 + seed % 2
    job = scheduler.submit(
        exercise_path, nodes=nodes, work_seconds=3, working_rank=2 * nodes - 1
    )
    expected = [host for host in job.nodes for _ in range(RANKS_PER_NODE)]
    found = job.hosts("python")
    expect.that(bool(found), f"no host started python: {job.complaint}")
    expect.equal(found, expected, "the hosts that start python")
    cut_short = [worker.rank for worker in job.workers if not worker.finished]
    expect.that(
        not cut_short, f"no rank has failed, yet ranks {cut_short} were ended early"
    )
    expect.that(job.state == "COMPLETED", job.complaint)
    announced(job)
    limited = ", ".join(limits(job))
    expect.that(
        not limited,
        f"{limited}: this ends ranks that have not failed, if they need longer",
    )
