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
        and "data.parse_training" in listing.file.read_text(encoding="utf-8")
    ]


def added_lines(listing: Directive) -> list[str]:
    """The lines that the page shows in green."""
    before = (listing.page.parent / listing.options["diff"]).resolve()
    texts = [
        path.read_text(encoding="utf-8").splitlines() for path in (before, listing.file)
    ]
    shown = list(difflib.unified_diff(*texts, lineterm=""))[2:]
    return [line for line in shown if line.startswith("+") and line.strip() != "+"]


def folded(listing: Directive) -> bool:
    """Whether a reader has to open a box to see it."""
    boxes = [box for box in directives(listing.page) if "collapsible" in box.options]
    return any(listing.options["diff"] in line for box in boxes for line in box.body)


@pytest.mark.parametrize("listing", differences(), ids=lambda x: x.file.name)
def test_difference_to_the_script_before_is_folded_if_it_is_long(listing):
    """A page may fold a short one as well, if it shows the pieces itself."""
    added = added_lines(listing)
    assert 0 < len(added) <= 2 * MOST
    assert folded(listing) or len(added) <= MOST, (
        f"{listing.place}: {len(added)} lines are new in {listing.file.name}: fold "
        f"what has more than {MOST}:\n" + "\n".join(added)
    )


def test_every_training_script_is_shown_as_a_difference():
    shown = {listing.file.name for listing in differences()}
    assert shown >= LATER, f"no page compares {sorted(LATER - shown)}"
