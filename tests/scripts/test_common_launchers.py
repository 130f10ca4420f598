"""Who and where a rank is: every launcher, also inside another one.

The environments were copied from processes of torchrun (torch 2.13), Slurm 22.05,
Open MPI 4.1 and MPICH 4.0; only what bears on the question is kept.
"""

import os
import re
import socket
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch.distributed as dist

SRC = Path(__file__).resolve().parents[2] / "src"
sys.path.insert(0, str(SRC))

from common.distributed import BadInput  # noqa: E402
from common.launchers import (  # noqa: E402
    DistEnv,
    find_launcher,
    find_master,
    get_dist_env,
    reserve_port,
    told_rank,
)

# Process 5 of 2 nodes x 4, node rank 1, local rank 1.
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_RANK": "1",
    "MASTER_ADDR": "n1",
    "MASTER_PORT": "39853",
}
SRUN = {
    "SLURM_JOB_ID": "3",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_LOCALID": "1",
    "SLURM_NNODES": "2",
    "SLURM_NODEID": "1",
    "SLURM_NTASKS": "8",
    "SLURM_NTASKS_PER_NODE": "4",
    "SLURM_PROCID": "5",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
    "SLURM_TASKS_PER_NODE": "4(x2)",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "OMPI_COMM_WORLD_NODE_RANK": "1",
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "PMIX_NAMESPACE": "425132033",
    "PMIX_RANK": "5",
}
MPICH = {
    "MPI_LOCALNRANKS": "4",
    "MPI_LOCALRANKID": "1",
    "PMI_FD": "8",
    "PMI_RANK": "5",
    "PMI_SIZE": "8",
}
BATCH_SCRIPT = {
    "SLURM_JOB_ID": "3",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_LOCALID": "0",
    "SLURM_NNODES": "2",
    "SLURM_NODEID": "0",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "0",
    "SLURM_TASKS_PER_NODE": "4(x2)",
}
# What mpirun's daemon on the second node was given by the srun that started it.
MPI_DAEMON = {
    "SLURM_JOB_ID": "3",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_NTASKS": "1",
    "SLURM_PROCID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n2",
    "SLURM_STEP_NUM_TASKS": "1",
    "SLURM_STEP_TASKS_PER_NODE": "1",
}
# The shell that salloc opens on a node (LaunchParameters=use_interactive_step).
INTERACTIVE = BATCH_SCRIPT | {
    "SLURM_STEP_ID": "4294967290",
    "SLURM_STEP_NODELIST": "n1",
    "SLURM_STEP_NUM_TASKS": "1",
    "SLURM_STEP_TASKS_PER_NODE": "1",
}
BY_HAND = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}
ALONE = DistEnv("python", 0, 0, 1, 1, 0)


@pytest.mark.parametrize(
    ("environ", "launcher", "node_rank"),
    [
        (TORCHRUN, "torchrun", 1),
        (SRUN, "srun", 1),
        (OPEN_MPI, "Open MPI", None),
        (MPICH, "MPICH", None),
        (BY_HAND, "by hand", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_process_5_of_2_nodes_x_4(environ, launcher, node_rank):
    assert get_dist_env(environ) == DistEnv(launcher, 5, 1, 8, 4, node_rank)


@pytest.mark.parametrize("environ", [{}, {"PATH": "/bin"}, BATCH_SCRIPT, INTERACTIVE])
def test_without_a_launcher_a_process_is_alone(environ):
    assert get_dist_env(environ) == ALONE


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        ({}, "0"),
        (TORCHRUN, "5"),
        (SRUN, "5"),
        (OPEN_MPI, "5"),
        (MPICH, "5"),
        (BY_HAND, "5"),
        (BATCH_SCRIPT | {"SLURM_PROCID": "3"}, "0"),
        (INTERACTIVE | {"SLURM_PROCID": "3"}, "0"),
        ({"RANK": "first"}, "first"),
    ],
)
def test_rank_is_told_without_refusing_anything(environ, rank):
    """Rank 0 prints what is refused; a shell of salloc is no rank of many."""
    assert told_rank(environ) == rank


SALLOC_AND_BATCH = pytest.mark.parametrize("environ", [BATCH_SCRIPT, INTERACTIVE])


@SALLOC_AND_BATCH
@pytest.mark.parametrize("name", ["09_srun", "09_requeue"])
def test_program_without_srun_is_refused_where_slurm_has_set_a_rank(
    name, environ, monkeypatch, tmp_path, capfd
):
    """It would wait for the 7 other tasks of the job, which nothing has started."""
    for variable in [name for name in os.environ if name.startswith(("OMPI", "PMI"))]:
        monkeypatch.delenv(variable)
    for variable in ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "1", "1"])
    with pytest.raises(SystemExit) as ended:
        import_module(name).main()
    assert ended.value.code == 2
    assert "srun" in capfd.readouterr().err


