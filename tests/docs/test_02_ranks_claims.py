"""What docs/lessons/02_ranks says about PyTorch and launchers, tried out.

Each test is named after its sentence on the page. What 02_hello_ranks.py itself prints
is tested in tests/scripts/test_02_hello_ranks.py and by the transcripts.
"""

import json
import socket
import subprocess
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed import constants
from torch.utils.hipify import cuda_to_hip_mappings

from tests.docs.pages import checked_page
from tests.launched import TORCHRUN, environment, free_port
from tests.needs import needs

pytestmark = pytest.mark.full

SRC = Path(__file__).resolve().parents[2] / "src"
sys.path.insert(0, str(SRC))

from common.distributed import BadInput, choose_device  # noqa: E402
from common.launchers import DistEnv, find_master  # noqa: E402

on_the_page = checked_page("02_ranks")


def environments_under(launcher, tmp_path, **variables):
    """The environment of each process that the launcher starts."""
    script = tmp_path / "show.py"
    script.write_text(
        "import json, os\n"
        "with open(f'{os.getpid()}.json', 'w') as file:\n"
        "    json.dump(dict(os.environ), file)\n"
    )
    done = subprocess.run(
        [*launcher, str(script)],
        cwd=tmp_path,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]


def python(code, *arguments):
    """A process that runs ``code`` beside the others of its test."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output(process):
    try:
        text, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    return text


@pytest.fixture
def listening_port():
    """A port of this machine on which somebody else listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture
def silent_port():
    """A port of this machine on which nobody listens."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def test_torchrun_gives_its_processes_the_address_and_a_setting_of_nccl(tmp_path):
    launcher = [*TORCHRUN, "--standalone", "--nproc-per-node=2"]
    found = environments_under(launcher, tmp_path)
    assert sorted(env["RANK"] for env in found) == ["0", "1"]
    for env in found:
        assert env["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "1"
        assert env["MASTER_ADDR"] and env["MASTER_PORT"]
        assert env["TORCHELASTIC_RUN_ID"]


def test_the_first_example_needs_torchrun():
    example = SRC.parent / "docs" / "examples" / "02_who_am_i.py"
    alone = output(python(example.read_text(encoding="utf-8")))
    assert "KeyError: 'RANK'" in alone


OPEN_MPI = needs("mpirun", "ompi_info")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@OPEN_MPI
def test_node_rank_of_open_mpi_counts_the_processes_on_one_node(tmp_path):
    launcher = ["mpirun", "--oversubscribe", "-np", "3", sys.executable]
    found = environments_under(launcher, tmp_path, **AS_ROOT)
    numbers = sorted(env["OMPI_COMM_WORLD_NODE_RANK"] for env in found)
    assert numbers == ["0", "1", "2"], "all three are on the same node"
    for env in found:
        assert env["OMPI_COMM_WORLD_NODE_RANK"] == env["OMPI_COMM_WORLD_LOCAL_RANK"]


@OPEN_MPI
def test_mpirun_sets_no_master_but_passes_on_what_is_exported(tmp_path):
    launcher = ["mpirun", "--oversubscribe", "-np", "2", sys.executable]
    found = environments_under(launcher, tmp_path, RANK="0", **AS_ROOT)
    for env in found:
        assert "MASTER_ADDR" not in env
        assert env["RANK"] == "0"


def test_the_address_that_ranks_work_out():
    here = DistEnv("srun", 1, 1, world_size=4, local_world_size=4, node_rank=0)
    nodes = {"SLURM_STEP_NODELIST": "n[07-08]", "SLURM_JOB_NODELIST": "n[07-08]"}
    on_the_page("On one node, the address is 127.0.0.1.")
    assert find_master(here, nodes).address == "127.0.0.1"
    on_the_page("on several nodes, it's the first host that Slurm lists")
    for launcher in ("srun", "Open MPI"):
        of_two = DistEnv(launcher, 1, 1, 4, local_world_size=2, node_rank=0)
        assert find_master(of_two, nodes).address == "n07"
    on_the_page("``mpirun`` outside of Slurm doesn't tell a process where rank 0 runs")
    with pytest.raises(BadInput, match="MASTER_ADDR is not set"):
        find_master(DistEnv("Open MPI", 1, 1, 4, 2, None), {})


def test_rank_on_nodes_with_4_2_and_4_processes():
    places = [(node, local) for node, n in enumerate([4, 2, 4]) for local in range(n)]
    assert places.index((2, 1)) == 7
    by_formula = [4 * node + local for node, local in places]
    assert by_formula[7] == 9
    assert {6, 7}.isdisjoint(by_formula)
    assert {10, 11} < set(by_formula)


def test_in_another_order_a_rank_is_not_the_number_of_processes_before_it():
    on_the_page("If ranks are numbered node by node, the rank is the number of")
    on_the_page("unless you ask for another order, such as `--distribution=cyclic")
    solution = import_module("solutions.02_rank_arithmetic")
    by_node = ["n1"] * 4 + ["n2"] * 4
    cyclic = ["n1", "n2"] * 4

    def as_the_page_says(hosts: list[str]) -> list[int]:
        places = [solution.place_by_host(rank, hosts) for rank in range(8)]
        return [solution.global_rank(*place, [4, 4]) for place in places]

    assert as_the_page_says(by_node) == list(range(8))
    assert as_the_page_says(cyclic) != list(range(8))


def test_node_rank_times_the_processes_per_node_of_this_node_gives_ranks_twice():
    counts = [4, 2, 4]
    places = [(node, local) for node, n in enumerate(counts) for local in range(n)]
    ranks = [counts[node] * node + local for node, local in places]
    assert len(set(ranks)) < len(ranks)


MEET = """
import sys, time
import torch.distributed as dist
rank, folder = int(sys.argv[1]), sys.argv[2]
if rank == 1:
    time.sleep(0.5)
    open(folder + "/rank_1_is_there", "w").close()
