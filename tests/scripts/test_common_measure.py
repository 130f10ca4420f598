"""What the cost programs of lessons 12 to 16 count is what there is."""

import ast
import importlib
import json
import re
from fractions import Fraction
from itertools import chain
from pathlib import Path

import pytest
import torch
from torch import nn

from common.byte_gpt import Block, Sizes
from common.cost.counting import block_activations, compare
from common.cost.measure import Activations, Sent, bytes_of, optimizer_bytes
from tests.scripts.trainings import ROOT, SRC, torchrun
from workshop.grader.ledger.ledger import ring_bytes


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def parameter_bytes(model):
    return bytes_of(model.parameters())


def gradient_bytes(model):
    return bytes_of(parameter.grad for parameter in model.parameters())


# What a rank holds


def test_tied_parameter_counts_once():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    assert parameter_bytes(model) == 4 * (16 + 4 + 4)


def test_gradients_count_while_they_are_there():
    model = network()
    assert gradient_bytes(model) == 0
    model(torch.ones(3, 4)).sum().backward()
    assert gradient_bytes(model) == parameter_bytes(model) == 4 * (30 + 14)
    model.zero_grad()
    assert gradient_bytes(model) == 0


@pytest.mark.parametrize(
    ("make", "states"),
    [
        (lambda p: torch.optim.AdamW(p), 2),
        (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), 1),
        (lambda p: torch.optim.SGD(p, 0.1), 0),
    ],
)
def test_state_of_the_optimizer_without_its_step_counters(make, states):
    model = network().double()
    optimizer = make(model.parameters())
    model(torch.ones(3, 4, dtype=torch.float64)).sum().backward()
    optimizer.step()
    assert optimizer_bytes(optimizer) == states * parameter_bytes(model)


def test_none_and_the_same_tensor_twice():
    tensor = torch.ones(5)
    assert bytes_of([tensor, None, tensor]) == 20


# What forward saves


def test_saved_inputs_and_results_are_counted_and_released():
    model = network()
    inputs = torch.ones(3, 4)
    with Activations(model) as activations:
        loss = model(inputs).square().sum()
        # the input, ReLU's result (saved by it and by the layer after it), the scores
        assert activations.bytes == 4 * (12 + 18 + 6)
        loss.backward()
    assert activations.bytes == 0
    assert activations.peak_bytes == 4 * (12 + 18 + 6)


def test_peak_of_two_rounds_at_once_is_twice_one():
    model = network()
    with Activations(model) as activations:
        losses = [model(torch.ones(3, 4)).sum() for _ in range(2)]
        for loss in losses:
            loss.backward()
        del loss, losses
        assert activations.peak_bytes == 2 * 4 * (12 + 18)
        model(torch.ones(3, 4)).sum().backward()
    assert activations.peak_bytes == 2 * 4 * (12 + 18)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [Sizes(), Sizes(96, 6), Sizes(20, 5, context=11)])
def test_block_saves_what_the_formula_says(sizes, dtype):
    block = Block(sizes).to(dtype)
    x = torch.randn(3, sizes.context, sizes.width, dtype=dtype, requires_grad=True)
    with Activations(block) as activations:
        y = block(x)
        saved = block_activations(sizes, 3 * sizes.context)
        assert activations.bytes == saved * dtype.itemsize
        del y


# What a rank sends