def test_only_the_table_knows_the_names_of_slurm():
    """The two starters are single files, which have their own."""
    for path in {*SRC.rglob("*.py")} - {*SRC.glob("starter/*")}:
        text = path.read_text(encoding="utf-8")
        if path != SRC / "common" / "launchers.py":
            assert not re.search("SLURM_(PROCID|LOCALID|STEP_ID)", text), path.name


AGENT = SRUN | {"SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize(
    ("outer", "inner", "launcher"),
    [
        (AGENT, TORCHRUN, "torchrun"),
        (OPEN_MPI | {"OMPI_COMM_WORLD_RANK": "1"}, TORCHRUN, "torchrun"),
        (MPI_DAEMON, OPEN_MPI, "Open MPI"),
        (MPI_DAEMON | {"PMI_RANK": "0", "PMI_SIZE": "1"}, OPEN_MPI, "Open MPI"),
        (AGENT, MPICH, "MPICH"),
        (BATCH_SCRIPT, SRUN, "srun"),
        (BATCH_SCRIPT, OPEN_MPI, "Open MPI"),
        ({"NODE_RANK": "0"}, TORCHRUN, "torchrun"),
    ],
)
def test_the_innermost_launcher_counts_and_the_outer_one_may_differ(
    outer, inner, launcher
):
    env = get_dist_env(outer | inner)
    assert (env.launcher, env.rank, env.local_rank, env.world_size) == (
        launcher,
        5,
        1,
        8,
    )


def test_srun_with_pmi2_is_srun():
    environ = SRUN | {"PMI_RANK": "5", "PMI_SIZE": "8", "PMI_JOBID": "2.0"}
    assert find_launcher(environ) == "srun"
    assert get_dist_env(environ).rank == 5


def test_unequal_tasks_per_node():
    three = {"SLURM_NTASKS": "7", "SLURM_STEP_NUM_TASKS": "7"}
    environ = SRUN | three | {"SLURM_STEP_TASKS_PER_NODE": "2(x2),3", "RANK": "5"}
    environ |= {"SLURM_NODEID": "2", "SLURM_LOCALID": "1"}
    assert get_dist_env(environ).local_world_size == 3


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        (SRUN | {"RANK": "0"}, ["RANK=0 contradicts SLURM_PROCID=5"]),
        (SRUN | {"LOCAL_RANK": "5"}, ["LOCAL_RANK=5 contradicts SLURM_LOCALID=1"]),
        (SRUN | {"WORLD_SIZE": "4"}, ["WORLD_SIZE=4 contradicts SLURM_NTASKS=8"]),
        (SRUN | {"NODE_RANK": "0"}, ["NODE_RANK=0 contradicts SLURM_NODEID=1"]),
        (
            SRUN | {"RANK": "0", "WORLD_SIZE": "4"},
            ["RANK=0 contradicts SLURM_PROCID=5", "WORLD_SIZE=4 contradicts"],
        ),
        (
            SRUN | {"LOCAL_WORLD_SIZE": "8"},
            ["LOCAL_WORLD_SIZE=8", "SLURM_STEP_TASKS_PER_NODE=4(x2)"],
        ),
        (SRUN | {"SLURM_NODEID": "2"}, ["SLURM_NODEID=2", "2 node(s)"]),
        (SRUN | {"SLURM_STEP_TASKS_PER_NODE": "four"}, ["'four'", "4(x2),3"]),
        (OPEN_MPI | {"RANK": "0"}, ["RANK=0 contradicts OMPI_COMM_WORLD_RANK=5"]),
        (MPICH | {"WORLD_SIZE": "2"}, ["WORLD_SIZE=2 contradicts PMI_SIZE=8"]),
        (TORCHRUN | {"RANK": "8"}, ["RANK=8 must be smaller than WORLD_SIZE=8"]),
        (TORCHRUN | {"LOCAL_RANK": "4"}, ["LOCAL_RANK=4", "LOCAL_WORLD_SIZE=4"]),
        (TORCHRUN | {"LOCAL_WORLD_SIZE": "9"}, ["at most WORLD_SIZE=8"]),
        (TORCHRUN | {"RANK": "0"}, ["LOCAL_RANK=1 must be at most RANK=0"]),
        (TORCHRUN | {"RANK": "-1"}, ["RANK='-1' is not a whole number"]),
        (TORCHRUN | {"RANK": "five"}, ["RANK='five' is not a whole number"]),
        (TORCHRUN | {"RANK": ""}, ["RANK='' is not a whole number"]),
        (SRUN | {"RANK": "$SLURM_PROCID"}, ["RANK='$SLURM_PROCID'"]),
        ({"RANK": "0"}, ["WORLD_SIZE", "not set", "by hand"]),
        ({"WORLD_SIZE": "4"}, ["RANK", "not set"]),
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, ["MPI_LOCALRANKID", "not set", "MPICH"]),
        ({"TORCHELASTIC_RUN_ID": "x"}, ["RANK", "GROUP_RANK", "by torchrun"]),
    ],
)
def test_what_cannot_be_is_named_with_its_values(environ, words):
    with pytest.raises(BadInput) as caught:
        get_dist_env(environ)
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, f"{caught.value} lacks {missing}"
    assert "\n" not in str(caught.value)


