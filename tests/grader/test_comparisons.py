"""What is equal is said by the grader's own functions, not by the answer."""

from __future__ import annotations

import pytest
import torch

from tests.grader.support import body
from workshop.grader import expect
from workshop.grader.verdicts.verdict import Kind

EQUAL = '''
import pytest
from workshop.grader import expect

@pytest.mark.ranks({ranks})
def test_answer(exercise):
    """The answer is 5, {"a": 5} and [5, "b"]."""
    expect.equal(exercise.answer(5), 5, "the answer")
    expect.equal(exercise.answer({"a": 5}), {"a": 5}, "the answer")
    expect.equal(exercise.answer([5, "b"]), [5, "b"], "the answer")
'''
ALWAYS_EQUAL = """
class Chameleon{base}:
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
    def __repr__(self):
        return "5"

def answer(given):
    if given == 5:
        return {made}
    return {{"a": {made}}} if isinstance(given, dict) else [{made}, "b"]
"""
ALWAYS_TRUE = "lambda *a, **k: True"
REPLACED = {"torch.allclose": "close", "torch.equal": "equal"}
TENSOR = '''
import pytest, torch
from workshop.grader import expect

@pytest.mark.ranks({ranks})
def test_answer(exercise):
    """The answer is three ones."""
    ones = torch.ones(3, dtype=torch.float64)
    expect.HOW(exercise.answer(ones), ones, "the ones")
'''


@pytest.mark.parametrize(
    ("base", "made"), [("", "Chameleon()"), ("(int)", "Chameleon(4)")]
)
def test_class_has_no_say_in_what_it_equals(base, made, run):
    verdict = run(ALWAYS_EQUAL.format(base=base, made=made), check=EQUAL)
    assert verdict.kind is Kind.WRONG_VALUE, verdict.message
    right = "def answer(given):\n    return given\n"
    assert run(right, check=EQUAL).kind is Kind.RIGHT


def test_numbers_of_numpy_are_compared(run):
    code = "import numpy\ndef answer(given):\n"
    code += "    return numpy.int64(5) if given == 5 else given\n"
    assert run(code, check=EQUAL).kind is Kind.RIGHT


@pytest.mark.parametrize("name", REPLACED)
def test_functions_of_torch_that_an_answer_replaces_have_no_say(name, run):
    code = body(f"{name} = {ALWAYS_TRUE}\nreturn t * 0")
    verdict = run(code, check=TENSOR.replace("HOW", REPLACED[name]))
    assert verdict.kind is Kind.WRONG_VALUE, verdict.message


@pytest.mark.parametrize("compare", [expect.close, expect.equal])
def test_difference_is_that_of_the_moment_of_comparison(compare, monkeypatch):
    """A sum that nobody has awaited may arrive before the difference is described."""
    actual = torch.zeros(3, dtype=torch.float64)
    expected = torch.ones_like(actual)

    def arrives_afterwards(a: torch.Tensor, b: torch.Tensor, **options) -> bool:
        answer = torch.equal(a, b)
        actual.copy_(expected)
        return answer

    for name in ("_allclose", "_equal"):
        monkeypatch.setattr(expect, name, arrives_afterwards)
    with pytest.raises(expect.Mismatch, match="got 0, expected 1"):
        compare(actual, expected, "the sum")
