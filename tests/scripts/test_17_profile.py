"""17_profile.py: traces of all ranks in one file, and what it says about them."""

import gzip
import importlib
import json
import re

import pytest

from tests.scripts.trainings import SRC, script, sentence, torchrun
from tools.record_traces import FIELDS, shorten

ROW = re.compile(r"rank \d +" + r" +([\d.]+)" * 6)


def event(name, begin, duration, cat="cpu_op", pid=0, **more):
    """A timed event, in milliseconds."""
    found = {"ph": "X", "name": name, "cat": cat, "ts": 1000 * begin, "pid": pid}
    return found | {"dur": 1000 * duration, "tid": 1} | more


def annotation(name, begin, duration, pid=0):
    return event(name, begin, duration, "user_annotation", pid)


def a_rank(pid, data=1, compute=10, starts=11, ends=15):
    """A step of 20 ms: a batch, operators, one all-reduce, and 1 ms of nothing."""
    return [
        annotation("step 0", 0, 20, pid),
        annotation("enumerate(DataLoader)#_Iter.__next__", 0, data, pid),
        event("aten::stack", 0, data, pid=pid),  # inside the loader: data
        event("aten::mm", data, compute, pid=pid),
        event("aten::addmm", data, compute / 2, pid=pid),  # inside aten::mm
        annotation("gloo:all_reduce", starts, ends - starts, pid),
    ]


def merged(*ranks):
    return {"mergedRanks": len(ranks), "traceEvents": [e for r in ranks for e in r]}


def explained(folder, trace):
    """What --explain prints for this content of a file."""
    (folder / "t.json").write_text(json.dumps(trace))
    return importlib.import_module("common.cost.trace").explain(folder / "t.json")


def numbers(text):
    """Of each rank: steps, compute, data, waiting, sending, other."""
    return [[float(number) for number in row] for row in ROW.findall(text)]


def test_each_moment_is_counted_once(tmp_path):
    text = explained(tmp_path, merged(a_rank(0), a_rank(1)))
    assert numbers(text) == [[20, 10, 1, 0, 4, 5]] * 2
    assert "computes 0% above the mean" in text
    assert "Largest part of rank 1: compute, 50%" in text


def test_waiting_for_a_late_rank_is_no_sending(tmp_path):
    """Rank 1 starts its all-reduce 7 ms late; rank 0 does nothing meanwhile."""
    early = a_rank(0, compute=2, starts=3, ends=19)
    late = a_rank(1, compute=14, starts=15, ends=19)
    text = explained(tmp_path, merged(early, late))
    assert numbers(text) == [[20, 2, 1, 12, 4, 1], [20, 14, 1, 0, 4, 1]]
    assert "Largest part of rank 0: waiting, 60%" in text
    assert "It waits for rank 1: 12.0 ms more of compute" in text
    assert "computes 75% above the mean" in text
    assert "exposed communication 10.0, idle 1.0 (mean of ranks)" in text


def test_late_because_of_its_data(tmp_path):
    early = a_rank(0, compute=2, starts=3, ends=19)
    late = a_rank(1, data=13, compute=2, starts=15, ends=19)
    text = explained(tmp_path, merged(early, late))
    assert "It waits for rank 1: 12.0 ms more of data" in text


def test_communication_hidden_by_operators_is_compute(tmp_path):
    text = explained(tmp_path, merged(a_rank(0, starts=5, ends=11), a_rank(1)))
    assert numbers(text)[0] == [20, 10, 1, 0, 0, 9]


def test_waiting_inside_an_operator_that_starts_a_collective(tmp_path):
    rank = [*a_rank(0), event("c10d::allreduce_", 8, 3)]
    assert numbers(explained(tmp_path, merged(rank)))[0] == [20, 7, 1, 0, 4, 8]


def test_trace_of_a_gpu(tmp_path):
    """Kernels count, not the operators that start them; NCCL's are communication."""
    events = [
        annotation("ProfilerStep#3", 0, 20),
        event("aten::mm", 0, 19),
        annotation("nccl:all_reduce", 3, 1),
        event("void gemm<...>", 2, 8, "kernel"),
        event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 6, 10, "kernel"),
    ]
    world = {"rank": 3, "world_size": 8}
    text = explained(tmp_path, {"distributedInfo": world, "traceEvents": events})
    assert text.splitlines()[1].startswith("rank 3 ")
    assert numbers(text) == [[20, 8, 0, 0, 6, 6]]
    assert "sending includes waiting for others" in text


