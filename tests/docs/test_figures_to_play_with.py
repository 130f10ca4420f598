"""Figures to play with: formulas equal to the programs', usable by everybody."""

from __future__ import annotations

import random

import pytest

from tests.docs import played, playing

RING = "docs/lessons/03_collectives.html"
RANDOM = 50  # inputs of each formula


@pytest.fixture(scope="module")
def blank(browser):
    """An empty page with all formulas."""
    with playing.blank_page(browser, "ring-player") as page:
        yield page


@pytest.fixture
def playing_with(browser, site):
    """``playing_with(name, page)``: a player on its page, closed in the end."""
    opened = []

    def open_one(name: str, page_name: str) -> playing.Player:
        opened.append(playing.Player(browser, site, name, page_name))
        return opened[-1]

    yield open_one
    for player in opened:
        player.close()


# The ring


def ring_inputs(seed: int):
    """Random (ranks, elements, steps that are done), any number of them or none."""
    dice = random.Random(seed)
    for _ in range(RANDOM):
        ranks = dice.randint(2, 8)
        # at least one element for each chunk, so that chunks have places of their own
        yield ranks, dice.randint(ranks, 100), dice.randint(0, 2 * (ranks - 1))


@pytest.mark.full
def test_the_ring_player_holds_and_sends_what_the_program_does(blank):
    calls = []
    for ranks, elements, steps in ring_inputs(3):
        last_step = 2 * (ranks - 1) - 1
        calls += [
            (played.ring_held, (ranks, steps)),
            (played.ring_sends, (ranks, min(steps, last_step))),
            (played.ring_sent, (ranks, elements, steps)),
        ]
    playing.compare(blank, calls)


@pytest.mark.full
def test_the_ring_player_can_be_stepped_read_and_printed(playing_with):
    player = playing_with("ring-player", RING)
    player.check_everywhere()
    assert "Start" in player.words
    assert "step 1 of 6" in player.press("Next step", "Enter")
    assert "step 2 of 6" in player.press("Step", "ArrowRight")
    assert "step 1 of 6" in player.press("Previous step", "Space")
    end = player.press("Step", "End")
    assert "whole sum" in end and "6/4" in end
    cells = player.frame.locator("td:not(.number)").all_inner_texts()
    assert cells == ["sum"] * 16
    assert player.press("Next step", "Enter") == end, "there is no step after the last"
    assert "Start" in player.press("Ranks", "ArrowRight")
    assert player.frame.locator("tr").count() == 1 + 5
