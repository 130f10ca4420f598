"""What the ledger of a rank records; verdicts that come of it: test_verdicts.py."""

from pathlib import Path

import pytest
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from tests.in_ranks import assert_right, every_check_in
from workshop.grader.ledger.ledger import Ledger


@every_check_in(Path(__file__).with_name("ranks_ledger.py"))
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


@pytest.mark.parametrize(
    "call, modes",
    {
        "dist.all_reduce(sums)": 0,
        "dist.all_reduce(sums, async_op=True)": 1,
        "dist.all_reduce(sums, SUM, None, True)": 1,
        "dist.isend(row, 1)": 1,
        "P2POp(dist.irecv, row, 1)": 1,
    }.items(),
)
def test_operators_are_slow_only_where_a_work_may_be_begun(call, modes, tmp_path):
    """A mode of torch that calls Python for each of them is on for these alone."""
    exercise = tmp_path / "exercise.py"
    exercise.write_text(f"def step(sums, row):\n    {call}\n")
    with Ledger(str(exercise)):
        assert len(_get_current_dispatch_mode_stack()) == modes
    assert not _get_current_dispatch_mode_stack()
