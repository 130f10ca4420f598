"""Sequences cut over ranks (lesson 21): attention, training, bytes and work."""

from pathlib import Path

import pytest

from tests.in_ranks import assert_right, every_check_in

pytestmark = pytest.mark.full


@pytest.mark.nightly
@every_check_in(Path(__file__).resolve().parent / "ranks_21_sequences.py")
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))
