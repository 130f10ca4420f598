"""Checks of exercises/02_lying_launcher.py."""

import random

import pytest

from grader import expect


def srun(rank, local_rank, world_size):
    return {
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(local_rank),
        "SLURM_NTASKS": str(world_size),
    }


def by_hand(rank, local_rank, world_size):
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(world_size),
    }


def mpirun(rank, local_rank, world_size):
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
        "OMPI_COMM_WORLD_SIZE": str(world_size),
    }


def listed(environ):
    return ", ".join(f"{name}={value}" for name, value in environ.items())


def compare(exercise, environ, expected):
    found = exercise.contradictions(dict(environ))
    if isinstance(found, (list, tuple)):
        found = [tuple(pair) for pair in found]
    expect.equal(found, expected, f"contradictions in {listed(environ)}")


def place(seed):
    """Rank, local rank and world size of a process that is not the first."""
    draw = random.Random(seed)
    local_rank = draw.randint(1, 3)
    return 4 * draw.randint(1, 3) + local_rank, local_rank, 16


@pytest.mark.ranks(1)
def test_an_honest_environment(exercise, seed):
    """No contradiction where all agree, or where only one of a pair is set."""
    numbers = place(seed)
    compare(exercise, {}, [])
    compare(exercise, by_hand(*numbers), [])
    compare(exercise, srun(*numbers), [])
    compare(exercise, {"WORLD_SIZE": "16"} | srun(*numbers), [])
    compare(exercise, by_hand(*numbers) | srun(*numbers), [])


@pytest.mark.ranks(1)
def test_a_left_over_rank(exercise, seed):
    """RANK=0 was exported by the job script: every other process can tell."""
    rank, local_rank, size = place(seed)
    environ = {"RANK": "0"} | srun(rank, local_rank, size)
    compare(exercise, environ, [("RANK", "SLURM_PROCID")])
    compare(exercise, {"RANK": "0"} | srun(0, 0, size), [])


@pytest.mark.ranks(1)
def test_every_contradiction_is_found(exercise, seed):
    """All pairs that differ, in the order of the table."""
    rank, local_rank, size = place(seed)
    environ = by_hand(rank, local_rank - 1, size - 1) | srun(rank, local_rank, size)
    expected = [("LOCAL_RANK", "SLURM_LOCALID"), ("WORLD_SIZE", "SLURM_NTASKS")]
    compare(exercise, environ, expected)
    environ = by_hand(rank - 1, local_rank, size - 1) | srun(rank, local_rank, size)
    expected = [("RANK", "SLURM_PROCID"), ("WORLD_SIZE", "SLURM_NTASKS")]
    compare(exercise, environ, expected)


@pytest.mark.ranks(1)
def test_numbers_are_compared_not_texts(exercise, seed):
    """RANK=03 and SLURM_PROCID=3 are the same rank."""
    rank, local_rank, size = place(seed)
    environ = {"RANK": f"{rank:03}"} | srun(rank, local_rank, size)
    compare(exercise, environ, [])


@pytest.mark.ranks(1)
def test_torchrun_inside_srun_is_honest(exercise, seed):
    """Under torchrun the SLURM numbers are those of the torchrun: they may differ."""
    environ = by_hand(*place(seed)) | srun(1, 0, 4) | {"TORCHELASTIC_RUN_ID": "7"}
    compare(exercise, environ, [])


@pytest.mark.ranks(1)
def test_mpirun_inside_a_slurm_job(exercise, seed):
    """mpirun inside a Slurm job: RANK must agree with mpirun, not with Slurm."""
    rank, local_rank, size = place(seed)
    environ = srun(0, 0, 1) | mpirun(rank, local_rank, size)
    compare(exercise, environ, [])
    compare(exercise, by_hand(rank, local_rank, size) | environ, [])
    expected = [("RANK", "OMPI_COMM_WORLD_RANK")]
    compare(exercise, by_hand(0, local_rank, size) | environ, expected)


@pytest.mark.ranks(1)
def test_the_message_names_the_variables(exercise, seed):
    """refuse_lies: NAME=VALUE of every variable that takes part in a contradiction."""
    rank, local_rank, size = place(seed)
    environ = by_hand(0, local_rank, 2) | srun(rank, local_rank, size)
    words = ["RANK=0", f"SLURM_PROCID={rank}", "WORLD_SIZE=2", f"SLURM_NTASKS={size}"]
    expect.raises(
        exercise.LyingLauncher,
        exercise.refuse_lies,
        environ,
        words=words,
        what=f"refuse_lies for {listed(environ)}",
    )


@pytest.mark.ranks(1)
def test_honest_processes_are_left_alone(exercise, seed):
    """refuse_lies: nothing happens where nothing is wrong."""
    numbers = place(seed)
    for environ in ({}, srun(*numbers), by_hand(*numbers) | srun(*numbers)):
        exercise.refuse_lies(environ)
        expect.that(True, "")


@pytest.mark.ranks(1)
def test_localhost_is_another_machine_on_every_node(exercise):
    """master_is_reachable: MASTER_ADDR=localhost will do on one node only."""
    for address, nodes, expected in (
        ("localhost", 1, True),
        ("127.0.0.1", 1, True),
        ("n1", 1, True),
        ("n1", 3, True),
        ("10.77.0.11", 2, True),
        ("localhost", 2, False),
        ("127.0.0.1", 12, False),
    ):
        environ = srun(0, 0, 12) | {"SLURM_NNODES": str(nodes), "MASTER_ADDR": address}
        found = exercise.master_is_reachable(environ)
        what = f"master_is_reachable, MASTER_ADDR={address} on {nodes} node(s)"
        expect.equal(found, expected, what)
