"""Checks of exercises/08_torchrun_lines.py: read the options, then start two agents."""

import contextlib
import json
import os
import signal
import socket
import sys
import time

import pytest
from torch.distributed import run as torchrun

from workshop.grader import expect
from workshop.system.processes import below
from workshop.system.stopwatch import Stopwatch

PATIENCE = 12.0  # seconds until two agents that know of each other have met
RANKS = 2
WAIT = "--rdzv-conf=join_timeout=30,read_timeout=10"
# What torchrun starts: it notes its place. It does not import torch, which is slow.
PAYLOAD = """
import json, os, sys
names = ["RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"]
place = {name: os.environ[name] for name in names}
path = f"{sys.argv[1]}.{place['GROUP_RANK']}.{place['LOCAL_RANK']}"
open(path, "w").write(json.dumps(place))
"""


def read(options, what):
    """The options as torchrun understands them."""
    expect.that(
        isinstance(options, (list, tuple))
        and all(isinstance(word, str) for word in options),
        f"{what} must return a list of words, not {options!r}",
    )
    for word in options:
        expect.that(word == word.strip(), f"{what}: {word!r} has a space at its end")
        expect.that(
            not (word.startswith("-") and " " in word),
            f"{what}: {word!r} is one word; write an option and its value as two, or "
            "with = between them",
        )
    complaint = []
    parser = torchrun.get_args_parser()
    parser.error = complaint.append  # else it prints its usage and exits
    found = None
    with contextlib.suppress(Exception, SystemExit):
        found = parser.parse_args([*options, "train.py"])
    expect.that(not complaint, f"{what}: torchrun says: {(complaint or [''])[0]}")
    expect.that(found is not None, f"{what}: torchrun does not understand {options}")
    expect.that(
        found.training_script not in found.training_script_args,
        f"{what}: {found.training_script} is the program: return the options alone, "
        "the program follows them",
    )
    expect.that(
        found.training_script == "train.py" and not found.training_script_args,
        f"{what}: torchrun would run {found.training_script!r}, not the program: a "
        "word too many",
    )
    expect.that(not found.standalone, f"{what}: --standalone is for a single node")
    return found


def common(found, hosts, ranks_per_node, what):
    """The options that both kinds need."""
    nodes = found.nnodes.split(":")
    expect.that(
        set(nodes) == {str(len(hosts))},
        f"{what}: --nnodes={found.nnodes}, but there are {len(hosts)} nodes",
    )
    expect.equal(found.nproc_per_node, str(ranks_per_node), f"{what}: --nproc-per-node")


@pytest.mark.ranks(1, init=False)
def test_static_options_mean_what_they_should(exercise, seed):
    """static_options: each node has its number, and all name the first and its port."""
    hosts = [f"node-{letter}" for letter in "ycx"[: 2 + seed % 2]]  # in no order
    for node_rank in range(len(hosts)):
        what = f"static_options({node_rank}, {hosts}, 4, 29400)"
        given = list(hosts)
        found = read(exercise.static_options(node_rank, given, 4, 29400), what)
        expect.equal(given, hosts, f"{what}: the hosts that were given, afterwards")
        common(found, hosts, 4, what)
        expect.that(
            found.rdzv_backend == "static",
            f"{what}: --rdzv-backend={found.rdzv_backend}, not static",
        )
        expect.equal(int(found.node_rank), node_rank, f"{what}: --node-rank")
        address, port = found.master_addr, str(found.master_port)
        names = "--master-addr", "--master-port"
        if found.rdzv_endpoint:  # torchrun takes it instead
            address, _, port = found.rdzv_endpoint.partition(":")
            names = "the host of --rdzv-endpoint", "the port of --rdzv-endpoint"
        expect.equal(address, hosts[0], f"{what}: {names[0]}")
        expect.equal(port, "29400", f"{what}: {names[1]}")


