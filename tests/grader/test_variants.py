"""The wrong rule behind wrong numbers is found, if all of them speak for it."""

from __future__ import annotations

import pytest

from workshop.grader import expect
from workshop.grader.variants import cause, cause_in

CASES = [(1, 2), (3, 5), (4, 1)]
MISTAKES = {
    "the two were added": {"join": "sum"},
    "the result were doubled": {"factor": 2},
    "one were too much": {"shift": 1},
}


def area(width, height, *, join="product", factor=1, shift=0):
    joined = width + height if join == "sum" else width * height
    return joined * factor + shift


def cause_of(function):
    return cause([function(*case) for case in CASES], CASES, area, MISTAKES)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda w, h: w + h, "the two were added"),
        (lambda w, h: 2 * w * h, "the result were doubled"),
        (lambda w, h: 2 * (w + h), "the two were added, and as if the result were"),
        (lambda w, h: 2.0 * w * h, "the result were doubled"),
    ],
)
def test_mistake_that_gives_all_values_is_named(function, words):
    assert cause_of(function).startswith(words)


@pytest.mark.parametrize(
    "function",
    [
        lambda w, h: w * h,  # right
        lambda w, h: w + h if w == 3 else 7,  # explained in one case
        lambda w, h: 2 * (w + h) + 1,  # three mistakes
        lambda w, h: None,
    ],
)
def test_what_no_few_mistakes_explain_has_no_name(function):
    assert cause_of(function) == ""


def test_mistake_that_fails_for_a_case_is_passed_over():
    def inverse(number, *, of=1):
        return of / number

    assert cause([0], [(0,)], inverse, {"twice": {"of": 2}}) == ""


def test_function_that_changes_its_arguments_is_asked_with_copies():
    def total(numbers, *, shift=0):
        return sum(numbers) + shift

    def eats(numbers):
        found = 1
        while numbers:
            found += numbers.pop()
        return found

    cases = [([1, 2],), ([5],)]
    assert cause_in(eats, cases, total, {"one were too much": {"shift": 1}})
    assert cases == [([1, 2],), ([5],)]


def test_function_that_fails_for_a_case_has_no_cause():
    def fails(width, height):
        return area(width, height, factor=2) // (height - 1)

    assert cause_in(fails, CASES, area, MISTAKES) == ""


def test_cause_stands_on_a_line_of_its_own():
    for compare in (
        lambda: expect.equal(1, 2, "a sum", cause="one were left out"),
        lambda: expect.that(False, "a sum is 1", cause="one were left out"),
        lambda: expect.close(1.0, 2.0, "a sum", cause="one were left out"),
    ):
        with pytest.raises(expect.Mismatch) as caught:
            compare()
        assert str(caught.value).endswith("\n    it is as if one were left out")


def test_no_line_is_added_without_a_cause():
    with pytest.raises(expect.Mismatch) as caught:
        expect.equal(1, 2, "a sum", cause="")
    assert str(caught.value) == "a sum: is 1, expected 2"
