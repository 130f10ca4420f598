"""What docs/lessons/11_mpi_and_containers says, tried out.

What needs a Docker engine is in tests/jobs/test_containers.py, what needs the
practice cluster in the transcripts of the page.
"""

import inspect
import os
import re
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch.distributed as dist
from torch.distributed.elastic.rendezvous import (
    c10d_rendezvous_backend,
    dynamic_rendezvous,
)
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

from tests import launched
from tests.docs.pages import lesson_source
from tests.launched import environment
from tests.needs import CLUSTER, needs, skip_without

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
PAGE = lesson_source("11_mpi_and_containers")
SRC = ROOT / "src"
sys.path.insert(0, str(SRC))

from common.distributed import BadInput  # noqa: E402
from common.launchers import find_master, get_dist_env  # noqa: E402

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPEN_MPI = needs("mpirun", "ompi_info")


def run(*words, **variables):
    return subprocess.run(
        [*map(str, words)],
        env=environment(**AS_ROOT | variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


# mpirun


@OPEN_MPI
def test_open_mpi_may_bind_a_process_to_a_core_unless_forbidden():
    mpirun = ["mpirun", "-np", "1", "--report-bindings"]
    bound = run(*mpirun, "--bind-to", "core", "true")
    assert re.search(r"rank 0 bound to .*core \d+", bound.stdout), bound.stdout
    free = run(*mpirun, "--bind-to", "none", "true")
    assert free.returncode == 0
    assert "bound to" not in free.stdout.replace("not bound (or bound to", "")


@OPEN_MPI
def test_x_hands_a_variable_on():
    show = [sys.executable, "-c", "import os; print(os.environ['HANDED'])"]
    done = run("mpirun", "-np", "1", "-x", "HANDED=over", *show)
    assert done.stdout.strip() == "over"


@OPEN_MPI
def test_open_mpi_starts_one_process_per_core_unless_told_otherwise():
    count = str(2 * (os.cpu_count() or 1) + 1)  # a core may have two threads
    refused = run("mpirun", "-np", count, "true")
    assert refused.returncode != 0
    said = "There are not enough slots available in the system"
    assert said in refused.stdout
    assert f"``{said}``" in PAGE
    done = run("mpirun", "--oversubscribe", "-np", count, "true")
    assert done.returncode == 0, done.stdout


@OPEN_MPI
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_open_mpi_refuses_root_unless_allowed():
    asked = dict.fromkeys(AS_ROOT, "0")
    assert run("mpirun", "-np", "1", "true", **asked).returncode != 0
    allowed = run("mpirun", "--allow-run-as-root", "-np", "1", "true", **asked)
    assert allowed.returncode == 0, allowed.stdout


def numbers(environ):
    env = get_dist_env(environ)
    return env.launcher, env.rank, env.local_rank, env.world_size, env.node_rank


OPEN_MPI_ENV = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
HYDRA_ENV = {
    "PMI_RANK": "5",
    "MPI_LOCALRANKID": "1",
    "PMI_SIZE": "8",
    "MPI_LOCALNRANKS": "4",
}


def test_get_dist_env_reads_both_columns_of_the_table():
    assert numbers(OPEN_MPI_ENV) == ("Open MPI", 3, 1, 4, None)
    assert numbers(HYDRA_ENV) == ("MPICH", 5, 1, 8, None)
    for name in (*OPEN_MPI_ENV, *HYDRA_ENV):
        assert f"``{name}``" in PAGE


def test_mpirun_in_a_task_of_srun_counts():
    inner = {**OPEN_MPI_ENV, "PMI_RANK": "0", "PMI_SIZE": "1"}
    assert numbers(inner) == ("Open MPI", 3, 1, 4, None)


def test_pmi_rank_without_local_rank_id_is_no_sign_of_mpich():
    task = {
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": "2",
        "SLURM_LOCALID": "0",
        "SLURM_NTASKS": "4",
        "SLURM_NODEID": "1",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
        "PMI_RANK": "2",
        "PMI_SIZE": "4",
    }
    assert get_dist_env(task).launcher == "srun"


def test_without_any_of_the_names_a_process_is_rank_0_of_1():
    assert numbers({}) == ("python", 0, 0, 1, 0)


def test_outside_slurm_nothing_says_where_rank_0_runs():
    env = get_dist_env(OPEN_MPI_ENV)
    said = "MASTER_ADDR is not set and nothing else says where rank 0 runs"
    assert said in " ".join(PAGE.split())
    with pytest.raises(BadInput, match=said):
        find_master(env, OPEN_MPI_ENV)
    there = find_master(env, {**OPEN_MPI_ENV, "SLURM_JOB_NODELIST": "n[3-4]"})
    assert there.address == "n3"


def test_on_one_machine_launchers_sees_that_all_ranks_are_on_it():
    alone = {**OPEN_MPI_ENV, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    assert find_master(get_dist_env(alone), alone).address == "127.0.0.1"


# IPv6

ALONE = """
import sys
from datetime import timedelta
import torch.distributed as dist
where = {"init_method": sys.argv[1]} if len(sys.argv) > 1 else {}
timeout = timedelta(seconds=3)
dist.init_process_group("gloo", rank=0, world_size=1, timeout=timeout, **where)
dist.destroy_process_group()
"""
IPV6 = pytest.mark.skipif(
    not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6"
)


def test_endpoint_of_torchrun_takes_brackets():
    assert "``--rdzv-endpoint=[fd00::7]:29500``" in PAGE
    assert parse_rendezvous_endpoint("[fd00::7]:29500", 1) == ("fd00::7", 29500)


@pytest.mark.nightly
@IPV6
def test_init_method_takes_brackets_and_master_addr_does_not(free_port):
    method = f"tcp://[::1]:{free_port}"
    done = run(sys.executable, "-c", ALONE, method)
    assert done.returncode == 0, done.stdout
    master = {"MASTER_PORT": str(free_port)}
    done = run(sys.executable, "-c", ALONE, MASTER_ADDR="::1", **master)
    assert done.returncode == 0, done.stdout
    done = run(sys.executable, "-c", ALONE, MASTER_ADDR="[::1]", **master)
    assert done.returncode != 0
    assert re.search(r"timed out .* while trying to connect to \(\[::1\]", done.stdout)


def test_address_without_brackets_is_not_understood():
    with pytest.raises(ValueError) as caught:
        dist.init_process_group(
            "gloo", init_method="tcp://fd00::7:29500", rank=0, world_size=1
        )
    assert f"``{caught.value}``" in PAGE


@pytest.fixture
def free_port():
    return launched.free_port()


# The same node twice

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2"]
OWN_PIDS = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]
HELLO = str(SRC / "02_hello_ranks.py")


def two_nodes(*options, start=(), each=((), ())):
    """(what each of two torchruns on this machine printed, exit statuses)."""
    processes = [
        subprocess.Popen(
            [*start, *TORCHRUN, "--nproc-per-node=1", *options, *own, HELLO],
            env=environment(**AS_ROOT),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for own in each
    ]
    try:
        texts = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return texts, [process.returncode for process in processes]


@pytest.fixture
def own_pids():
    skip_without(CLUSTER)
    return OWN_PIDS


@pytest.mark.nightly
def test_two_torchruns_with_one_name_and_one_pid_wait_in_silence(own_pids, free_port):
    options = ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port}"]
    options += ["--rdzv-id=trap", "--rdzv-conf=join_timeout=15"]
    before = time.monotonic()
    texts, statuses = two_nodes(*options, start=own_pids)
    assert time.monotonic() - before >= 15
    assert all(statuses)
    assert not [text for text in texts if "sum of all ranks" in text]
    assert any("Rendezvous" in text for text in texts)
    for text in texts:  # not a word before the error that ends it
        assert text.lstrip().startswith(("Traceback", "[E", "E", "W", "[W")), text[:500]


@pytest.mark.nightly
def test_static_rendezvous_tells_them_apart(own_pids, free_port):
    options = ["--master-addr=localhost", f"--master-port={free_port}"]
    each = (["--node-rank=0"], ["--node-rank=1"])
    texts, statuses = two_nodes(*options, start=own_pids, each=each)
    assert statuses == [0, 0], texts
    assert "sum of all ranks: 1, expected: 1" in "".join(texts)


def test_node_is_named_by_host_pid_and_a_counter():
    node = dynamic_rendezvous._NodeDescGenerator().generate()
    assert (node.pid, node.local_id) == (os.getpid(), 0)
    assert list(inspect.signature(type(node)).parameters) == ["addr", "pid", "local_id"]


def test_torchrun_waits_ten_minutes_for_nodes_and_one_for_the_store():
    assert dynamic_rendezvous.RendezvousTimeout().join == timedelta(minutes=10)
    source = inspect.getsource(c10d_rendezvous_backend._create_tcp_store)
    assert 'get_as_int("read_timeout", 60)' in source


@pytest.mark.nightly
def test_node_that_cannot_look_up_the_name_gives_up():
    done = run(
        *TORCHRUN,
        "--rdzv-backend=c10d",
        "--rdzv-id=a",
        "--rdzv-endpoint=head.invalid:29500",
        "--rdzv-conf=read_timeout=2",
        HELLO,
    )
    assert done.returncode != 0
    assert "The connection to the C10d store has failed" in done.stdout
