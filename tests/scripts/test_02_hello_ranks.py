"""src/02_hello_ranks.py under every launcher that this machine has."""

import contextlib
import socket
import subprocess
import sys
from pathlib import Path

from tests import launched
from tests.launched import TORCHRUN, environment, free_port
from tests.needs import needs

ROOT = Path(__file__).resolve().parents[2]
HELLO = str(ROOT / "src" / "02_hello_ranks.py")
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@contextlib.contextmanager
def beside(**variables):
    """Another process of the same world, which must end well."""
    process = subprocess.Popen([sys.executable, HELLO], env=environment(**variables))
    try:
        yield
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()


def run(command, **variables):
    return launched.run(ROOT, command, **variables)


def ranks(done):
    """The lines of the ranks, in the order in which they were printed."""
    return [line for line in done.stdout.splitlines() if line.startswith("rank ")]


def sentence(done):
    """The one line that a failed start prints."""
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if "02_hello_ranks.py" in line]
    assert len(lines) == 1, done.stderr
    return lines[0]


def by_hand(rank, world_size):
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
    }


def test_plain_python_is_a_world_of_one():
    done = run([sys.executable, HELLO])
    assert done.returncode == 0, done.stderr
    assert "launcher: python" in done.stdout
    (line,) = ranks(done)
    host = socket.gethostname()
    assert line.startswith("rank 0 of 1 | node rank 0 | local rank 0 of 1 | ")
    assert line.endswith(f"| host {host}")
    assert "no NCCL_* or GLOO_* variable is set" in done.stdout


def test_torchrun_prints_every_rank_once_and_in_order():
    done = run([*TORCHRUN, "--standalone", "--nproc-per-node=3", HELLO])
    assert done.returncode == 0, done.stderr
    assert "launcher: torchrun" in done.stdout
    starts = [line.split(" | ")[0] for line in ranks(done)]
    assert starts == [f"rank {rank} of 3" for rank in range(3)]
    assert done.stdout.splitlines()[-1] == "sum of all ranks: 3, expected: 3"


@needs("mpirun")
def test_mpirun_works_unchanged():
    command = ["mpirun", "-np", "3", sys.executable, HELLO]
    done = run(command, **OPEN_MPI)
    assert done.returncode == 0, done.stderr
    assert "launcher: Open MPI" in done.stdout or "launcher: MPICH" in done.stdout
    assert [line.split(" | ")[0] for line in ranks(done)] == [
        f"rank {rank} of 3" for rank in range(3)
    ]
    assert [line.split(" | ")[2] for line in ranks(done)] == [
        f"local rank {rank} of 3" for rank in range(3)
    ]


def test_processes_that_srun_started_meet():
    port = str(free_port())

    def slurm(rank):
        return {
            "SLURM_JOB_ID": "7",
            "SLURM_STEP_ID": "0",
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": "0",
            "SLURM_NODEID": str(rank),
            "SLURM_NTASKS": "2",
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
            # the "nodes" of this test are one machine
            "SLURM_STEP_NODELIST": socket.gethostname(),
            "MASTER_PORT": port,
        }

    with beside(**slurm(1)):
        done = run([sys.executable, HELLO], **slurm(0))
    assert done.returncode == 0, done.stderr
    assert "launcher: srun" in done.stdout
    assert "first host of SLURM_STEP_NODELIST" in done.stdout
    assert [line.split(" | ")[1] for line in ranks(done)] == [
        "node rank 0",
        "node rank 1",
    ]


def test_settings_of_the_backend_are_shown():
    done = run(
        [sys.executable, HELLO],
        GLOO_SOCKET_IFNAME="lo",
        NCCL_DEBUG="INFO",
        UNRELATED_NCCL="x",
    )
    assert done.returncode == 0, done.stderr
    assert "GLOO_SOCKET_IFNAME=lo\nNCCL_DEBUG=INFO\n" in done.stdout
    assert "UNRELATED" not in done.stdout


def test_a_setting_that_not_all_ranks_have_names_its_ranks():
    port = str(free_port())
    both = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    with beside(**both, **by_hand(1, 2), NCCL_DEBUG="WARN"):
        done = run([sys.executable, HELLO], **both, **by_hand(0, 2))
    assert "NCCL_DEBUG=WARN   (only on ranks [1])" in done.stdout


def test_a_contradiction_is_one_sentence():
    """Rank 0 says it at once, another one when rank 0 may have ended."""
    done = run([sys.executable, HELLO], **by_hand(1, 2), OMPI_COMM_WORLD_RANK="0")
    assert "not set" in sentence(done)
    mpi = {
        "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    }
    done = run([sys.executable, HELLO], **mpi, RANK="1")
    assert "RANK=1 contradicts OMPI_COMM_WORLD_RANK=0" in sentence(done)


def test_ranks_that_do_not_come_are_one_sentence():
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = run([sys.executable, HELLO, "--timeout", "2"], **by_hand(0, 2), **place)
    assert "rank 0 of 2 gave up after 2 s" in sentence(done)
    assert place["MASTER_PORT"] in sentence(done)


def test_a_port_that_is_taken_is_one_sentence():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        done = run([sys.executable, HELLO], **by_hand(0, 2), **place)
    assert f"127.0.0.1:{port}" in sentence(done)
    assert "set MASTER_PORT to another port" in sentence(done)


def test_a_wrong_interface_is_one_sentence():
    done = run([sys.executable, HELLO], GLOO_SOCKET_IFNAME="nope0")
    assert "nope0" in sentence(done)
    assert "GLOO_*" in sentence(done)


def test_a_wrong_option_is_one_sentence():
    done = run([sys.executable, HELLO, "--timeout", "0"])
    assert "'0' is not a whole number above 0" in sentence(done)
