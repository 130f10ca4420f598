"""Checks of exercises/10_bare_environment.pbs: what reaches the tasks of pbsdsh."""

import pytest

from grader import expect

UNTIL_ENDED = 90  # seconds


def submit(scheduler, path, nodes, **more):
    asked = f"select={nodes}:ncpus=2:mpiprocs=1"
    options = ("-l", asked, "-l", "place=scatter")
    job = scheduler.submit(path, *options, nodes=nodes, **more)
    expect.that(job.state != "REFUSED", f"qsub refused the script: {job.output}")
    return job


@pytest.mark.ranks(1, init=False, limit=60)
def test_every_task_starts_torchrun(exercise_path, scheduler, seed):
    """Each host starts one torchrun of the workshop, in the folder of the job."""
    nodes = 2 + seed % 2
    job = submit(scheduler, exercise_path, nodes, limit=40, only_launch=True)
    tasks = job.started("torchrun")
    expect.that(tasks, f"no task started the workshop's torchrun; {job.ending}")
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that started torchrun")
    for task in tasks:
        folder = str(scheduler.folder)
        expect.equal(task.cwd, folder, f"the folder of the task on {task.host}")
        expect.equal(task.nodes, str(nodes), f"--nnodes on {task.host}")
        missing = "src/08_multinode_torchrun.py" not in task.args
        expect.that(not missing, f"{task.host}: torchrun was not told what to train")
    expect.that(job.state == "COMPLETED", job.ending)


@pytest.mark.ranks(1, init=False, limit=120)
def test_what_reaches_the_ranks(exercise_path, scheduler, seed):
    """The ranks find both variables, and if one fails, so does the job."""
    if scheduler.dry:
        what = "which variables reach the ranks, and what a failing one does"
        scheduler.not_checked(what)
        return
    fails = seed % 2 == 0  # one of the two seeds
    which = 0 if fails else None
    more = {"limit": UNTIL_ENDED, "failing_rank": which}
    job = submit(scheduler, exercise_path, 1, **more)
    expect.equal(len(job.workers), 2, f"the number of ranks ({job.ending})")
    for name, wanted in {"OMP_NUM_THREADS": "1", "NCCL_DEBUG": "WARN"}.items():
        found = [worker.env.get(name) for worker in job.workers]
        expect.equal(found, [wanted, wanted], f"{name} of the two ranks")
    expect.that(fails or job.state == "COMPLETED", job.ending)
    told = not fails or job.exit_code not in (0, None)
    expect.that(told, "a rank has failed, but the job's exit status is 0")