def test_rank_0_cannot_see_the_rank_0_that_a_script_exported():
    first = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
    assert get_dist_env(SRUN | first | {"RANK": "0"}).rank == 0


ONE_NODE = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1"}


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        (TORCHRUN, "n1"),
        (SRUN, "n1"),
        (SRUN | {"MASTER_ADDR": "login"}, "login"),
        (SRUN | {"SLURM_STEP_NODELIST": "gpu[007-012,40],cpu1"}, "gpu007"),
        (SRUN | {"SLURM_STEP_NODELIST": "rack1n[3,9]"}, "rack1n3"),
        (SRUN | {"SLURM_STEP_NODELIST": "alpha,beta"}, "alpha"),
        (MPI_DAEMON | OPEN_MPI, "n1"),
        (OPEN_MPI | ONE_NODE, "127.0.0.1"),
        (OPEN_MPI | ONE_NODE | {"MASTER_ADDR": "localhost"}, "localhost"),
        ({}, "127.0.0.1"),
    ],
)
def test_all_ranks_find_the_same_address(environ, address):
    assert find_master(get_dist_env(environ), environ).address == address


def test_two_jobs_on_one_machine_get_two_ports():
    environ = OPEN_MPI | ONE_NODE
    env = get_dist_env(environ)
    ports = {
        find_master(env, environ | {"PMIX_NAMESPACE": str(job)}).port
        for job in range(425132033, 425132033 + 50)
    }
    assert len(ports) > 45
    # the range from which Linux takes the ports of clients begins at 32768
    assert all(20000 <= port < 32768 for port in ports)


def test_two_steps_of_one_slurm_job_get_two_ports():
    env = get_dist_env(SRUN)
    other = SRUN | {"SLURM_STEP_ID": "1"}
    assert find_master(env, SRUN).port != find_master(env, other).port
    assert find_master(env, SRUN) == find_master(env, SRUN | {"SLURM_PROCID": "1"})


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        (SRUN | {"MASTER_ADDR": "localhost"}, "MASTER_ADDR=localhost means another"),
        (SRUN | {"MASTER_ADDR": "127.0.1.1"}, "4 of the 8 processes"),
        (OPEN_MPI | {"MASTER_ADDR": "::1"}, "the host of rank 0"),
        (OPEN_MPI, "MASTER_ADDR is not set"),
        (BY_HAND, "MASTER_ADDR is not set"),
        (SRUN | {"MASTER_PORT": "0"}, "MASTER_PORT=0 is not a port"),
        (SRUN | {"MASTER_PORT": "70000"}, "MASTER_PORT=70000 is not a port"),
        (SRUN | {"MASTER_PORT": "http"}, "MASTER_PORT='http'"),
    ],
)
def test_a_meeting_point_that_cannot_work_is_refused(environ, words):
    with pytest.raises(BadInput) as caught:
        find_master(get_dist_env(environ), environ)
    assert words in str(caught.value)


def test_two_nodes_of_torchrun_may_share_a_laptop():
    environ = TORCHRUN | {"MASTER_ADDR": "localhost"}
    assert find_master(get_dist_env(environ), environ).address == "localhost"


# A port for rank 0


def test_store_listens_on_a_reserved_port():
    port = reserve_port()
    store = dist.TCPStore("127.0.0.1", port, is_master=True)
    store.set("key", "value")
    assert store.get("key") == b"value"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port is only found")
def test_reserved_port_is_given_to_no_one_else():
    """Linux gives a free port to whoever asks for port 0, or connects to a server."""
    one, other = reserve_port(), reserve_port()
    assert one != other
    with socket.socket() as second, pytest.raises(OSError, match="in use"):
        second.bind(("127.0.0.1", one))
