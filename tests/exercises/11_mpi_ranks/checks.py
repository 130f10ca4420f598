"""Checks of exercises/11_mpi_ranks.py."""

import socket
import time
from datetime import timedelta
from types import MappingProxyType

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect


def open_mpi(rank, local_rank, world_size):
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
        "OMPI_COMM_WORLD_SIZE": str(world_size),
        "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
        "OMPI_COMM_WORLD_NODE_RANK": str(local_rank + 4),  # counts other jobs, too
    }


def mpich(rank, local_rank, world_size):
    return {
        "PMI_RANK": str(rank),
        "MPI_LOCALRANKID": str(local_rank),
        "PMI_SIZE": str(world_size),
        "MPI_LOCALNRANKS": "4",
        "OMPI_MCA_btl": "tcp,self",  # a setting of a site, which starts nothing
    }


def task_of_srun(rank, tasks):
    """What `srun --mpi=pmi2` gives to a task: two of MPICH's names, and its own."""
    return {
        "PMI_RANK": str(rank),
        "PMI_SIZE": str(tasks),
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": "0",
        "SLURM_NTASKS": str(tasks),
    }


def numbers_of(exercise, environ, what):
    """What read_ranks gives where all three names of a column are set."""
    try:
        return exercise.read_ranks(environ)
    except exercise.NotStarted:
        question = "does it look there, not in os.environ?"
        ranks = [value for name, value in environ.items() if name.endswith("RANK")]
        if "0" in ranks:
            question = "does it take the number 0 for a missing value?"
    told = "read_ranks raised NotStarted, but environ has all three names of a column"
    return expect.that(False, f"{what}: {told}: {question}")


def place(rank, local_rank, world_size):
    return {"rank": rank, "local_rank": local_rank, "world_size": world_size}


@pytest.mark.ranks(1)
def test_numbers_under_open_mpi(exercise, seed):
    """Open MPI's rank, local rank and world size, as whole numbers."""
    for rank, local_rank in ((4 + seed, seed), (0, 0)):
        environ = MappingProxyType(open_mpi(rank, local_rank, 12))
        what = f"the numbers of rank {rank} under Open MPI"
        numbers = numbers_of(exercise, environ, what)
        expect.equal(numbers, place(rank, local_rank, 12), what)


@pytest.mark.ranks(1)
def test_numbers_under_mpich(exercise, seed):
    """The same three numbers under the names of MPICH and Intel MPI."""
    for rank, local_rank in ((8 + seed, seed), (0, 0)):
        environ = MappingProxyType(mpich(rank, local_rank, 16))
        what = f"the numbers of rank {rank} under MPICH"
        numbers = numbers_of(exercise, environ, what)
        expect.equal(numbers, place(rank, local_rank, 16), what)


@pytest.mark.ranks(1)
def test_open_mpi_inside_a_task_of_srun(exercise, seed):
    """Open MPI started this process, even if srun started mpirun."""
    for rank, local_rank, tasks in ((4 + seed, seed, 2), (0, 0, 2), (2, 2, 16)):
        environ = {**mpich(1, 1, tasks), **open_mpi(rank, local_rank, 8)}
        numbers = exercise.read_ranks(environ)
        wanted = place(rank, local_rank, 8)
        expect.equal(numbers, wanted, "the numbers of the inner launcher")
        environ = {**task_of_srun(1, tasks), **open_mpi(rank, local_rank, 8)}
        numbers = exercise.read_ranks(environ)
        what = "the numbers of the inner launcher, in a task of srun --mpi=pmi2"
        expect.equal(numbers, wanted, what)


@pytest.mark.ranks(1)
def test_arguments_inside_a_task_of_srun(exercise, seed):
    """The group has Open MPI's ranks, even if srun started mpirun."""
    master = {"MASTER_ADDR": "n1", "MASTER_PORT": "20123"}
    for outer in (mpich(1, 1, 2), task_of_srun(1, 2)):
        environ = {**outer, **open_mpi(4 + seed, seed, 8), **master}
        arguments = exercise.group_arguments(environ)
        for name, wanted in (("rank", 4 + seed), ("world_size", 8)):
            what = f"the {name} in the arguments, where srun started Open MPI's mpirun"
            expect.equal(arguments[name], wanted, what)