@pytest.fixture(scope="module", params=[pytest.param(2, marks=pytest.mark.full), 3])
def counted(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("counted")
    program = Path(__file__).with_name("ranks_common_measure.py")
    done = torchrun(folder, request.param, program, folder, PYTHONPATH=f"{SRC}:{ROOT}")
    assert done.returncode == 0, done.stderr
    files = sorted(folder.glob("*.json"))
    return [json.loads(path.read_text()) for path in files]


def test_scripts_count_the_calls_that_the_grader_counts(counted):
    names = {
        "all_gather_into_tensor": "all_gather",
        "reduce_scatter_tensor": "reduce_scatter",
    }
    for found in counted:
        # what DDP sends to compare the shapes of parameters is not of a step
        ledger = [[names.get(op, op), *rest] for op, *rest in found["ledger"]]
        assert found["traffic"] == ledger
        assert {op for op, *_ in ledger} > {"all_reduce", "all_gather", "broadcast"}


def test_wire_bytes_are_those_of_the_ring_algorithms():
    for n in (2, 3, 4):
        assert round(Sent("all_reduce", 12, n).on_the_wire) == ring_bytes(12, n)
        whole = 12 * n  # an all-reduce is a reduce-scatter and an all-gather
        both = Sent("reduce_scatter", whole, n), Sent("all_gather", 12, n)
        parts = sum(call.on_the_wire for call in both)
        assert parts == Sent("all_reduce", whole, n).on_the_wire
    assert Sent("send", 7, 4).on_the_wire == 7
    assert Sent("broadcast", 12, 4).on_the_wire == Fraction(9)


# Private names of torch

OVERRIDDEN = {"_should_skip_dynamo"}  # by measure, not called
PUBLIC = {"_replace"}  # Python documents it, of a NamedTuple
OWNERS = {  # file of src/ -> what it needs of torch that has no public name
    "common/cost/measure.py": [
        "torch.utils._python_dispatch.TorchDispatchMode",
        "torch.utils._python_dispatch.TorchDispatchMode._should_skip_dynamo",
        "torch.utils._python_dispatch._get_current_dispatch_mode",
        "torch.utils._pytree.tree_leaves",
        "torch.ops.aten.add.Tensor._schema.arguments",
        "torch.UntypedStorage._cdata",
        "torch.distributed.distributed_c10d._resolve_process_group",
    ],
    "common/cost/layouts.py": ["torch.testing._internal.distributed.fake_pg"],
    "instruments/07_teardown.py": ["torch._dynamo"],
    "instruments/19_flight_recorder.py": ["torch._C._distributed_c10d._dump_fr_trace"],
}
UNDOCUMENTED = [  # what measure needs, too
    "torch.distributed.ProcessGroup.unbox",
    "torch.ops.c10d._allgather_base_.default",
    "torch.ops.fsdp.split_with_sizes_copy.default",
]


@pytest.mark.parametrize("name", [*chain(*OWNERS.values()), *UNDOCUMENTED])
def test_private_name_of_torch_is_still_there(name):
    importlib.import_module("torch.distributed.fsdp")  # registers fsdp's operators
    importlib.import_module("torch.testing._internal.distributed.fake_pg")
    measure = "common/cost/measure.py"
    owner = next((o for o, names in OWNERS.items() if name in names), measure)
    found = torch
    for part in name.split(".")[1:]:
        moved = f"torch {torch.__version__} has moved {name}: adapt src/{owner}"
        assert hasattr(found, part), moved
        found = getattr(found, part)


def private(dotted):
    return {word for word in dotted.split(".") if re.match("_[a-zA-Z]", word)}


def private_names(path):
    """Private modules and names that a file imports, private attributes it reads."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            words = [getattr(node, "module", ""), *(alias.name for alias in node.names)]
            found |= private(".".join(words))
        elif isinstance(node, ast.Attribute):
            owner = getattr(node.value, "id", "")
            found |= private(node.attr) if owner not in ("self", "os") else set()
    return found


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.py")), ids=lambda path: path.stem)
def test_private_name_is_used_by_its_owner_only(path):
    name = path.relative_to(SRC).as_posix()
    owned = set().union(*(private(each) for each in OWNERS.get(name, ())))
    found = private_names(path) - PUBLIC
    assert found == owned - OVERRIDDEN, "ask its owner, common/cost/measure.py for most"


def test_private_name_has_one_owner():
    owned = list(chain(*OWNERS.values()))
    assert len(set(owned)) == len(owned)


# The table


def test_table_shows_both_numbers_and_where_they_differ():
    shown = compare({"a": 1000, "b": 2}, {"a": 1000, "b": 3}, "bytes on rank 1")
    first, *lines = [line.split() for line in shown.splitlines()]
    assert first == ["bytes", "on", "rank", "1", "measured", "formula"]
    assert lines == [["a", "1,000", "1,000"], ["b", "2", "3", "they", "differ"]]