def test_compressed_or_bare_list_is_a_trace_too(tmp_path):
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(a_rank(7)).encode()))
    done = script(tmp_path, "17_profile.py", "--explain", packed)
    assert done.returncode == 0, done.stderr
    assert numbers(done.stdout) == [[20, 10, 1, 0, 4, 5]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"traceEvents": [', "is no JSON file, or half of one"),
        (b"\xff\xfe", "is no JSON file, or half of one"),
        (gzip.compress(b"{}", mtime=0)[:-9], "is no JSON file, or half of one"),
        (b"3", "has no timed traceEvents"),
        (b'{"traceEvents": [{"ph": "X", "ts": "1", "name": "a"}]}', "no timed trace"),
        (json.dumps([annotation("a", 0, 1)]).encode(), "has no operators"),
        (
            b'{"mergedRanks": 2, "traceEvents": [{"ph": "X", "ts": 1, "name": "a"}]}',
            "has",
        ),
        (None, "No such file"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, content, words):
    module = importlib.import_module("common.cost.trace")
    path = tmp_path / "t.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(module.BadInput, match=words) as refusal:
        module.explain(path)
    assert "\n" not in str(refusal.value)


def own_trace(host, base_ns, mark_us, pid):
    """What torch.profiler exports on one rank, as far as merging reads it."""
    events = [event("clock mark", mark_us / 1000, 0, pid=pid)]
    events.append({"ph": "M", "name": "process_name", "ts": 1, "pid": pid, "args": {}})
    events.append({"ph": "s", "name": "fwdbwd", "id": 4, "ts": mark_us, "pid": pid})
    events.append(event("PyTorch Profiler (0)", 0, 9, "Trace", "Spans"))
    about = {"schemaVersion": 1, "displayTimeUnit": "ms", "host_name": host}
    return about | {"baseTimeNanoseconds": base_ns, "traceEvents": events}


def test_clocks_of_hosts_are_aligned_by_the_barrier():
    """One host's clock is kept: its ranks may leave the barrier at two moments."""
    program = importlib.import_module("instruments.17_profile")
    ranks = [("n1", 10**9, 500, 31), ("n1", 10**9 + 2000, 700, 32)]
    ranks += [("n2", 5 * 10**9, 900, 31), ("n2", 5 * 10**9, 950, 35)]
    trace = program.merge([own_trace(*rank) for rank in ranks])
    marks = [e for e in trace["traceEvents"] if e["name"] == "clock mark"]
    assert [(e["pid"], e["ts"]) for e in marks] == [
        (0, 500),
        (1, 702),  # its times begin 2 microseconds later
        (2, 500),
        (3, 550),
    ]
    arrows = [e["id"] for e in trace["traceEvents"] if e["ph"] == "s"]
    assert len(set(arrows)) == 4 and {type(arrow) for arrow in arrows} == {int}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(what is printed, the trace) of a run with two ranks."""
    folder = tmp_path_factory.mktemp("profile")
    options = ["--steps", 2, "--slow-rank", 1, "--memory", "--bucket-mb", 1]
    done = torchrun(folder, 2, SRC / "instruments/17_profile.py", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "trace.json").read_text())


def test_every_rank_has_a_lane_with_its_steps(recorded):
    printed, trace = recorded
    events = trace["traceEvents"]
    assert {e["pid"] for e in events} == {0, 1}
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert [name.partition(" (")[0] for name in names] == ["rank 0", "rank 1"]
    for rank in 0, 1:
        own = [e["name"] for e in events if e["pid"] == rank and e["ph"] == "X"]
        assert own.count("step 0") == own.count("step 1") == 1
        assert own.count("gloo:all_reduce") == 4 * 2, "four buckets in two steps"
        assert own.count("clock mark") == 1
    forwards = [
        sum(e["name"] == "aten::linear" and e["pid"] == rank for e in events)
        for rank in (0, 1)
    ]
    assert forwards == [4 * 2, 4 * 2 * 6]
    assert len(numbers(printed)) == 2
    assert re.search(r"memory: rank 1 \+\d+\.\d MB at most", printed)


def test_shortened_trace_is_explained_the_same(recorded, tmp_path):
    """tools/record_traces.py drops what changes none of the times."""
    printed, trace = recorded
    short = shorten(trace["traceEvents"])
    assert len(short) < len(trace["traceEvents"]) / 4
    assert set().union(*short) == set(FIELDS)
    text = explained(tmp_path, trace | {"traceEvents": short})
    assert numbers(text) == numbers(printed)


def test_no_rank_starts_a_step_before_the_barrier_ends(recorded):
    _, trace = recorded
    enters = [e["ts"] for e in trace["traceEvents"] if e["name"] == "gloo:barrier"]
    starts = [e["ts"] for e in trace["traceEvents"] if e["name"] == "step 0"]
    assert len(enters) == len(starts) == 2
    assert max(enters) < min(starts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--explain", "none.json"], "cannot read none.json: No such file"),
        (["--steps", "0"], "'0' is not a whole number above 0"),
        (["--data-ms", "1e300"], "'1e300' is not a number above 0 and below 1e12"),
        (["--output", "/nowhere/t.json"], "cannot write in the folder /nowhere"),
        (["--slow-rank", "1"], "--slow-rank 1: choose one of 0 to 0"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, options, words):
    assert words in sentence(script(tmp_path, "17_profile.py", *options))