@pytest.mark.ranks(1)
def test_process_that_mpirun_did_not_start(exercise):
    """If each column lacks a name, the error says that mpirun didn't start it."""
    expect.raises(
        exercise.NotStarted,
        exercise.read_ranks,
        {"PATH": "/usr/bin", "MASTER_ADDR": "n1", "MASTER_PORT": "20123"},
        words=["mpirun"],
        what="a process that no mpirun has started",
    )
    expect.raises(
        exercise.NotStarted,
        exercise.read_ranks,
        task_of_srun(3, 4),
        words=["mpirun"],
        what="a task of srun --mpi=pmi2 (PMI_RANK, PMI_SIZE, no MPI_LOCALRANKID)",
    )


@pytest.mark.ranks(1)
def test_incomplete_column(exercise, seed):
    """A column that lacks a name doesn't count, whichever of the three it is."""
    for missing in exercise.OPEN_MPI.values():
        environ = {**mpich(4 + seed, seed, 8), **open_mpi(2, 1, 6)}
        del environ[missing]
        what = f"the numbers under MPICH, with names of Open MPI but no {missing}"
        expect.equal(exercise.read_ranks(environ), place(4 + seed, seed, 8), what)
    for started in (open_mpi, mpich):
        table = exercise.OPEN_MPI if started is open_mpi else exercise.MPICH
        for missing in table.values():
            environ = started(2, 1, 6)
            del environ[missing]
            what = f"a process without {missing}"
            refuse = exercise.read_ranks
            expect.raises(
                exercise.NotStarted, refuse, environ, words=["mpirun"], what=what
            )


@pytest.mark.ranks(1)
def test_arguments_for_a_host_with_a_name(exercise, seed):
    """The address and port from the environment, and this process's numbers."""
    master = {"MASTER_ADDR": "n1", "MASTER_PORT": str(20000 + seed)}
    for host in ("n1", "10.0.0.7"):
        environ = {**mpich(4 + seed, seed, 8), **master, "MASTER_ADDR": host}
        arguments = exercise.group_arguments(MappingProxyType(environ))
        expected = {
            "init_method": f"tcp://{host}:{20000 + seed}",
            "rank": 4 + seed,
            "world_size": 8,
        }
        expect.equal(arguments, expected, "the arguments of init_process_group")


@pytest.mark.ranks(1)
def test_what_was_not_handed_over_is_named(exercise, seed):
    """A missing MASTER_ADDR or MASTER_PORT is an error that names the variable."""
    master = {"MASTER_ADDR": "n1", "MASTER_PORT": "20123"}
    said = set()
    for name in master:
        rest = {key: value for key, value in master.items() if key != name}
        environ = {**open_mpi(seed, seed, 8), **rest}
        expect.raises(
            exercise.NotStarted,
            exercise.group_arguments,
            environ,
            words=[name],
            what=f"an environment without {name}",
        )
        try:
            exercise.group_arguments(environ)
        except exercise.NotStarted as error:
            said.add(str(error))
    expect.that(
        len(said) == 2,
        "the error is the same, whichever of the two is missing: name that one",
    )


@pytest.mark.ranks(1)
def test_arguments_for_an_ipv6_address(exercise, seed):
    """An IPv6 address is in brackets before the port."""
    for address in (
        f"fd00::{seed}",
        "2001:db8:0:1:2:3:4:5",
        "::1",
        "FE80::7%eth0",
        "::ffff:10.0.0.7",
    ):
        master = {"MASTER_ADDR": address, "MASTER_PORT": "20123"}
        arguments = exercise.group_arguments({**open_mpi(1, 1, 2), **master})
        expect.equal(
            arguments["init_method"],
            f"tcp://[{address}]:20123",
            "init_method for an IPv6 address",
        )


def free_port(rank, shared_dir):
    """A port that rank 0 finds and writes down for the others."""
    note = shared_dir / "port"
    if rank == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (shared_dir / "port.new").write_text(str(port))
        (shared_dir / "port.new").rename(note)
    while not note.exists():
        time.sleep(0.02)
    return note.read_text()


@pytest.mark.ranks(3, 4, init=False, limit=20)
def test_ranks_meet(exercise, rank, world_size, seed, shared_dir):
    """With these arguments, the ranks really connect and add up their numbers."""
    names = open_mpi if seed % 2 else mpich
    environ = names(rank, rank, world_size)
    environ["MASTER_ADDR"] = "127.0.0.1"
    environ["MASTER_PORT"] = free_port(rank, shared_dir)
    arguments = exercise.group_arguments(environ)
    dist.init_process_group("gloo", timeout=timedelta(seconds=15), **arguments)
    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    expect.equal(total.item(), world_size * (world_size + 1) / 2, "the sum")
    dist.destroy_process_group()