dist.init_process_group(
    "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
)
open(folder + "/rank_1_is_there").close()
everyone = [None, None] if rank == 0 else None
dist.gather_object(f"line of {rank}", everyone, dst=0)
dist.destroy_process_group()
print(everyone)
"""


def test_init_returns_when_all_ranks_have_come_and_only_rank_0_gets_the_list(tmp_path):
    both = [python(MEET, rank, tmp_path) for rank in (0, 1)]
    texts = [output(process) for process in both]
    assert texts == ["['line of 0', 'line of 1']\n", "None\n"]


def test_gloo_gives_up_after_30_minutes_and_nccl_after_10():
    assert constants.default_pg_timeout == timedelta(minutes=30)
    # None in a build without NCCL; what it is elsewhere, the docstring says
    assert constants.default_pg_nccl_timeout in (None, timedelta(minutes=10))
    words = " ".join(dist.init_process_group.__doc__.split())
    assert "10 minutes for NCCL and 30 minutes for other backends" in words


def test_nccl_connects_at_once_only_with_device_id():
    words = " ".join(dist.init_process_group.__doc__.split())
    assert "device_id (torch.device | int, optional)" in words
    assert "only under NCCL: the communicator is immediately formed" in words
    assert "immediately rather than the normal lazy call" in words


WAIT = """
import sys
from datetime import timedelta
import torch.distributed as dist
rank, size, port = map(int, sys.argv[1:])
try:
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://localhost:{port}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=1),
    )
except dist.DistError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.nightly
def test_with_localhost_the_second_node_finds_nobody(silent_port):
    assert "Dist" in output(python(WAIT, 4, 8, silent_port))


def test_rank_0_waits_for_ranks_that_nothing_has_started():
    text = output(python(WAIT, 0, 4, free_port()))
    assert "DistStoreError" in text
    assert "1/4" in text


def test_a_taken_port_is_eaddrinuse_on_rank_0(listening_port):
    assert "EADDRINUSE" in output(python(WAIT, 0, 2, listening_port))


def test_standalone_finds_a_free_port_although_the_usual_one_is_taken(tmp_path):
    launcher = [*TORCHRUN, "--standalone", "--nproc-per-node=1"]
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", 29500))
            listener.listen()
        except OSError:
            pass  # somebody else has it: just as good
        (env,) = environments_under(launcher, tmp_path)
    assert env["MASTER_PORT"] != "29500"


def test_the_device_chooses_the_backend():
    assert dist.get_default_backend_for_device(torch.device("cpu")) == "gloo"
    assert dist.get_default_backend_for_device(torch.device("cuda")) == "nccl"
    assert dist.get_default_backend_for_device(torch.device("xpu")) == "xccl"


def test_nccl_stands_for_rccl_on_gpus_of_amd():
    """PyTorch's sources are rewritten by this table before a build for ROCm."""
    on_the_page("stands for AMD's RCCL")
    assert "rccl.h" in cuda_to_hip_mappings.CUDA_INCLUDE_MAP["<nccl.h>"]


def test_the_cpu_build_has_gloo_and_neither_nccl_nor_mpi():
    assert dist.is_gloo_available()
    assert not dist.is_mpi_available()
    if torch.version.cuda is None:
        assert not dist.is_nccl_available()


def test_the_backend_mpi_is_only_in_a_pytorch_compiled_with_mpi():
    with pytest.raises(RuntimeError, match="MPI"):
        dist.init_process_group("mpi")


def test_a_process_group_cannot_be_initialized_twice():
    first = dist.HashStore()
    dist.init_process_group("gloo", store=first, rank=0, world_size=1)
    try:
        assert dist.is_initialized()
        with pytest.raises(ValueError, match="default process group twice!"):
            dist.init_process_group("gloo", store=first, rank=0, world_size=1)
    finally:
        dist.destroy_process_group()


class FourGpus:
    """torch.accelerator as on a node with four GPUs."""

    def is_available(self):
        return True

    def current_accelerator(self):
        return torch.device("cuda")

    def device_count(self):
        return 4

    def set_device_index(self, index):
        self.index = index


def test_rank_5_names_a_device_that_a_node_of_four_does_not_have(monkeypatch):
    monkeypatch.setattr(torch, "accelerator", FourGpus())
    assert choose_device(local_rank=1) == torch.device("cuda", 1)
    with pytest.raises(BadInput, match="local rank 5"):
        choose_device(local_rank=5)
