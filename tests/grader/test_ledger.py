"""What the ledger of a rank records; verdicts that come of it: test_verdicts.py."""

from pathlib import Path

from tests.in_ranks import assert_right, every_check_in


@every_check_in(Path(__file__).with_name("ranks_ledger.py"))
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))
