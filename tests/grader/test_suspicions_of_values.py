"""What a wrong value gives away by itself, and how it is told."""

from __future__ import annotations

import pytest
import torch

from workshop.grader import expect
from workshop.grader.verdicts.classics.values import of_values


def guess(actual, expected, own=None, world=4):
    a, e = torch.as_tensor(actual).double(), torch.as_tensor(expected).double()
    wrong = ~torch.isclose(a, e)
    norm = float((e * e).sum())
    scale = float((a * e).sum()) / norm if norm else None
    if scale is not None and not torch.allclose(a, scale * e):
        scale = None
    return of_values(a, e, own, wrong, scale, world)[1]


def test_values_give_the_mistake_away():
    e = [1.0, -2.0, 3.0, 5.0]
    assert guess([4 * x for x in e], e) == "not_averaged"
    assert guess([x / 4 for x in e], e) == "averaged_twice"
    assert guess([-x for x in e], e) == "opposite"
    assert guess([0.0] * 4, e) == "zero"
    assert guess([x * 1.7 for x in e], e) == ""
    assert guess([5.0, 3.0, -2.0, 1.0], e) == "other_order"
    own = torch.tensor([7.0, 7.0, 8.0, 9.0]).double()
    assert guess(own, e, own) == "not_communicated"
    assert guess([[1.0, 2.0]] * 4, [[4.0, 3.0], [8.0, 1.0], [9.0, 2.0], [1, 2]]) == (
        "all_slots_equal"
    )
    five = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert guess([1.0, 2.0, 3.0, 4.0, 9.0], five) == "remainder"
    assert guess([9.0, 2.0, 3.0, 4.0, 5.0], five) == ""


def test_nothing_was_divided_where_nothing_is_averaged():
    e = torch.tensor([1.0, -2.0, 3.0, 5.0]).double()
    for scale, told in ((4.0, "is 4 times"), (0.25, "is 0.25 times")):
        facts = scale * e, e, None, e != 0, scale, 4
        assert of_values(*facts)[1] in ("not_averaged", "averaged_twice")
        text, key = of_values(*facts, averages=False)
        assert (key, text.startswith(told)) == ("", True)


def test_sums_in_a_shorter_dtype_are_slightly_off():
    e = torch.tensor([1.0, 1e-4, 3.0, 5.0]).double() / 3
    a = e.float().double()
    facts = a, e, None, a != e, None, 4
    assert of_values(*facts) == (
        "is slightly off, as if rounded or computed in a shorter dtype",
        "",
    )


def test_large_whole_numbers_lose_digits_in_float32_alone():
    e = torch.tensor([2**40 + 8, 2**40 + 131_072, 3]).double()
    for a, told in ((e.float().double(), "is slightly off"), (e + 1, "")):
        text, key = of_values(a, e, None, a != e, 1.0, 4)
        assert (key, text[:15]) == ("", told)


def test_a_gradient_that_is_none_lacks_no_return():
    for what, told in (("the loss", "`return`"), ("a.grad", "emptied")):
        with pytest.raises(expect.Mismatch, match="is None") as caught:
            expect.close(None, 1.0, what)
        assert told in str(caught.value)


def test_a_changed_input_is_told_as_such_and_no_dropped_remainder():
    before = torch.arange(10.0)
    changed = torch.cat([before[:8], -before[8:]])
    expect.unchanged(before.clone(), before, "the input")
    with pytest.raises(expect.Mismatch, match="changed: work on a copy") as caught:
        expect.unchanged(changed, before, "the input")
    assert caught.value.suspicion == ""


def test_a_view_is_no_tensor_of_its_own():
    whole = torch.arange(10.0)
    expect.own_memory(whole[:5].clone(), whole, "bias")
    for shared in (whole, whole[:5], whole.detach()[5:]):
        with pytest.raises(expect.Mismatch, match="bias shares its memory"):
            expect.own_memory(shared, whole, "bias")


def test_a_missing_gradient_is_no_missing_return():
    tensor = torch.zeros(2)
    with pytest.raises(expect.Mismatch, match="weight got no gradient") as caught:
        expect.gradient(tensor, tensor, "weight")
    assert caught.value.suspicion == ""


def test_nothing_is_written_into_a_plain_number():
    with pytest.raises(expect.Mismatch, match=r"got 0, expected 0\.5") as caught:
        expect.close(0.0, 0.5, "the rate")
    assert caught.value.suspicion == ""
    with pytest.raises(expect.Mismatch) as caught:
        expect.close(torch.zeros(2), torch.ones(2), "the buffer")
    assert caught.value.suspicion == "zero"


def test_numbers_of_python_are_compared_to_the_last_of_their_digits():
    expect.close(torch.tensor(0.1, dtype=torch.float64), 0.1, "a tenth")
    expect.close([0.1, 0.2], torch.tensor([0.1, 0.2], dtype=torch.float64), "both")
    with pytest.raises(expect.Mismatch):
        expect.close(0.1 + 1e-9, 0.1, "a tenth")
    with pytest.raises(expect.Mismatch, match="is the sum"):
        third = torch.tensor(1 / 3, dtype=torch.float64)
        expect.close(third, 7.0, "it", mistaken={"the sum": 1 / 3})


def test_two_numbers_are_written_so_that_they_differ():
    words = r"got 0\.123456789, expected 0\.123456788"
    with pytest.raises(expect.Mismatch, match=words):
        expect.close(0.123456789, 0.123456788, "the rate")
    with pytest.raises(expect.Mismatch, match=r"got 0\.123457, expected 0\.2"):
        expect.close(0.123456789, 0.2, "the rate")
