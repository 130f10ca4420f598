"""What the grader says of classic mistakes leads to pages that explain them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.grader.examples_of_mistakes import EXAMPLES_OF_GRAPHS, EXAMPLES_OF_SCRIPTS
from workshop.grader.verdicts import diagnosis
from workshop.grader.verdicts.classics import calls, exceptions, hangs, scripts, values
from workshop.grader.verdicts.classics.classic import first_seen
from workshop.grader.verdicts.classics.exceptions import of_exception
from workshop.grader.verdicts.classics.scripts import UNSEEN
from workshop.grader.verdicts.classics.table import CLASSICS
from workshop.grader.verdicts.classics.values import Values
from workshop.grader.verdicts.evidence import Finding
from workshop.grader.verdicts.verdict import Kind

ROOT = Path(__file__).resolve().parents[2]
NO_ENTRY = "'tuple' object does not support item assignment"
TABLES = {
    "values": values.IN_VALUES,
    "shapes": values.IN_SHAPES,
    "calls": calls.IN_CALLS,
    "differences": calls.IN_DIFFERENCES,
    "messages": hangs.IN_MESSAGES,
    "counts": hangs.IN_COUNTS,
    "groups": hangs.IN_GROUPS,
    "exceptions": exceptions.IN_EXCEPTIONS,
    "crashes": exceptions.IN_CRASHES,
    "scripts": scripts.IN_SCRIPTS,
}


def value(actual: list, expected: list, own=None, scale=None, world=4) -> tuple:
    a, e = torch.tensor(actual).double(), torch.tensor(expected).double()
    own = None if own is None else torch.tensor(own).double()
    return (Values(a, e, own, a != e, scale, world),)


def call(op="all_reduce", line=3, **more) -> dict:
    facts = {"reduce_op": "SUM", "root": None, "peer": None, "tag": None}
    facts |= {"dtypes": ["float32"], "shapes": [[4]], "contiguous": True}
    facts |= {"ddp": False, "one_slot": False, "numel": 4, "caller": op}
    return {"op": op, "line": line, **facts, **more}


LISTS = [call(caller="broadcast_object_list", shapes=[[n]]) for n in (1, 0)]


def messages(
    *rows: tuple, waiting=("dist.recv(t, 0)",), partners=None, again=False
) -> tuple:
    """Of (rank, op, peer, tag)."""
    by_rank = {rank: [] for rank in range(2)}
    for rank, op, peer, tag in rows:
        by_rank[rank].append(call(op, peer=peer, tag=tag))
    return (hangs._messages(list(waiting), by_rank, partners or {}, again),)


# what DDP calls when it is made
MADE = call("all_gather", ddp=True, caller="")
SENT = call("broadcast", ddp=True, caller="", numel=40)
E = [1.0, -2.0, 3.0, 5.0]
NOT_CALLABLE = "'Tensor' object is not callable"
EXAMPLES = [
    ("values", "not_communicated", value([7, 8], [1, 2], own=[7, 8])),
    ("values", "zero", value([0, 0], [1, 2], scale=0.0)),
    ("values", "opposite", value([-1, -2], [1, 2], scale=-1.0)),
    ("values", "not_averaged", value([4, 8], [1, 2], scale=4.0)),
    ("values", "averaged_twice", value([1, 2], [4, 8], scale=0.25)),
    ("values", "other_order", value(E[::-1], E)),
    ("values", "remainder", value([1, 2, 3, 4, 9], [1, 2, 3, 4, 5])),
    ("values", "all_slots_equal", value([3, 3, 3, 3], [1, 2, 3, 4])),
    ("shapes", "other_order", ([2, 3], [3, 2], 4)),
    ("shapes", "length_of_padding", ([8], [7], 4)),
    ("shapes", "remainder", ([4], [7], 4)),
    ("calls", "past_ddp", ([MADE], 0)),
    ("calls", "past_ddp", ([MADE, SENT, call(numel=2)], 0)),  # the mean loss
    ("calls", "all_slots_equal", ([call("all_gather", one_slot=True)], 0)),
    ("calls", "only_the_root", ([call("reduce", root=0)], 1)),
    ("calls", "not_contiguous", ([call(contiguous=False)], 0)),
    ("differences", "ddp_forward", ([call("broadcast", ddp=True), call()],)),
    ("differences", "another_order", ([call(), call("broadcast")],)),
    ("differences", "own_root", ([call(root=0), call(root=1)],)),
    ("differences", "dtype_differs", ([call(), call(dtypes=["int64"])],)),
    ("differences", "lists_of_objects", (LISTS,)),
    ("differences", "shape_differs", ([call(), call(shapes=[[3]])],)),
    ("differences", "reduce_op_differs", ([call(), call(reduce_op="AVG")],)),
    (
        "messages",
        "waited_twice",
        messages((0, "send", 1, 0), (1, "recv", 0, 0), again=True),
    ),
    ("messages", "tags_differ", messages((0, "send", 1, 5), (1, "recv", 0, 6))),
    (
        "messages",
        "all_send",
        messages((0, "send", 1, 0), (1, "send", 0, 0), waiting=("s", "s")),
    ),
    (
        "messages",
        "all_receive",
        messages((0, "recv", 1, 0), (1, "recv", 0, 0), waiting=("r", "r")),
    ),
    ("messages", "partner_missing", messages((0, "recv", 1, 0))),  # 1 sends nothing
    (
        "messages",
        "circle",
        messages(
            *[
                (0, "send", 1, 0),
                (1, "recv", 0, 0),
                (0, "send", 1, 0),
                (1, "send", 0, 0),
            ],
            partners={0: ("send", 1), 1: ("send", 0)},
        ),
    ),
    (
        "messages",
        "circle_of_receives",
        messages(
            *[
                (0, "send", 1, 0),
                (1, "recv", 0, 0),
                (0, "recv", 1, 0),
                (1, "recv", 0, 0),
            ],
            partners={0: ("recv", 1), 1: ("recv", 0)},
        ),
    ),
    ("messages", "partner_missing", messages((0, "send", 1, 0), (1, "recv", 1, 0))),
    ("counts", "unequal_iterations", ({0: [call(), call()], 1: [call()]}, 2, False)),
    ("counts", "unequal_iterations", ({0: [call(line=8)], 1: []}, 1, True)),
    ("counts", "not_everybody", ({0: [call(line=8)], 1: []}, 1, False)),
    ("groups", "new_group", (["x = 1", "group = dist.new_group(row)"],)),
    ("groups", "no_such_key", (["counts = [int(store.get(f'n{i}'))]"],)),
    ("groups", "not_all_joined", (["dist.init_process_group('gloo', rank=rank)"],)),
    ("exceptions", "called_too_soon", ("", NOT_CALLABLE, "x.result()")),
    ("exceptions", "no_group", ("", "group has not been initialized", "")),
    (
        "exceptions",
        "class_not_called",
        ("", "'type' object does", "with torch.no_grad:"),
    ),
    ("exceptions", "graph_twice", ("", "backward through the graph a second time", "")),
    ("exceptions", "no_rendezvous", ("", "No rendezvous handler for ://", "")),
    ("exceptions", "own_partner", ("RuntimeError", "Pair is not connected", "")),
    ("exceptions", "broken_file", ("EOFError", "Ran out of input", "torch.load(f)")),
    (
        "exceptions",
        "broken_file",
        ("RuntimeError", "PytorchStreamReader failed reading zip archive: ...", ""),
    ),
    (
        "exceptions",
        "broken_file",
        (
            "UnpicklingError",
            "Weights only load failed. ... Unsupported operand 118",
            "",
        ),
    ),
    ("exceptions", "weights_only", ("X", "Weights only load failed. This ...", "")),
    (
        "exceptions",
        "no_gpu",
        ("AssertionError", "Torch not compiled with CUDA enabled", "x.cuda()"),
    ),
    ("exceptions", "keyboard", ("EOFError", "EOF when reading a line", "")),
    ("exceptions", "keyboard", ("BdbQuit", "", "dist.all_reduce(t)")),
    ("exceptions", "group_rank", ("", "Global rank 0 is not part of group", "")),
    ("exceptions", "leaf_in_place", ("", "a leaf Variable that requires grad is", "")),
    ("exceptions", "no_reduction", ("", "incompatible function ...: ReduceOp", "")),
    ("exceptions", "not_called", ("TypeError", "'method' object is not iterable", "")),
    ("exceptions", "not_called", ("TypeError", "must be Tensor, not function", "")),
    (
        "exceptions",
        "init_twice",
        ("ValueError", "trying to initialize the default process group twice!", ""),
    ),
    ("exceptions", "gather_list", ("ValueError", "Argument gather_list must ...", "")),
    (
        "exceptions",
        "root_first",
        (
            "TypeError",
            "Invariant encountered: value was None",
            "fully_shard(block, mesh=mesh)",
        ),
    ),
    (
        "exceptions",
        "no_axis_to_shard",
        ("TypeError", "Invariant encountered: value was None", "fully_shard(module)"),
    ),
    (
        "exceptions",
        "split_after_sharding",
        (
            "ValueError",
            "Cannot distribute a DTensor with device mesh DeviceMesh((data=2), 'cpu')",
            'parallelize_module(block, mesh["tensor"], plan)',
        ),
    ),
    (
        "exceptions",
        "shard_of_another_mesh",
        (
            "CheckpointException",
            "ValueError: Size mismatch between saved torch.Size([7, 12]) and current",
            "dcp.load(state, checkpoint_id=folder)",
        ),
    ),
    ("exceptions", "tuple_entry", ("TypeError", NO_ENTRY, "chunks[i] += incoming")),
    ("exceptions", "tuple_entry", ("TypeError", NO_ENTRY, "c[i] = c[i] + incoming")),
    ("exceptions", "tuple_for_a_list", ("TypeError", NO_ENTRY, "recv_object_list(b)")),
    (
        "exceptions",
        "into_no_gradient",
        (
            "TypeError",
            "Expected parameter `output` ... but got <class 'NoneType'>",
            "dist.reduce_scatter_tensor(p.grad, whole)",
        ),
    ),
    (
        "exceptions",
        "no_gradient",
        ("TypeError", "... but got <class 'NoneType'>", "dist.send(x.grad, dst=0)"),
    ),
    (
        "exceptions",
        "ddp_alone",
        (
            "RuntimeError",
            "DDP expects same model across all ranks, but Rank 0 has 4",
            "",
        ),
    ),
    (
        "exceptions",
        "changed_in_place",
        ("RuntimeError", "has been modified by an inplace operation: [...]", ""),
    ),
    ("crashes", "state_is_a_view", ("torch.set_rng_state(states[rank])",)),
    (
        "exceptions",
        "none_result",
        ("AttributeError", "'NoneType' object has no attribute 'wait'", ""),
    ),
    *EXAMPLES_OF_SCRIPTS,
    *EXAMPLES_OF_GRAPHS,
]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("#!/bin/bash\n# as #SBATCH --nodes says\n#SBATCH -N2\nls\n", "1 CPU"),
        ("srun x $SLURM_LOCALID $SLURM_NODEID\n", "--node-rank\n  is '0'"),
        ('bash -lc "\n  torchrun $@\n"\n', "x on n1 didn't get --nnodes"),
        ('bash -c \'cd "$0" && torchrun "$@"\'\n', "didn't get --nnodes"),
        ("bash -c 'torchrun \"$@\"' x\n", "the job ended as FAILED"),
        ("x &\nfor _ in 1 2; do\n wait -n\ndone\n", UNSEEN),
        ("x &\nwait\nls mark && exit 1\n", UNSEEN),
        ("set -o pipefail\nx | tee log\n", UNSEEN),
        ("pbsdsh x | tee log\n", UNSEEN),
        ("pbsdsh x &\nwait\n", UNSEEN),
        ("srun x &\nwait\n", "no host started torchrun; the job ended"),
        ("cd x &&\nsrun x\n", "no host started torchrun; the job ended"),
        ("bash -c 'torchrun --nnodes=2 x'\n", "x on n1 didn't get --node-rank"),
    ],
)
def test_script_without_such_a_mistake_resembles_nothing(script, problem):
    assert scripts.of_script(script, problem) == ""


@pytest.mark.parametrize(
    "rows",
    [
        [MADE, SENT, call(numel=30)],  # averaged by hand
        [MADE, SENT, call(numel=40, caller="")],  # by DDP's reducer, from C++
        [SENT, call(numel=2)],  # the check made the DDP
    ],
)
def test_reduced_gradients_did_not_go_past_ddp(rows):
    assert calls.of_calls(rows, 0) == ""


@pytest.mark.parametrize("key", CLASSICS)
def test_page_of_a_classic_mistake_exists(key):
    classic = CLASSICS[key]
    if not classic.page:
        return
    name, _, section = classic.page.partition(", section ")
    page = ROOT / name
    assert page.is_file(), f"{key} names {name}, which is not there"
    if section:
        text = page.read_text(encoding="utf-8")
        assert re.search(rf"^{section}\n[-=~]+$", text, re.MULTILINE), classic.page


def test_gallery_has_the_failure_that_a_classic_mistake_names():
    named = {classic.gallery for classic in CLASSICS.values()} - {""}
    assert "send_send" in named
    catalog = (ROOT / "gallery" / "catalog.toml").read_text(encoding="utf-8")
    assert named <= set(re.findall(r'^name = "(\w+)"', catalog, re.M))


def test_verdict_names_the_failure_of_the_gallery():
    job = SimpleNamespace(seed=1, sentence="x", world_size=3, init=True)
    seen = SimpleNamespace(job=job, ranks=[])
    finding = Finding(Kind.HANG, ["all wait"], "all_send")
    lines = diagnosis._message(seen, finding, "docs/lessons/03_collectives")
    assert "see it fail: python src/instruments/19_gallery.py send_send" in lines


def test_every_mistake_that_is_recognized_has_an_example():
    seen = {(t, key) for t in TABLES for key, entry in TABLES[t].items() if entry.seen}
    assert {(table, key) for table, key, _ in EXAMPLES} == seen


@pytest.mark.parametrize(("table", "key", "facts"), EXAMPLES)
def test_mistake_is_recognized_before_any_other(table, key, facts):
    assert first_seen(TABLES[table], *facts)[0] == key


def test_every_key_that_the_code_names_is_a_classic():
    files = [
        ROOT / "workshop/grader/expect.py",
        ROOT / "workshop/grader/verdicts/questions/limits.py",
    ]
    named = {
        arguments[-1].value
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and len(arguments := node.args) == 3
        if getattr(node.func, "id", "") in ("Mismatch", "Finding")
        if isinstance(arguments[-1], ast.Constant)
    }
    assert {"memory", "ranks_differ"} <= named <= set(CLASSICS), named


def test_exception_without_a_known_cause_resembles_nothing():
    assert of_exception("ValueError", "bad") == ""


def test_crash_after_a_view_in_a_collective_is_put_down_to_it():
    view = call(contiguous=False)
    assert calls.of_calls_before_a_crash([call(), view]) == "not_contiguous"
    assert calls.of_calls_before_a_crash([call(), call()]) == ""


@pytest.mark.cold("what is imported is the subject")
def test_reading_verdicts_needs_no_torch():
    code = "import sys, workshop.grader.engine.engine, workshop.cli; "
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
