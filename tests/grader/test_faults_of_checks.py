"""An exception of the check's own code is a fault of the check, never of the learner.

If a learner's function returned something of another type than it says, that is a
wrong value. Everything else that fails in a check asks for a report, with status 3.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tests.grader.test_known_answers import CATALOG
from workshop.catalog import Exercise
from workshop.grader.checks import checks_in
from workshop.grader.verdicts.verdict import EXIT_STATUS, Kind
from workshop.skeleton import holes, parse, with_answers

FAULT = "len(exercise_that_does_not_exist)"
# Appended to a solution: what the check calls computes as before, but returns an
# object of no use; what the file itself calls returns what it should.
ODD = """
import functools as _functools, threading as _threading, types as _types
_calls = _threading.local()
def _odd(function):
    @_functools.wraps(function)
    def call(*args, **kwargs):
        _calls.open = getattr(_calls, "open", 0) + 1
        try:
            value = function(*args, **kwargs)
        finally:
            _calls.open -= 1
        return value if _calls.open or value is None else object()
    return call
for _owner in [globals(), *(_k for _k in list(globals().values()) if
               isinstance(_k, type) and _k.__module__ == __name__)]:
    _names = _owner if isinstance(_owner, dict) else vars(_owner)
    for _name, _value in list(_names.items()):
        if not isinstance(_value, _types.FunctionType) or not (
            _name == "__init__" or _name[0] != "_"
        ):
            continue
        if isinstance(_owner, dict):
            _owner[_name] = _odd(_value)
        else:
            setattr(_owner, _name, _odd(_value))