@pytest.mark.ranks(1, init=False)
def test_c10d_options_mean_what_they_should(exercise, seed):
    """c10d_options: the endpoint is a port of a node, and the id is the job's."""
    hosts = [f"gpu{number}" for number in range(seed % 90, seed % 90 + 3)]
    what = f"c10d_options({hosts}, 8, 31234, 'job{seed}')"
    given = list(hosts)
    found = read(exercise.c10d_options(given, 8, 31234, f"job{seed}"), what)
    expect.equal(given, hosts, f"{what}: the hosts that were given, afterwards")
    common(found, hosts, 8, what)
    expect.equal(found.rdzv_backend, "c10d", f"{what}: --rdzv-backend")
    told = "where do the agents connect? With c10d, --rdzv-endpoint says it"
    expect.that(found.rdzv_endpoint, f"{what}: {told}, not --master-addr")
    host, _, port = found.rdzv_endpoint.partition(":")
    told = f"the host of --rdzv-endpoint={found.rdzv_endpoint} is {host!r}"
    expect.that(host in hosts, f"{what}: {told}, which isn't one of the hosts")
    expect.equal(port, "31234", f"{what}: the port of --rdzv-endpoint")
    expect.equal(found.rdzv_id, f"job{seed}", f"{what}: --rdzv-id")
    of_one_node = {  # which the agents of the next check would not notice
        "--local-addr": found.local_addr is not None,
        "is_host of --rdzv-conf": "is_host" in found.rdzv_conf,
    }
    for name, given in of_one_node.items():
        same = "differs from node to node, but every node gets these options"
        expect.that(not given, f"{what}: {name} {same}: torchrun finds it out itself")


@pytest.mark.ranks(1, init=False, limit=60)
def test_two_static_agents_meet(exercise, shared_dir, seed):
    """Two agents, really started with static_options, form one run of 4 ranks."""
    port = free_port()
    options = [
        exercise.static_options(node, ["127.0.0.1"] * 2, RANKS, port) for node in (0, 1)
    ]
    meet(options, shared_dir, "static_options")


@pytest.mark.ranks(1, init=False, limit=60)
def test_two_c10d_agents_meet(exercise, shared_dir, seed):
    """Two agents, really started with c10d_options, form one run of 4 ranks."""
    port = free_port()
    options = [
        exercise.c10d_options(["127.0.0.1"] * 2, RANKS, port, f"job{seed}")
        for _ in (0, 1)
    ]
    places = meet(options, shared_dir, "c10d_options")
    ids = {place["TORCHELASTIC_RUN_ID"] for place in places}
    expect.equal(ids, {f"job{seed}"}, "the run id that the ranks got")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def meet(options, folder, what):
    """Start an agent with each list of options; what their ranks got."""
    payload, notes = folder / "payload.py", folder / f"{what}_place"
    payload.write_text(PAYLOAD)
    logs = [folder / f"{what}_{node}.log" for node in (0, 1)]
    own = ["--local-addr=127.0.0.1", "--monitor-interval=0.05", WAIT]
    program = [str(payload), str(notes)]
    agents = [
        fork([*words, *own, *program], log)
        for words, log in zip(options, logs, strict=True)
    ]
    statuses = wait(agents)
    words = [last_words(log) for log in logs]
    for node, status in enumerate(statuses):
        expect.that(
            status is not None,
            f"{what}: the agents of node 0 and node 1 don't connect, node {node} still "
            f"waits after {PATIENCE:.0f} s",
        )
        expect.that(
            status == 0,
            f"{what}: the agent of node {node} failed: {words[node]}",
        )
    places = [json.loads(path.read_text()) for path in folder.glob(f"{notes.name}.*")]
    found = sorted(int(place["RANK"]) for place in places)
    expect.equal(found, list(range(2 * RANKS)), f"{what}: the ranks that were started")
    sizes = {place["WORLD_SIZE"] for place in places}
    expect.equal(sizes, {str(2 * RANKS)}, f"{what}: the world size they got")
    return places


def fork(words, log):
    """torchrun in a process of its own, which has imported torch already."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.argv[0] = "torchrun"
        torchrun.main(words)
        status = 0
    except BaseException as error:
        os.write(2, f"\n{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def wait(pids):
    """The exit statuses; None, and killed, for one that does not end in time."""
    statuses, watch = [None] * len(pids), Stopwatch(every=0.5)
    while None in statuses and not watch.passed(PATIENCE, with_children(pids)):
        for number, pid in enumerate(pids):
            if statuses[number] is None:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    statuses[number] = os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    for pid, status in zip(pids, statuses, strict=True):
        if status is None:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return statuses


def with_children(pids):
    """The agents and the ranks that they have started."""
    for root in pids:
        yield root
        yield from below(root)[0]


def last_words(log):
    lines = [line for line in log.read_text(errors="replace").splitlines() if line]
    return lines[-1][:150] if lines else "it said nothing"
