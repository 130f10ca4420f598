"""Checks of exercises/10_bare_environment.pbs: what reaches the tasks of pbsdsh."""

import pytest

from workshop.grader import expect

UNTIL_ENDED = 90  # seconds
# How long a torchrun waits for the others; without this, ten minutes.
PATIENCE = "PET_RDZV_CONF=join_timeout=30"


def submit(scheduler, path, nodes, variables=(), **more):
    asked = f"select={nodes}:ncpus=2:mpiprocs=1"
    options = ("-l", asked, "-l", "place=scatter", *variables)
    job = scheduler.submit(path, *options, nodes=nodes, **more)
    expect.that(job.state != "REFUSED", f"qsub refused the script: {job.output}")
    return job


@pytest.mark.ranks(1, init=False, limit=60)
def test_every_task_starts_torchrun(exercise_path, scheduler, seed):
    """Each host starts one torchrun of the workshop, in the folder of the job."""
    nodes = 2 + seed % 2
    job = submit(scheduler, exercise_path, nodes, limit=40, only_launch=True)
    tasks = job.started("torchrun")
    expect.that(tasks, f"no task started the workshop's torchrun; {job.complaint}")
    expect.equal(job.hosts("torchrun"), job.nodes, "the hosts that started torchrun")
    expect.told(tasks, "--nnodes", str(nodes))
    for task in tasks:
        folder = str(scheduler.folder)
        expect.equal(task.cwd, folder, f"the folder of the task on {task.host}")
        missing = "src/08_multinode_torchrun.py" not in task.args
        expect.that(not missing, f"{task.host}: torchrun got no program to train")
    expect.that(job.state == "COMPLETED", f"no task has failed, but {job.ending}")
    others = [name for name in ("pbs_tmrsh", "ssh") if job.started(name)]
    expect.right_way(
        not others and job.started("pbsdsh"),
        f"the tasks were started by {' and '.join(others) or 'another program'}, "
        "not by pbsdsh",
    )


@pytest.mark.ranks(1, init=False, limit=120)
def test_any_task_that_fails_counts(exercise_path, scheduler, seed):
    """The job fails if one or more tasks do, on any host, and only then."""
    bad = (("n3",), ("n1", "n2")) if seed % 2 else (("n1",), ("n1", "n2", "n3"))
    for hosts in (bad[0], (), bad[1]):
        job = submit(
            scheduler, exercise_path, 3, limit=40, only_launch=True, failing_hosts=hosts
        )
        if hosts:
            failed = job.exit_code not in (0, None)
            sentence = f"torchrun on {' and '.join(hosts)} has failed, but the job has"
            expect.that(
                failed,
                f"{sentence} the exit status {job.exit_code}: a task must end with the "
                "status of its torchrun, and the script with that of its tasks",
            )
        else:
            when = "no task has failed, but one had in the job before"
            expect.that(job.state == "COMPLETED", f"{when}; {job.ending}")


@pytest.mark.ranks(1, init=False, limit=120)
def test_what_reaches_the_ranks(exercise_path, scheduler, seed):
    """The tasks connect, and the ranks find both variables as set, or fail the job."""
    if scheduler.dry:
        what = "which variables reach the ranks, and what a failing one does"
        scheduler.not_checked(what)
        return
    fails = seed % 2 == 0  # one of the two seeds
    which, level = (0, "WARN") if fails else (None, "INFO")
    nodes = 1 if fails else 2  # the first task waits for that on the second host
    more = {"limit": UNTIL_ENDED, "failing_rank": which}
    if level != "WARN":
        more["variables"] = ("-v", f"NCCL_DEBUG={level},{PATIENCE}")
    job = submit(scheduler, exercise_path, nodes, **more)
    ranks = 2 * nodes
    expect.equal(len(job.workers), ranks, f"the number of ranks ({job.complaint})")
    for name, wanted in {"OMP_NUM_THREADS": "1", "NCCL_DEBUG": level}.items():
        found = [worker.env.get(name) for worker in job.workers]
        expect.equal(found, [wanted] * ranks, f"{name} of the ranks")
    expect.that(fails or job.state == "COMPLETED", job.ending)
    told = not fails or job.exit_code not in (0, None)
    expect.that(told, "a rank has failed, but the job's exit status is 0")