"""
ODD_SCRIPT = "printf 'n1\\xff\\0 -1 %s\\n' x; torchrun --nnodes --rdzv-endpoint=::\n"
ODD_YAML = "networks: 5\nports: 7\ncommand: {torchrun: 1}\n"


def broken(exercise: Exercise, folder):
    """The first check of the exercise, which fails by itself at its end."""
    tree = ast.parse(exercise.checks.read_text())
    check = checks_in(exercise.checks)[0]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == check.function:
            node.body += ast.parse(FAULT).body
    path = folder / exercise.checks.name
    path.write_text(ast.unparse(tree))
    return replace(check, path=path)


def odd_answer(exercise: Exercise) -> str:
    solution = exercise.solution.read_text()
    if exercise.suffix == ".py":
        return solution + ODD
    text = ODD_YAML if exercise.suffix == ".yaml" else ODD_SCRIPT
    numbers = [hole.number for hole in holes(parse(solution))]
    return with_answers(solution, dict.fromkeys(numbers, text))


@pytest.mark.nightly
@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_fault_of_a_check_asks_for_a_report(exercise, engine, tmp_path):
    check = broken(exercise, tmp_path)
    file = tmp_path / exercise.file
    file.write_text(exercise.solution.read_text())
    verdict = engine.run_check(check, file.read_text(), file)
    assert verdict.kind is Kind.ENVIRONMENT, verdict.message
    assert "the check itself failed, with NameError" in verdict.message
    assert "please report" in verdict.message
    assert EXIT_STATUS[verdict.kind.status] == 3


@pytest.mark.nightly
@pytest.mark.parametrize("exercise", CATALOG, ids=lambda e: e.name)
def test_value_of_another_type_blames_no_line(exercise, engine, tmp_path):
    file = tmp_path / exercise.file
    file.write_text(odd_answer(exercise))
    once = {check.function: check for check in checks_in(exercise.checks, (1,))}
    verdict = engine.grade(exercise, file, list(once.values())).verdict
    allowed = (Kind.WRONG_VALUE, Kind.WRONG_WAY, Kind.RIGHT)  # some return nothing
    assert verdict.kind in allowed, verdict.message


@pytest.mark.full
def test_whole_numbers_out_of_a_module_are_told(engine, tmp_path):
    exercise = next(e for e in CATALOG if e.name == "05_ddp_by_hand")
    file = tmp_path / exercise.file
    right = "return self.module(*inputs)"
    file.write_text(exercise.solution.read_text().replace(right, f"{right}.long()"))
    verdict = engine.grade(exercise, file).verdict
    assert verdict.kind is Kind.WRONG_VALUE, verdict.message
    assert "the output of forward" in verdict.message
    assert "has dtype int64, expected float64" in verdict.message


CHECK = '''
import os, pytest, torch
from workshop.grader import expect

@pytest.mark.ranks(1)
def test_answer(exercise):
    """One call of answer."""
    def halve(number):
        return number / 2

    def refuse(number):
        raise ValueError("not on this disk")

    def late(*arguments):
        return os.path.join(*arguments)

    {use}
'''
CASES = {
    "returns what its annotation rules out": (
        "def answer() -> list[int]: return 7",
        "len(exercise.answer())",
        (Kind.WRONG_VALUE, "answer", "returned int, expected list[int]"),
    ),
    "returns nothing": (
        "def answer() -> int: pass",
        "exercise.answer() + 1",
        (Kind.WRONG_VALUE, "returned None: is a `return` missing?"),
    ),
    "a method returns another type": (
        "class Meter:\n    def read(self) -> dict[str, float]: return {1: 2}",
        "exercise.Meter().read()['loss']",
        (Kind.WRONG_VALUE, "read", "returned dict, expected dict[str, float]"),
    ),
    "a tensor that equals the number that is promised": (
        "import torch\ndef answer() -> int | None: return torch.tensor(7)",
        "expect.equal(exercise.answer(), 7, 'the answer')",
        (Kind.WRONG_VALUE, "answer", "returned Tensor, expected int | None"),
    ),
    "tensors in a list of numbers": (
        "import torch\ndef answer() -> list[tuple[str, int]]:\n"
        "    return [('forward', torch.tensor(7))]",
        "expect.equal(exercise.answer(), [('forward', 7)], 'the answer')",
        (Kind.WRONG_VALUE, "answer", "expected list[tuple[str, int]]"),
    ),
    "a generator where a list is promised": (
        "def answer() -> list[int]: yield 7",
        "expect.equal(list(exercise.answer()), [7], 'the answer')",
        (Kind.WRONG_VALUE, "answer", "returned generator, expected list[int]"),
    ),
    "a tuple for a list, and a tensor in a list of tensors": (
        "import torch\ndef answer() -> tuple[list[torch.Tensor], float]:\n"
        "    return (torch.tensor(7),), 1.0",
        "expect.equal(exercise.answer()[0][0], torch.tensor(7), 'the answer')",
        (Kind.RIGHT, ""),
    ),
    "is not there": (
        "def question(): pass",
        "exercise.answer()",
        (Kind.WRONG_VALUE, "your file defines no answer"),
    ),
    "takes other arguments": (
        "def answer(rank): return rank",
        "exercise.answer(1, 2)",
        (Kind.WRONG_VALUE, "does not take the arguments", "too many positional"),
    ),
    "fits, and the check fails": (
        "def answer() -> list[int]: return []",
        "exercise.answer()[0]",
        (Kind.ENVIRONMENT, "the check itself failed, with IndexError"),
    ),
    "the check's function fails below the learner's line": (
        "def answer(number): return number('x')",
        "exercise.answer(halve)",
        (Kind.ENVIRONMENT, "with TypeError", "return number / 2", "please report"),
    ),
    "an assertion of somebody else fails below the check": (
        "def answer() -> int: return 3",
        "torch.testing.assert_close(exercise.answer(), 4)",
        (Kind.ENVIRONMENT, "with AssertionError", "please report"),
    ),
    "the check's function refuses on purpose": (
        "def answer(number): return number(1)",
        "exercise.answer(refuse)",
        (Kind.EXCEPTION, "not on this disk", "line 1: def answer(number)"),
    ),
    "the check's function stands in for another one": (
        "def answer(join): return join(7)",
        "exercise.answer(late)",
        (Kind.EXCEPTION, "TypeError", "not int", "line 1: def answer(join)"),
    ),
    "the check calls its own stand-in": (
        "def answer(): return 7",
        "late(exercise.answer())",
        (Kind.ENVIRONMENT, "with TypeError", "please report"),
    ),
    "a graph that ends too soon": (
        "import torch\ndef answer() -> torch.Tensor: return torch.ones(())",
        "exercise.answer().backward()",
        (Kind.WRONG_VALUE, "the backward pass", "does not require grad"),
    ),
    "a module of the check gets an input of another shape": (
        "import torch\ndef answer(module): return module(torch.ones(3, 2))",
        "class Network(torch.nn.Module):\n        def forward(self, x):\n"
        "            return x @ torch.ones(3, 1)\n    exercise.answer(Network())",
        (Kind.WRONG_VALUE, "the module that your code calls cannot compute", "mat1"),
    ),
    "an array where a number is wanted": (
        "import numpy\ndef answer(): return numpy.zeros(3)",
        "expect.equal(exercise.answer(), 3, 'the answer')",
        (Kind.WRONG_VALUE, "the answer", "expected 3"),
    ),
    "a tensor that holds no numbers": (
        "import torch\ndef answer(): return torch.ones(3, device='meta')",
        "expect.close(exercise.answer(), torch.ones(3), 'the answer')",
        (Kind.WRONG_VALUE, "is a tensor on meta, expected a dense one on the CPU"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_who_is_told_of_an_exception(name, run):
    code, use, (kind, *words) = CASES[name]
    verdict = run(code, check=CHECK.replace("{use}", use))
    assert verdict.kind is kind, verdict.message
    for word in words:
        assert word in verdict.message
    if kind is Kind.ENVIRONMENT:
        assert "line 1: def" not in verdict.message
