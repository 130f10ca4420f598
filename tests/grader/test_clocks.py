"""The clock of checks that ask for time: calls and bytes advance it, nothing else."""

from pathlib import Path

from tests.in_ranks import assert_right, every_check_in
from workshop.grader.clocks import Link


@every_check_in(Path(__file__).with_name("ranks_clocks.py"))
def test_in_ranks(check, verdict_of):
    assert_right(verdict_of(check))


def test_ring_and_tree_have_the_costs_of_the_pages():
    link = Link(alpha=2.0, beta=0.5)
    assert link.collective("all_reduce", 8, 4) == 2 * 3 * (2 + 0.5 * 8 / 4)
    assert link.collective("reduce_scatter_tensor", 8, 4) == 3 * (2 + 0.5 * 8 / 4)
    assert link.collective("all_gather", 8, 4) == 3 * (2 + 0.5 * 8)
    assert link.collective("broadcast", 8, 4) == 2 * (2 + 0.5 * 8)
    assert link.collective("all_reduce", 8, 1) == 0
