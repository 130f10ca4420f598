"""Checks of exercises/09_dead_task.sbatch."""

import pytest

from grader import expect

RANKS_PER_NODE = 2


@pytest.mark.ranks(1, init=False, limit=90)
def test_rank_that_fails_ends_the_job(exercise_path, scheduler, seed):
    """When one rank fails, the others are ended, and so is the job: as FAILED."""
    if scheduler.dry:
        scheduler.not_checked("what becomes of the job when a rank fails")
        return
    nodes = 2 + seed % 2
    failing = seed % (RANKS_PER_NODE * nodes)
    # five seconds stand for the time until the limit of the job
    job = scheduler.submit(
        exercise_path, nodes=nodes, failing_rank=failing, work_seconds=5, limit=40
    )
    worked_on = [w.rank for w in job.workers if w.finished and w.rank != failing]
    expect.that(
        not worked_on,
        f"rank {failing} failed, and the step went on: nobody ended ranks {worked_on}",
    )
    expect.that(
        job.state == "FAILED",
        f"rank {failing} failed with status 3, and {job.ending}",
    )
    expect.that("ended" in job.output, f"the end is not announced; {job.ending}")


@pytest.mark.ranks(1, init=False, limit=60)
def test_ranks_that_do_not_fail_run_to_their_end(exercise_path, scheduler, seed):
    """Two ranks run on each node, also if one needs longer than the others."""
    nodes = 2 + seed % 2
    job = scheduler.submit(
        exercise_path, nodes=nodes, work_seconds=3, working_rank=2 * nodes - 1
    )
    expected = [host for host in job.nodes for _ in range(RANKS_PER_NODE)]
    expect.equal(job.hosts("python"), expected, "the hosts that start python")
    cut_short = [worker.rank for worker in job.workers if not worker.finished]
    expect.that(
        not cut_short, f"no rank has failed, yet ranks {cut_short} were ended early"
    )
    expect.that(job.state == "COMPLETED", job.ending)
    expect.that("ended" in job.output, f"the end is not announced; {job.ending}")
