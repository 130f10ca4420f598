"""What the grader says of classic mistakes leads to pages that explain them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grader import expect
from grader.verdicts.suspicion import CLASSICS, of_exception, of_values

ROOT = Path(__file__).resolve().parents[2]


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


def test_every_key_in_the_code_is_a_classic():
    code = "".join(path.read_text() for path in (ROOT / "grader").rglob("*.py"))
    returned = set(re.findall(r'return (?:f?"[^"]*", )?"([a-z_]+)"', code))
    keys = {key for key in returned if "_" in key and key not in ("not_started",)}
    assert keys - {"os_fork"} <= set(CLASSICS), keys - set(CLASSICS)


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


def test_exceptions_give_the_mistake_away():
    assert of_exception("EOFError", "EOF when reading a line") == "keyboard"
    assert of_exception("ValueError", "Global rank 0 is not part of group") == (
        "group_rank"
    )
    assert of_exception("ValueError", "bad") == ""


@pytest.mark.cold("what is imported is the subject")
def test_reading_verdicts_needs_no_torch():
    code = "import sys, grader.engine.engine, grader.commands.cli; "
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_numbers_of_python_are_compared_to_the_last_of_their_digits():
    expect.close(torch.tensor(0.1, dtype=torch.float64), 0.1, "a tenth")
    expect.close([0.1, 0.2], torch.tensor([0.1, 0.2], dtype=torch.float64), "both")
    with pytest.raises(expect.Mismatch):
        expect.close(0.1 + 1e-9, 0.1, "a tenth")
    with pytest.raises(expect.Mismatch, match="is the sum"):
        third = torch.tensor(1 / 3, dtype=torch.float64)
        expect.close(third, 7.0, "it", mistaken={"the sum": 1 / 3})
