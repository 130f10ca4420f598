"""Checks of exercises/02_dist_env.py."""

import os
import random

import pytest
import torch.distributed as dist

from workshop.grader import expect

FIELDS = ("launcher", "rank", "local_rank", "world_size")
OTHERS = {  # what os.environ holds meanwhile: numbers that no check passes
    "RANK": "901",
    "LOCAL_RANK": "902",
    "WORLD_SIZE": "903",
    "TORCHELASTIC_RUN_ID": "none",
    "OMPI_COMM_WORLD_RANK": "904",
    "OMPI_COMM_WORLD_LOCAL_RANK": "905",
    "OMPI_COMM_WORLD_SIZE": "906",
    "SLURM_PROCID": "907",
    "SLURM_LOCALID": "908",
    "SLURM_NTASKS": "909",
    "SLURM_STEP_ID": "0",
}
ASIDE = ("LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID")


def where(around, function, environ):
    """What ``function(environ)`` returns while os.environ is ``around``."""
    saved = dict(os.environ)
    os.environ.clear()
    os.environ.update(around)
    try:
        return function(environ)
    finally:
        os.environ.clear()
        os.environ.update(saved)


def compare(exercise, environ, expected):
    """What get_dist_env makes of ``environ``, and of nothing else."""
    shown = [f"{k}={v}" for k, v in environ.items() if k not in ASIDE]
    what = ", ".join(shown) or "an environment without a launcher"
    given = {"HOME": "/home/ada", **environ}
    # an answer that reads os.environ instead must not succeed
    found, other = (
        where(around, exercise.find_launcher, dict(given)) for around in (OTHERS, {})
    )
    expect.that(
        found == other,
        f"find_launcher for {what} is {found!r} or {other!r}, depending on what "
        "os.environ holds: look at `environ`",
    )
    passed = dict(given)
    env = where(OTHERS, exercise.get_dist_env, passed)
    expect.that(passed == given, f"get_dist_env changed its argument, for {what}")
    expect.that(env is not None, "get_dist_env returned None: is a `return` missing?")
    kind = f"get_dist_env returned a {type(env).__name__}, expected a DistEnv"
    expect.that(all(hasattr(env, field) for field in FIELDS), kind)
    for field, value in zip(FIELDS, expected, strict=True):
        found = getattr(env, field)
        expect.that(
            not 901 <= _number(found) <= 909,
            f"{field} for {what} is {found}, which os.environ holds: read `environ`",
        )
        expect.equal(found, value, f"{field} for {what}")
        if field != "launcher":
            expect.that(isinstance(found, int), f"{field} must be int, not {found!r}")


def _number(found):
    return int(found) if str(found).isdecimal() else 0


def world(seed):
    """A process on a node other than the first: rank, local rank, both sizes."""
    draw = random.Random(seed)
    per_node, nodes = draw.randint(11, 16), draw.randint(2, 5)  # ranks of two digits
    node, local_rank = draw.randint(1, nodes - 1), draw.randint(1, per_node - 1)
    return node * per_node + local_rank, local_rank, per_node * nodes, per_node


def torchrun(rank, local_rank, world_size, per_node, run_id="none"):
    return {
        "TORCHELASTIC_RUN_ID": run_id,
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(per_node),
        "GROUP_RANK": str(rank // per_node),
        "MASTER_ADDR": "node1",
        "MASTER_PORT": "29500",
    }


def open_mpi(rank, local_rank, world_size, _per_node):
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
        "OMPI_COMM_WORLD_SIZE": str(world_size),
    }


