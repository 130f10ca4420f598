"""The search of lesson 19: a pasted line finds its card, by keyboard, on a phone."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tests.docs import playing
from tools import transcripts
from tools.transcript_catalog import load_catalog, load_gallery

PAGE = "docs/lessons/19_when_it_breaks.html"
GALLERY = load_gallery()
FOUND = """(player) => [...player.querySelectorAll(".found a")].map(
  (link) => link.hash.slice("#failure-".length).replaceAll("-", "_"))"""


@pytest.fixture(scope="module")
def search(browser, site):
    """The search on its page, loaded once."""
    player = playing.Player(browser, site, "failure-search", PAGE)
    yield player
    player.close()


def found(search, line: str) -> list[str]:
    """The names of the failures that the search shows for a line, best first."""
    search.control("A line of your log, or what you see").fill(line)
    return search.frame.evaluate(FOUND)


def test_everybody_can_use_it(search):
    found(search, "time-out")
    search.check_everywhere()


def test_each_failure_is_a_card_with_its_name_as_address(search):
    cards = search.page.locator("details.failure")
    ids = cards.evaluate_all("(cards) => cards.map((card) => card.id)")
    assert set(ids) == {f"failure-{name.replace('_', '-')}" for name in GALLERY}
    assert search.page.evaluate("document.querySelectorAll('[id]').length") == len(
        search.page.evaluate(
            "[...new Set([...document.querySelectorAll('[id]')].map((e) => e.id))]"
        )
    )


def test_expressions_mean_the_same_in_the_browser(search):
    """Each expression of the catalog on each recorded line."""
    messages = [m for failure in GALLERY.values() for m in failure.messages]
    recorded = [transcripts.body(load_catalog()[f"19_{name}"]) for name in GALLERY]
    lines = sorted(set("".join(recorded).splitlines()))
    here = [[m for m in messages if re.search(m, line)] for line in lines]
    there = search.page.evaluate(
        "([lines, all]) => lines.map((line) => play.formulas.matching(line, all))",
        [lines, messages],
    )
    assert any(here) and here == there


ERROR = re.compile(r"(\[rank\d\]: )?[\w.]*(Error|Exception)\b: .|.*(ERROR|\[E\d{4}) ")
LATER = "That only says that "  # another rank, or a process, has failed


@pytest.mark.parametrize("name", [n for n, one in GALLERY.items() if one.messages])
def test_every_error_of_its_recording_finds_a_failure(search, name):
    """Or is said to be a consequence: at least one of its lines is none."""
    text = transcripts.body(load_catalog()[f"19_{name}"])
    known = [m for m in GALLERY[name].messages if re.search(m, text, re.M)]
    lines = {line for line in text.splitlines() if ERROR.match(line)}
    lines |= {line for line in text.splitlines() if re.search(known[0], line)}
    finds = {line: found(search, line) or search.words for line in lines}
    own = [line for line, names in finds.items() if name in names]
    rest = {line: names for line, names in finds.items() if line not in own}
    assert own and all(str(names).startswith(LATER) for names in rest.values()), rest


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (
            "RuntimeError: CUDA error: device-side assert triggered",
            "device-side assert",
        ),
        ("CUDA error: invalid device ordinal", "invalid device ordinal"),
        (
            "ncclInvalidUsage: Duplicate GPU detected : rank 1 and rank 0",
            "Duplicate GPU",
        ),
    ],
)
def test_line_of_a_table_is_found_first_and_opened(search, line, row):
    found(search, line)
    link = search.frame.locator("a").first
    assert row in link.inner_text()
    link.click()
    cell = search.page.locator(f'td:has-text("{row}")').first
    assert cell.is_visible()


def test_line_that_nothing_here_explains_finds_nothing(search):
    assert found(search, "Expected to mark a variable ready only once") == []
    assert found(search, "Default process group has not been initialized") == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("[rank3]: ... message: address already in use", "port_in_use"),
        ("The port is taken", "port_in_use"),
        ("one rank has more batches", "unequal_batches"),
        ("environment variable WORLD_SIZE expected, but not set", "environment_lost"),
    ],
)
def test_message_or_words_find_the_failure_first(search, line, name):
    assert found(search, line)[:1] == [name]
    kind = "that message" if ":" in line or "," in line else "these words"
    assert search.words.endswith(f"with {kind}.")


def test_unknown_words_get_a_sentence_and_no_list(search):
    assert found(search, "zzz qqq") == []
    assert search.words == "No failure here has these words. Try other words."


@pytest.mark.parametrize("reason", ["Connection closed by peer", "SIGTERM"])
def test_consequence_of_another_ranks_end_is_no_failure_of_its_own(search, reason):
    assert found(search, f"RuntimeError: {reason} [127.0.0.1]:2997") == []
    assert search.words.startswith("That only says that another rank has left.")


def test_expression_characters_are_plain_text(search):
    assert isinstance(found(search, "a(b[c*"), list)
    assert not search.errors


def test_enter_opens_the_first_card_and_its_address_opens_it_again(search):
    page = search.page
    card = page.locator("#failure-port-in-use")
    card.evaluate("(card) => (card.open = false)")
    found(search, "EADDRINUSE")
    search.press("A line of your log, or what you see", "Enter")
    assert card.evaluate("(card) => card.open")
    assert page.url.endswith("#failure-port-in-use")
    page.reload()
    page.wait_for_selector("failure-search[data-ready]")
    assert card.evaluate("(card) => card.open")


def test_card_that_is_opened_by_hand_gives_its_address(search):
    summary = search.page.locator("#failure-send-send > summary")
    summary.click()
    assert search.page.url.endswith("#failure-send-send")


# What the page says


def test_a_rank_waits_for_half_an_hour_by_default():
    from torch.distributed.constants import default_pg_timeout

    assert default_pg_timeout == timedelta(milliseconds=1_800_000)


def test_two_ranks_of_the_first_card_wait_at_two_lines():
    text = transcripts.body(load_catalog()["19_only_rank_0_reduces"])
    lines = re.findall(r'^\[rank(\d)\]:   File "gallery/.* line (\d+)', text, re.M)
    assert len(lines) == 2 and len(set(lines)) == 2
    assert len({line for _, line in lines}) == 2
