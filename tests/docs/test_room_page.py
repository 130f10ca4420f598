"""The page of ``workshop grade --html`` as an instructor has it: opened from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_site_in_browser import AXE, DESKTOP, PHONE
from workshop.catalog import load_catalog
from workshop.classroom.book import Cell, Gradebook, Row
from workshop.classroom.report import to_html

MESSAGES = {
    "right": "",
    "wrong": "wrong value: the gradient\n  looks like: summed, but never divided by N",
    "unreadable": "03_deadlock.py cannot be read: Permission denied",
}
TOO_WIDE = """() => document.documentElement.scrollWidth -
  document.documentElement.clientWidth"""


def a_room(learners=30, begun=20, wrong="wrong") -> Gradebook:
    """Learner n has begun ``begun`` exercises less some; every fifth one is wrong."""
    catalog, rows = load_catalog(ROOT), []
    for learner in range(learners):
        cells = []
        for number, exercise in enumerate(catalog):
            status = "not started" if number > begun - learner % 7 else "right"
            if status == "right" and (number + learner) % 5 == 0:
                status = "unreadable" if learner == number == 15 else wrong
            verdict = {"wrong": "wrong value"}.get(status, status)
            message = MESSAGES.get(status, "")
            cells.append(Cell(exercise, b"", status, verdict, message))
        name = (
            f"learner-with-a-long-name-{learner}" if learner % 9 == 0 else f"u{learner}"
        )
        rows.append(Row(name, Path("/class") / name, cells))
    return Gradebook(catalog, rows)


@pytest.fixture
def room(tmp_path) -> Path:
    path = tmp_path / "room.html"
    path.write_text(to_html(a_room(), live=True, clock="09:00:00"), encoding="utf-8")
    return path


@pytest.mark.nightly
def test_the_page_is_accessible_and_fits_in_light_dark_and_on_a_phone(browser, room):
    package = pytest.importorskip("axe_playwright_python")
    axe = (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    page = browser.new_page(viewport=DESKTOP)
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(room.as_uri())
    page.get_by_role("button", name="Pause reloading").click()
    page.evaluate(axe)
    for scheme, size in (("light", DESKTOP), ("dark", DESKTOP), ("dark", PHONE)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        found = page.evaluate(AXE.replace("PART", "document"), {})
        wide = page.evaluate(TOO_WIDE)
        found += [f"{wide} px wider than the screen"] if wide > 0 else []
        problems += [f"{scheme}, {size['width']} px: {one}" for one in found]
    page.close()
    assert not problems, "\n".join(problems[:10])
    assert set(asked) == {room.as_uri()}, "the page loads something else"


def test_the_page_reloads_itself_until_it_is_paused(browser, room):
    page = browser.new_page()
    page.goto(room.as_uri())
    told = page.get_by_text("Last change")
    assert "Last change 09:00:00" in told.inner_text()
    room.write_text(to_html(a_room(), live=True, clock="09:00:05"), encoding="utf-8")
    page.get_by_text("Last change 09:00:05").wait_for()
    page.get_by_role("button", name="Pause reloading").click()
    page.reload()
    paused = page.get_by_role("button", name="Resume reloading")
    paused.wait_for()  # also after a reload by hand
    ended = to_html(a_room(wrong="right"), live=False, clock="09:00:09")
    room.write_text(ended, encoding="utf-8")
    paused.click()
    page.get_by_text("Grading has ended.").wait_for()
    assert page.get_by_role("button").count() == 0
    page.close()
