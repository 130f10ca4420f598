"""What docs/lessons/07_torchrun says about torchrun, tried out.

Each test is named after its sentence on the page. That a killed run ends with the same
bits is tested in tests/scripts/test_07_torchrun.py and by the transcripts; the
programs here do not import torch where they need not, so that a run takes two seconds.
"""

import inspect
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torch.distributed import run as torchrun_module
from torch.distributed.elastic.rendezvous import (
    RendezvousParameters,
    c10d_rendezvous_backend,
    registry,
    static_tcp_rendezvous,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousTimeout

from tests.docs.pages import checked_page, lesson_source
from tests.docs.torchruns import LIMIT, clean_environment, start, torchrun
from tests.launched import free_port

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
PAGE = lesson_source("07_torchrun")
on_page_02 = checked_page("02_ranks")
on_the_page = checked_page("07_torchrun")

# Prints its environment, as one line of JSON that no other rank can write into.
ENVIRONMENT = """
import json, os, sys
text = json.dumps({"argv": sys.argv[1:], **os.environ}) + "\\n"
os.write(1, text.encode())
"""


def environments(output):
    """What each rank has printed with ENVIRONMENT, in the order of the ranks."""
    found = [json.loads(line) for line in output.splitlines() if line[:1] == "{"]
    return sorted(found, key=lambda environ: int(environ["RANK"]))


@pytest.fixture
def environment_script(tmp_path):
    path = tmp_path / "environment.py"
    path.write_text(ENVIRONMENT)
    return path


# Let torchrun start the ranks


def test_torchrun_sets_the_variables_of_the_table(tmp_path, environment_script):
    options = ["--standalone", "--nproc-per-node=3", "--max-restarts=2"]
    found = environments(torchrun(tmp_path, *options, environment_script))
    assert len(found) == 3
    after = PAGE.split("What torchrun sets for the program")[1]
    table = after.split(".. transcript")[0]
    names = set(re.findall(r"``([A-Z_]+)``", table))
    assert len(names) == 12
    for rank, environ in enumerate(found):
        assert names <= set(environ), "torchrun did not set all of them"
        assert environ["RANK"] == environ["LOCAL_RANK"] == str(rank)
        assert environ["WORLD_SIZE"] == environ["LOCAL_WORLD_SIZE"] == "3"
        assert environ["GROUP_RANK"] == "0"
        assert environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        assert environ["TORCHELASTIC_MAX_RESTARTS"] == "2"
        assert environ["OMP_NUM_THREADS"] == "1"
        assert environ["TORCHELASTIC_ERROR_FILE"].endswith(f"{rank}/error.json")
        assert environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"
    assert len({environ["MASTER_PORT"] for environ in found}) == 1


def test_threads_are_not_limited_where_one_rank_is_alone(tmp_path, environment_script):
    options = ["--standalone", "--nproc-per-node=1"]
    (environ,) = environments(torchrun(tmp_path, *options, environment_script))
    assert "OMP_NUM_THREADS" not in environ


WARNING = "Setting OMP_NUM_THREADS environment variable for each process to be 1"


@pytest.mark.nightly
@pytest.mark.cold("what the command torchrun itself prints is the subject")
def test_four_lines_say_that_torchrun_has_set_the_threads(tmp_path, environment_script):
    """One of them is empty, two are asterisks; none if the variable was set before."""
    on_page_02(f"``{WARNING}``")
    words = ["--standalone", "--nproc-per-node=2", str(environment_script)]
    command = [str(Path(sys.executable).with_name("torchrun")), *words]

    def printed(**variables):
        environ = clean_environment() | variables
        done = subprocess.run(
            command, env=environ, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done

    lines = printed().stderr.splitlines()
    said = [line.partition("] ")[2] for line in lines if "distributed/run.py:" in line]
    assert len(said) == 4 and not said[0], lines
    assert said[2].startswith(WARNING)
    assert set(said[1]) == set(said[3]) == {"*"}
    done = printed(OMP_NUM_THREADS="3")
    assert "OMP_NUM_THREADS" not in done.stderr
    assert {ran["OMP_NUM_THREADS"] for ran in environments(done.stdout)} == {"3"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which cores")
def test_without_the_variable_a_process_has_a_thread_for_each_core():
    """About one: of two hardware threads in one core, PyTorch uses one."""
    code = "import torch; print(torch.get_num_threads())"
    command = [sys.executable, "-c", code]
    environ = {k: v for k, v in clean_environment().items() if k != "MKL_NUM_THREADS"}
    threads = int(subprocess.check_output(command, env=environ, text=True))
    cores = len(os.sched_getaffinity(0))
    assert cores // 2 <= threads <= cores


def test_with_the_variable_the_store_is_not_the_agents(tmp_path, environment_script):
    options = ["--standalone", "--nproc-per-node=1", environment_script]
    output = torchrun(tmp_path, *options, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    (environ,) = environments(output)
    assert environ["TORCHELASTIC_USE_AGENT_STORE"] == "False"


def test_the_static_rendezvous_ignores_the_variable(tmp_path, environment_script):
    options = ["--nproc-per-node=1", f"--master-port={free_port()}", environment_script]
    output = torchrun(tmp_path, *options, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    (environ,) = environments(output)
    assert environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"


def test_the_static_rendezvous_shares_one_store_at_every_start(monkeypatch):
    """What the dead ranks wrote is still there at the second rendezvous."""
    on_the_page("ignores it and always shares the store, so use ``c10d``")
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    place = f"127.0.0.1:{free_port()}"
    parameters = RendezvousParameters("static", place, "1", 1, 1, rank=0)
    handler = static_tcp_rendezvous.create_rdzv_handler(parameters)
    handler.next_rendezvous().store.set("address of rank 1", "one that is gone")
    again = handler.next_rendezvous().store
    assert again.get("address of rank 1") == b"one that is gone"
    assert handler.use_agent_store


def test_without_torchrun_the_variable_rank_is_missing():
    code = "import torch.distributed as dist; dist.init_process_group('gloo')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    assert "environment variable RANK expected, but not set" in done.stderr


def test_the_defaults_of_torchrun():
    parser = torchrun_module.get_args_parser()
    args = parser.parse_args(["script.py"])
    assert args.max_restarts == 0
    assert args.monitor_interval == 0.1, "the agent looks ten times a second"
    assert args.rdzv_backend == "static"
    assert "defaults to 30 seconds" in re.sub(r"\s+", " ", parser.format_help())
    assert c10d_rendezvous_backend.DEFAULT_PORT == 29400
    timeouts = RendezvousTimeout()
    assert timeouts.join.total_seconds() == 600
    assert timeouts.last_call.total_seconds() == 30


# Choose the rendezvous


def test_standalone_chooses_a_name_and_a_port(tmp_path, environment_script):
    """Two at a time, which would both need one port otherwise."""
    options = ["--standalone", "--nproc-per-node=1", environment_script]
    processes = [start(tmp_path, *options) for _ in range(2)]
    outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    (one,), (two,) = map(environments, outputs)
    for name in ("TORCHELASTIC_RUN_ID", "MASTER_PORT"):
        assert one[name] != two[name]


def agents(folder, script, *options_of_each):
    """The outputs of several agents on this machine, and their exit statuses."""
    processes = [start(folder, *options, script) for options in options_of_each]
    try:
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return outputs, [process.returncode for process in processes]


def c10d(port, name, nnodes="2", seconds=60, last_call=1):
    return [
        f"--nnodes={nnodes}",
        "--nproc-per-node=2",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}",
        f"--rdzv-conf=join_timeout={seconds},last_call_timeout={last_call}",
        "--local-addr=127.0.0.1",
        f"--rdzv-id={name}",
    ]


def test_c10d_agents_number_themselves_with_the_same_command(
    tmp_path, environment_script
):
    """Even if both are told to be node 1: ``--node-rank`` is ignored."""
    options = [*c10d(free_port(), "job42"), "--node-rank=1"]
    outputs, statuses = agents(tmp_path, environment_script, options, options)
    assert statuses == [0, 0], outputs
    found = environments("".join(outputs))
    assert [environ["RANK"] for environ in found] == ["0", "1", "2", "3"]
    assert [environ["GROUP_RANK"] for environ in found] == ["0", "0", "1", "1"]
    assert {environ["TORCHELASTIC_RUN_ID"] for environ in found} == {"job42"}
    assert "node_rank is only used for static rdzv_backend" in outputs[0]


@pytest.mark.nightly
def test_agents_with_other_names_never_meet(tmp_path, environment_script):
    port = free_port()
    both = [c10d(port, name, seconds=4) for name in ("job42", "job43")]
    outputs, statuses = agents(tmp_path, environment_script, *both)
    assert statuses == [1, 1], outputs
    assert not environments("".join(outputs))
    assert any("RendezvousTimeoutError" in output for output in outputs)


def test_with_a_range_of_nodes_one_may_begin_alone(tmp_path, environment_script):
    options = c10d(free_port(), "job42", nnodes="1:2")
    found = environments(torchrun(tmp_path, *options, environment_script))
    assert [environ["WORLD_SIZE"] for environ in found] == ["2", "2"]


def test_kinds_of_rendezvous_are_two_and_etcd():
    on_the_page("``c10d`` or ``static``. (``etcd`` needs a server of its own")
    source = inspect.getsource(registry._register_default_handlers)
    names = set(re.findall(r'register\("([\w-]+)"', source))
    assert names == {"c10d", "static", "etcd", "etcd-v2"}


ADMITTED = """
import os, time
open("admitted", "w").close()
while not os.path.exists("may_end"):
    time.sleep(0.05)
"""


@pytest.mark.nightly
def test_agent_that_is_too_many_waits_until_the_run_ends_and_fails(tmp_path):
    """Said in lessons 09 and 10 and by rule DT106."""
    script = tmp_path / "admitted.py"
    script.write_text(ADMITTED)
    options = [*c10d(free_port(), "job42", nnodes="1", seconds=3), script]
    processes = [start(tmp_path, *options)]
    try:
        end = time.monotonic() + LIMIT
        while not (tmp_path / "admitted").exists() and time.monotonic() < end:
            time.sleep(0.05)
        processes.append(start(tmp_path, *options))
        time.sleep(15)  # its join_timeout is 3 seconds
        assert [process.poll() for process in processes] == [None, None]
        (tmp_path / "may_end").touch()
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 1], outputs


LATER = """
import os, time
world_size = os.environ["WORLD_SIZE"]
count = os.environ["TORCHELASTIC_RESTART_COUNT"]
os.write(1, f"world {world_size} rank {os.environ['RANK']} count {count}\\n".encode())
open(f"world_of_{world_size}_rank_{os.environ['RANK']}", "w").close()
time.sleep(100 if world_size == "2" else 0.5)
"""


@pytest.mark.nightly
def test_a_node_that_comes_later_starts_all_ranks_again(tmp_path):
    script = tmp_path / "later.py"
    script.write_text(LATER)
    # The agent that comes later looks once a second whether the others meet again.
    options = [*c10d(free_port(), "job42", nnodes="1:2", last_call=10), script]
    variable = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    processes = [start(tmp_path, *options, **variable)]
    try:
        end = time.monotonic() + LIMIT
        both = [tmp_path / f"world_of_2_rank_{rank}" for rank in (0, 1)]
        while not all(map(Path.exists, both)) and time.monotonic() < end:
            time.sleep(0.05)
        processes.append(start(tmp_path, *options, **variable))
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], outputs
    found = re.findall(r"^world (\d) rank (\d) count (\d)$", "".join(outputs), re.M)
    assert {count for *_, count in found} == {"0"}, "a node that joins is no restart"
    worlds = [(world, rank) for world, rank, _ in found]
    assert worlds.count(("2", "0")) == worlds.count(("2", "1")) == 1
    assert sorted(rank for world, rank in worlds if world == "4") == list("0123")


def test_static_has_a_fixed_number_and_never_notices_another_node():
    parameters = RendezvousParameters("static", "127.0.0.1:1", "1", 1, 2, rank=0)
    handler = static_tcp_rendezvous.create_rdzv_handler(parameters)
    assert handler.world_size == 2, "of a range it takes the larger number"
    assert handler.num_nodes_waiting() == 0
    assert handler.rank == 0, "the node rank is the one it was told"


def test_static_meets_at_the_port_it_was_told(tmp_path, environment_script):
    with socket.socket() as somebody:
        somebody.bind(("", 0))
        somebody.listen()
        port = somebody.getsockname()[1]
        options = ["--nproc-per-node=1", f"--master-port={port}", environment_script]
        output = torchrun(tmp_path, *options, status=1)
    assert "EADDRINUSE" in output


def test_launch_warns_and_passes_local_rank_unless_told_to_use_the_environment(
    tmp_path, environment_script
):
    port = f"--master-port={free_port()}"
    module = "torch.distributed.launch"
    options = ["--nproc-per-node=2", port, environment_script]
    output = torchrun(tmp_path, *options, module=module)
    assert "torch.distributed.launch is deprecated" in output
    found = environments(output)
    passed = [environ["argv"] for environ in found]
    assert passed == [["--local-rank=0"], ["--local-rank=1"]]
    assert [environ["LOCAL_RANK"] for environ in found] == ["0", "1"]
    output = torchrun(tmp_path, "--use-env", *options, module=module)
    assert [environ["argv"] for environ in environments(output)] == [[], []]


def test_a_program_that_does_not_know_local_rank_refuses_it():
    code = "import argparse; argparse.ArgumentParser().parse_args()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--local-rank=0"], capture_output=True, text=True
    )
    assert "unrecognized arguments: --local-rank=0" in done.stderr
