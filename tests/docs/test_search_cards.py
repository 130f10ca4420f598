"""The site's search shows cards of the base above its results, from a file."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from tests.docs.pages import site_pages

SCRIPTS = ("js/knowledge.js", "js/known-lines.js")


def test_only_pages_that_search_load_the_base(site):
    loading = {
        path.relative_to(site).as_posix()
        for path in site_pages(site)
        if any(name in path.read_text(encoding="utf-8") for name in SCRIPTS)
    }
    assert loading == {"search.html", "docs/lessons/19_when_it_breaks/1_find.html"}


@pytest.fixture(scope="module")
def results(browser, site):
    """The search page with an answer, opened from a file."""
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    def ask(question: str):
        page.goto(f"file://{site}/search.html?q={quote(question)}")
        page.wait_for_load_state("load")
        return page.locator("section.known-failures")

    yield ask
    page.close()
    # Sphinx shows excerpts of pages by fetch(), which needs a server
    assert [text for text in errors if "Failed to fetch" not in text] == []


def test_line_of_a_log_shows_its_card_above_the_results(results, site):
    cards = results("RuntimeError: CUDA error: invalid device ordinal")
    link = cards.locator("li a").first
    assert "invalid device ordinal" in link.inner_text()
    page, _, row = link.get_attribute("href").partition("#")
    assert f'id="{row}"' in (site / page).read_text(encoding="utf-8")
    below = cards.evaluate("(one) => one.nextElementSibling.id")
    assert below == "search-results"


def test_words_of_a_lessons_row_lead_to_the_lesson(results, site):
    link = results("every line is printed N times").locator("li a").first
    page, _, row = link.get_attribute("href").partition("#")
    assert page.startswith("docs/lessons/05_ddp_spawn/")
    assert f'id="{row}"' in (site / page).read_text(encoding="utf-8")


def test_healthy_line_is_told_as_one_without_cards(results):
    cards = results("[W1126 10:00:00.123 socket.cpp:752] [c10d] qqq zzz")
    assert "Healthy runs print this line, too." in cards.inner_text()
    assert cards.locator("li").count() == 0


@pytest.mark.parametrize("question", ["", "zzz qqq", "no"])
def test_nothing_is_shown_where_nothing_is_known(results, question):
    assert results(question).count() == 0


def test_angle_brackets_of_a_question_stay_text(results):
    cards = results("<img src=x onerror=alert(1)> EADDRINUSE")
    assert cards.locator("img").count() == 0
    assert re.search("port", cards.inner_text(), re.IGNORECASE)
