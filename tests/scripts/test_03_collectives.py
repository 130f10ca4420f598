"""The programs of lesson 03, run as the page runs them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import launched
from tests.launched import STANDALONE
from tests.needs import needs

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["broadcast", "scatter", "gather", "reduce", "all_reduce", "all_gather"]
NAMES += ["reduce_scatter", "all_to_all", "barrier", "send_recv"]


def run(*command, **variables):
    return launched.run(ROOT, command, **variables)


def on_ranks(world_size, script, *arguments, **variables):
    torchrun = [*STANDALONE, f"--nproc-per-node={world_size}"]
    return run(*torchrun, f"src/{script}", *arguments, **variables)


def tables(text):
    """{name: [(before, after) of each rank]}: lists of numbers, None for a dot."""
    found = {}
    for block in text.split("\n\n")[1:]:
        heading, columns, *rows = block.strip("\n").splitlines()
        split = columns.index("after") - 1
        found[heading.partition(":")[0]] = [
            (numbers(row[9:split]), numbers(row[split:])) for row in rows
        ]
    return found


def numbers(text):
    return [None if word == "." else int(word) for word in text.split()]


def expected_tables(world_size):
    """The same from the definition of each collective; reduce for rank 0 only."""
    ranks = range(world_size)
    own = [[10 * r + i for i in ranks] for r in ranks]
    first = [[10 * r] for r in ranks]
    column = [10 * r for r in ranks]
    sums = [sum(row[i] for row in own) for i in ranks]
    dots = [None] * world_size
    after = {
        "broadcast": (own, [own[0]] * world_size),
        "scatter": ([own[0], *[[None]] * (world_size - 1)], [[i] for i in ranks]),
        "gather": (first, [column, *first[1:]]),
        "reduce": (own, [sums]),
        "all_reduce": (own, [sums] * world_size),
        "all_gather": (first, [column] * world_size),
        "reduce_scatter": (own, [[s] for s in sums]),
        "all_to_all": (own, [[10 * j + i for j in ranks] for i in ranks]),
        "barrier": ([[r + 1] for r in ranks], [[world_size]] * world_size),
        "send_recv": (
            [own[0], *[dots] * (world_size - 1)],
            [own[0], *[dots] * (world_size - 2), own[0]],
        ),
    }
    return {
        name: list(zip(before[: len(end)], end, strict=True))
        for name, (before, end) in after.items()
    }


def test_tables_are_what_the_collectives_are_defined_to_do():
    world_size = 3
    done = on_ranks(world_size, "03_collectives.py")
    assert done.returncode == 0, done.stderr
    found = tables(done.stdout)
    assert list(found) == NAMES
    found["reduce"] = found["reduce"][:1]
    assert found == expected_tables(world_size)


def test_names_on_the_command_line_select_and_order():
    done = on_ranks(2, "03_collectives.py", "gather", "broadcast")
    assert list(tables(done.stdout)) == ["gather", "broadcast"]


@pytest.mark.parametrize(
    "script",
    [
        "03_collectives.py",
        "03_ring_all_reduce.py",
        "03_deadlocks.py",
        "instruments/03_wire_bytes.py",
    ],
)
def test_started_plainly_it_says_in_one_sentence_how_to_start_it(script):
    case = ["all_send"] if script == "03_deadlocks.py" else []
    done = run(sys.executable, f"src/{script}", *case)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"torchrun --standalone --nproc-per-node=4 src/{script}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["03_collectives.py", "all_rduce"], ["'all_rduce'", "all_reduce"]),
        (["03_deadlocks.py", "all_sing"], ["'all_sing'", "all_send"]),
        (["03_deadlocks.py", "all_send", "--timeout=0"], ["--timeout", "'0'"]),
        (["03_ring_all_reduce.py", "--sizes", "-1"], ["--sizes", "'-1'"]),
        (["03_ring_all_reduce.py", "--repeats", "x"], ["--repeats", "'x'"]),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence(arguments, words):
    done = run(sys.executable, f"src/{arguments[0]}", *arguments[1:])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert all(word in done.stderr for word in words)


def reports(done):
    """What each rank said, in rank order."""
    lines = re.findall(r"^rank (\d) after \d+ s: (.*)$", done.stdout, re.MULTILINE)
    return [text for _, text in sorted(lines)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("case", "who_gives_up"),
    [
        ("all_send", [0, 1, 2]),
        ("all_receive", [0, 1, 2]),
        ("unequal_iterations", [0]),
    ],
)
def test_a_deadlock_ends_in_time_outs_that_name_no_call(case, who_gives_up):
    done = on_ranks(3, "03_deadlocks.py", case, "--timeout=3")
    found = reports(done)
    assert len(found) == 3, done.stderr
    gave_up = [rank for rank, text in enumerate(found) if text != "continued"]
    assert gave_up == who_gives_up
    told = [found[rank] for rank in gave_up]
    assert any("Timed out waiting 3000ms for" in text for text in told)
    # nothing that would help: no rank, no collective of the program
    assert not re.search(r"\brank\b|all_?reduce|broadcast", " ".join(told), re.I)


def test_a_rank_that_left_is_seen_as_a_closed_connection():
    found = reports(on_ranks(3, "03_deadlocks.py", "left_early", "--timeout=3"))
    assert len(found) == 2  # rank 1 says nothing
    # reset: rank 1 had left with data of theirs unread
    lost = re.compile("Connection (closed|reset) by peer")
    assert any(lost.search(text) for text in found), found


def in_a_network_of_its_own(command):
    return ["unshare", "-rn", "sh", "-c", f"ip link set lo up && {command}"]


def can_have_a_network_of_its_own():
    try:
        probe = in_a_network_of_its_own("true")
        return subprocess.run(probe, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.mark.full
@needs("unshare", "ip")
@pytest.mark.skipif(
    not can_have_a_network_of_its_own(),
    reason="this kernel gives this user no network of its own (unshare -rn)",
)
def test_the_kernel_counts_what_the_page_says():
    torchrun = " ".join([*STANDALONE, "--nproc-per-node=3"])
    done = run(*in_a_network_of_its_own(f"{torchrun} src/instruments/03_wire_bytes.py"))
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+) +([\d.]+) S +([\d.]+) S$", done.stdout, re.MULTILINE)
    least = {name: float(text) for name, text, _ in rows}
    counted = {name: float(text) for name, _, text in rows}
    assert len(rows) == 8
    # "Gloo reaches it, with two exceptions"
    for name in set(least) - {"reduce", "reduce_scatter"}:
        assert counted[name] == pytest.approx(least[name], rel=0.03), name
    # "reduce_scatter costs as much as all_reduce", "reduce costs more than it need"
    assert counted["reduce_scatter"] == pytest.approx(counted["all_reduce"], rel=0.03)
    assert counted["reduce"] > 1.2 * least["reduce"]
