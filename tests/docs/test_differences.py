"""Differences between programs are short, or folded and without imports."""

import difflib
import sys

import pytest

from tests.docs.pages import ROOT, Directive, all_directives, directives

sys.path[:0] = [str(ROOT / "docs" / "_ext")]
pytest.importorskip("sphinx", reason="the site needs Sphinx: make site brings it")
shown_difference = pytest.importorskip("differences")

MOST = 40  # lines of a difference that a page shows without a fold
MOST_NEW = 90  # lines that a training script may add to the one before
LATER = {
    "04_data_parallel.py",
    "05_ddp_spawn.py",
    "06_checkpoint.py",
    "07_torchrun.py",
    "08_multinode_spawn.py",
}
DIFFERENCES = [
    listing for listing in all_directives("literalinclude") if "diff" in listing.options
]
TRAININGS = [
    listing
    for listing in DIFFERENCES
    if "data.parse_training" in listing.file.read_text(encoding="utf-8")
]


def difference(before: str, after: str) -> str:
    texts = (text.splitlines() for text in (before, after))
    return "\n".join(difflib.unified_diff(*texts, "a.py", "b.py", lineterm=""))


def lines_of(listing: Directive) -> list[str]:
    """The lines of a difference, before the page leaves any out."""
    before = (listing.page.parent / listing.options["diff"]).resolve()
    texts = [path.read_text(encoding="utf-8") for path in (before, listing.file)]
    return difference(*texts).splitlines()


def folded(listing: Directive) -> bool:
    """Whether a reader has to open a box to see it."""
    boxes = [box for box in directives(listing.page) if "collapsible" in box.options]
    return any(listing.options["diff"] in line for box in boxes for line in box.body)


@pytest.mark.parametrize("listing", DIFFERENCES, ids=lambda x: x.file.name)
def test_difference_over_40_lines_is_folded(listing):
    """A page may fold a short one as well, if it shows the pieces itself."""
    shown = lines_of(listing)
    assert folded(listing) or len(shown) <= MOST, (
        f"{listing.place}: the difference to {listing.file.name} has {len(shown)} "
        f"lines: put what has more than {MOST} into a box with :collapsible: closed"
    )


@pytest.mark.parametrize("listing", TRAININGS, ids=lambda x: x.file.name)
def test_training_script_adds_little_to_the_one_before(listing):
    new = [line for line in lines_of(listing)[2:] if line[0] == "+" and line != "+"]
    assert 0 < len(new) <= MOST_NEW, "\n".join(new)


def test_every_training_script_is_shown_as_a_difference():
    shown = {listing.file.name for listing in TRAININGS}
    assert shown >= LATER, f"no page compares {sorted(LATER - shown)}"


# What a long one leaves out

BEFORE = '''"""One device."""

import torch
from torch import nn


def train(model):
    """Train."""
    one = 1
    two = 2
    three = 3
    return model(one, two, three)
'''
AFTER = '''"""Many devices,
and many nodes.
"""

import torch
import torch.distributed as dist
from torch import (
    nn,
)


def train(model):
    """Train on all."""
    one = 1
    two = 2
    three = 3
    return model(one, two, three, dist)
'''


def test_imports_docstrings_and_what_is_empty_then_are_left_out():
    assert shown_difference.essential(
        difference(BEFORE, AFTER), BEFORE, AFTER
    ).splitlines() == [
        "--- a.py",
        "+++ b.py",
        "@@ -9,4 +14,4 @@",
        "     one = 1",
        "     two = 2",
        "     three = 3",
        "-    return model(one, two, three)",
        "+    return model(one, two, three, dist)",
    ]


def test_page_says_what_its_long_differences_leave_out(site):
    assert shown_difference.LONG == MOST
    page = (site / "docs/lessons/05_ddp_spawn/2_wrap.html").read_text(encoding="utf-8")
    short, long = page.split("+++ src/05_ddp_spawn.py")
    listing = long[: long.index("</pre>")]
    assert "init_process_group" in listing and "import " not in listing
    assert shown_difference.LEFT_OUT in long[: long.index("</details>")]
    assert shown_difference.LEFT_OUT not in short