def batch_script(rank, local_rank, world_size, per_node):
    return {
        "SLURM_JOB_ID": "4711",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(local_rank),
        "SLURM_NTASKS": str(world_size),
        "SLURM_NNODES": str(world_size // per_node),
    }


def srun(*numbers):
    return {**batch_script(*numbers), "SLURM_STEP_ID": "0"}


@pytest.mark.ranks(1)
def test_plain_python_is_a_world_of_one(exercise):
    """Without a launcher a process is rank 0 of 1."""
    compare(exercise, {}, ("python", 0, 0, 1))


@pytest.mark.ranks(1)
def test_torchrun(exercise, seed):
    """Under torchrun: RANK, LOCAL_RANK and WORLD_SIZE, three different numbers."""
    rank, local_rank, size, per_node = world(seed)
    environ = torchrun(rank, local_rank, size, per_node)
    compare(exercise, environ, ("torchrun", rank, local_rank, size))


@pytest.mark.ranks(1)
def test_mpirun(exercise, seed):
    """Under mpirun of Open MPI: the OMPI_COMM_WORLD variables."""
    rank, local_rank, size, per_node = world(seed)
    environ = open_mpi(rank, local_rank, size, per_node)
    compare(exercise, environ, ("mpirun", rank, local_rank, size))


@pytest.mark.ranks(1)
def test_srun(exercise, seed):
    """Under srun: SLURM_PROCID, SLURM_LOCALID and SLURM_NTASKS."""
    rank, local_rank, size, per_node = world(seed)
    environ = srun(rank, local_rank, size, per_node)
    compare(exercise, environ, ("srun", rank, local_rank, size))


@pytest.mark.ranks(1)
def test_ranks_dealt_out_in_turn(exercise, seed):
    """With neighboring ranks on different nodes (cyclic), too: ask the launcher."""
    _, local_rank, size, per_node = world(seed)
    rank = local_rank * (size // per_node) + 1  # of the second node
    for launcher, name in ((srun, "srun"), (open_mpi, "mpirun")):
        environ = launcher(rank, local_rank, size, per_node)
        compare(exercise, environ, (name, rank, local_rank, size))


@pytest.mark.ranks(1)
def test_torchrun_inside_srun(exercise, seed):
    """srun started one torchrun per node: torchrun's numbers count, not Slurm's."""
    rank, local_rank, size, per_node = world(seed)
    environ = srun(rank // per_node, 0, size // per_node, 1)
    environ |= torchrun(rank, local_rank, size, per_node)
    compare(exercise, environ, ("torchrun", rank, local_rank, size))


@pytest.mark.ranks(1)
def test_mpirun_inside_a_slurm_job(exercise, seed):
    """mpirun inside a Slurm job: use mpirun's; Slurm's belong to mpirun's daemon."""
    rank, local_rank, size, per_node = world(seed)
    environ = srun(0, 0, 1, 1) | open_mpi(rank, local_rank, size, per_node)
    compare(exercise, environ, ("mpirun", rank, local_rank, size))


@pytest.mark.ranks(1)
def test_torchrun_inside_mpirun(exercise, seed):
    """mpirun started one torchrun per node: torchrun's numbers count."""
    rank, local_rank, size, per_node = world(seed)
    environ = open_mpi(rank // per_node, 0, size // per_node, 1)
    environ |= torchrun(rank, local_rank, size, per_node)
    compare(exercise, environ, ("torchrun", rank, local_rank, size))


@pytest.mark.ranks(1)
def test_a_batch_script_is_one_process(exercise, seed):
    """In a batch script, without srun, a process is alone whatever SLURM_NTASKS is."""
    _, _, size, per_node = world(seed)
    compare(exercise, batch_script(0, 0, size, per_node), ("python", 0, 0, 1))


@pytest.mark.ranks(1)
def test_rank_0_and_a_world_of_one(exercise, seed):
    """Rank 0 of each launcher, also in a world of one, and with other run ids."""
    _, _, size, per_node = world(seed)
    for numbers in ((0, 0, size, per_node), (0, 0, 1, 1)):
        for launcher in (torchrun, open_mpi, srun):
            expected = (launcher.__name__.replace("open_mpi", "mpirun"), *numbers[:3])
            compare(exercise, launcher(*numbers), expected)
        for run_id in ("4711", "0"):
            environ = torchrun(*numbers, run_id=run_id)
            compare(exercise, environ, ("torchrun", *numbers[:3]))


@pytest.mark.ranks(1)
def test_a_variable_that_is_empty(exercise, seed):
    """A launcher's variable counts whatever its value is, even if that is empty."""
    rank, local_rank, size, per_node = world(seed)
    numbers = (rank, local_rank, size)
    environ = srun(rank // per_node, 0, size // per_node, 1)
    environ |= torchrun(*numbers, per_node, run_id="")
    compare(exercise, environ, ("torchrun", *numbers))
    environ = srun(*numbers, per_node) | {"SLURM_STEP_ID": ""}
    compare(exercise, environ, ("srun", *numbers))


@pytest.mark.ranks(1)
def test_strays(exercise, seed):
    """RANK and WORLD_SIZE that somebody exported by hand do not count."""
    rank, local_rank, size, per_node = world(seed)
    strays = {"RANK": "77", "LOCAL_RANK": "7", "WORLD_SIZE": "88"}
    compare(exercise, strays, ("python", 0, 0, 1))
    for launcher in (open_mpi, srun):
        environ = strays | launcher(rank, local_rank, size, per_node)
        expected = launcher.__name__.replace("open_mpi", "mpirun")
        compare(exercise, environ, (expected, rank, local_rank, size))


@pytest.mark.ranks(1)
def test_launchers_inside_a_batch_script(exercise, seed):
    """mpirun and torchrun in a batch script, without srun: their own numbers count."""
    rank, local_rank, size, per_node = world(seed)
    for launcher in (open_mpi, torchrun):
        environ = batch_script(0, 0, 1, 1) | launcher(rank, local_rank, size, per_node)
        expected = launcher.__name__.replace("open_mpi", "mpirun")
        compare(exercise, environ, (expected, rank, local_rank, size))


@pytest.mark.ranks(3, 4, init=False)
def test_real_ranks_meet(exercise, rank, world_size, shared_dir):
    """With these numbers the ranks join one group, each with its launcher's rank."""
    env = exercise.get_dist_env({**os.environ, "TORCHELASTIC_RUN_ID": "check"})
    dist.init_process_group(
        "gloo",
        init_method=f"file://{shared_dir}/meet",
        rank=env.rank,
        world_size=env.world_size,
    )
    expect.equal(dist.get_rank(), rank, "the rank in the process group")
    expect.equal(dist.get_world_size(), world_size, "the size of the process group")
