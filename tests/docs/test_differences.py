"""Each training script is read as a difference to the one before: a short one."""

import difflib

import pytest

from tests.docs.pages import Directive, all_directives, directives

MOST = 45  # lines added or changed, not counting empty ones
LATER = {
    "04_data_parallel.py",
    "05_ddp_spawn.py",
    "06_checkpoint.py",
    "07_torchrun.py",
    "08_multinode_spawn.py",
}


def differences() -> list[Directive]:
    """The listings that show one training script beside another."""
    return [
        listing
        for listing in all_directives("literalinclude")
        if "diff" in listing.options
        and "class Trainer" in listing.file.read_text(encoding="utf-8")
    ]


def added_lines(listing: Directive) -> list[str]:
    """The lines that the page shows in green."""
    before = (listing.page.parent / listing.options["diff"]).resolve()
    texts = [
        path.read_text(encoding="utf-8").splitlines() for path in (before, listing.file)
    ]
    shown = list(difflib.unified_diff(*texts, lineterm=""))[2:]
    return [line for line in shown if line.startswith("+") and line.strip() != "+"]


@pytest.mark.parametrize("listing", differences(), ids=lambda x: x.file.name)
def test_difference_to_the_script_before_is_short(listing):
    added = added_lines(listing)
    assert 0 < len(added) <= MOST, (
        f"{listing.place}: {len(added)} lines are new in {listing.file.name}: let "
        "what the lesson does not teach be the same in both, or move it to a module:\n"
        + "\n".join(added)
    )


def test_every_training_script_is_shown_as_a_difference():
    shown = {listing.file.name for listing in differences()}
    assert shown >= LATER, f"no page compares {sorted(LATER - shown)}"


@pytest.mark.parametrize("listing", differences(), ids=lambda x: x.file.name)
def test_difference_is_not_folded(listing):
    """It is short, and the rest of its page explains it."""
    for box in directives(listing.page):
        if "collapsible" in box.options:
            folded = any(listing.options["diff"] in line for line in box.body)
            assert not folded, f"{listing.place}: unfold the difference"
