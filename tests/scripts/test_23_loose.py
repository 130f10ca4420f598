"""Local and outer steps (lesson 23): parameters, int8 with feedback, bytes sent."""

from pathlib import Path

import pytest

from tests.in_ranks import assert_right, every_check_in

pytestmark = pytest.mark.full


@pytest.mark.nightly
@every_check_in(Path(__file__).resolve().parent / "ranks_23_loose.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))
