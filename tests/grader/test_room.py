"""``workshop grade --html --watch``: a page for the room, true while people work."""

from __future__ import annotations

import contextlib
import re
import signal
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.grader.small_house import (
    NAMES,
    PATIENCE,
    graded,
    start,
    workshop,
    write,
)
from tests.launched import wait_until
from workshop.catalog import Exercise
from workshop.classroom.book import Cell, Gradebook, Row
from workshop.classroom.pool import grade_all
from workshop.classroom.report import to_html
from workshop.classroom.room import classics, common_mistakes, place, verdicts
from workshop.learner.display import Screen

PARTLY = "not fully checked"
CLASSIC = "wrong value: the sum\n  rank 0: is 3\n  looks like: a sum, not a mean"


def a_book(**learners):
    """``a_book(ada=["right", "", CLASSIC])``: a message is that of a wrong answer."""
    catalog = [
        Exercise(Path("/house"), name, "Add", "01_lesson", 5, 1, ()) for name in NAMES
    ]
    rows = []
    for learner, told in learners.items():
        cells = []
        for exercise, message in zip(catalog, told, strict=True):
            known = {"right": "right", "": "not started", PARTLY: PARTLY}
            status = known.get(message, "wrong")
            verdict = message.partition(":")[0] if status == "wrong" else status
            cells.append(Cell(exercise, b"", status, verdict, message))
        rows.append(Row(learner, Path("/class") / learner, cells))
    return Gradebook(catalog, rows)


class Texts(HTMLParser):
    """The tags, and the texts in cells of tables."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self.scripts = [], [], 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data.strip()


CLASS = a_book(
    ada=["right", CLASSIC, ""],
    bob=["right", CLASSIC, ""],
    cem=["hang: rank 1 waits", "", "wrong value: the mean"],
    dot=["", "", ""],
)


def test_mistakes_are_counted_and_the_most_frequent_comes_first():
    found = common_mistakes(CLASS)
    assert found[0] == ("02_two", "wrong value", "a sum, not a mean", ["ada", "bob"])
    assert [one.exercise for one in found[1:]] == ["01_one", "03_three"]
    assert found[1].text == "rank 1 waits"
    assert verdicts(CLASS) == [("wrong value", 3), ("hang", 1)]
    assert classics(CLASS) == [("a sum, not a mean", 2)]


def test_a_mistake_is_told_without_the_ranks_that_made_it():
    way = "wrong way: ranks 0, 1 and 2: all_reduce twice"
    value = "wrong value: the loss\n  rank 1: is the sum; got 3.5, expected 2 at [0]"
    book = a_book(
        ada=[way, value, ""], bob=[way.replace("ranks 0, 1 and 2", "rank 3"), "", ""]
    )
    found = [(one.text, one.learners) for one in common_mistakes(book)]
    expected = [("all_reduce twice", ["ada", "bob"]), ("the loss is the sum", ["ada"])]
    assert found == expected
    mean = a_book(ada=["wrong value: the mean\n  rank 1: got 3.5, expected 2", "", ""])
    assert common_mistakes(mean)[0].text == "the mean has another value"


def test_the_place_of_a_learner_is_the_last_exercise_begun():
    names = [place(row) and place(row).exercise.name for row in CLASS.rows]
    assert names == ["02_two", "02_two", "03_three", None]


def test_the_page_has_a_row_per_learner_and_what_nobody_began_is_left_out():
    shown = Texts(to_html(CLASS, live=False, clock="09:00:00")).cells
    ada = shown.index("ada")
    assert shown[ada : ada + 6] == ["ada", "1", "02_two wrong value", "✓", "✗", ""]
    early = a_book(ada=["right", "", ""], bob=["", "", ""])
    page = to_html(early, live=False, clock="09:00:00")
    assert "No one has started the other 2 exercises." in page
    assert "03_three" not in page and "No answer is wrong." in page


def test_what_could_not_be_tried_has_a_sign_and_a_color_of_its_own():
    book = a_book(ada=["right", PARTLY, ""])
    page = to_html(book, live=False, clock="10:00")
    assert "1 right" in page and "1 not fully checked" in page
    assert f'<td class="cell partial" title="{PARTLY}">~</td>' in page
    assert "~ right as far as this machine could try it" in page


def test_what_learners_chose_is_escaped_everywhere():
    evil = "<b>x</b><script>alert(1)</script>\"'&"
    book = a_book(**{evil: [f"hang: {evil}", f"{evil}: {evil}", ""]})
    book.rows[0].remarks.append(evil)
    found = Texts(to_html(book, live=False, clock="09:00:00"))
    assert "b" not in found.tags and "script" not in found.tags
    assert evil in found.cells
    titles = re.findall(r'title="([^"]*)"', to_html(book, live=False, clock=""))
    assert len(titles) == 2, "a quotation mark ended an attribute"


def test_the_same_grades_give_the_same_page_and_only_a_live_one_reloads():
    pages = {to_html(CLASS, live=True, clock="09:00:00") for _ in range(3)}
    assert len(pages) == 1
    assert "location.reload()" in pages.pop()
    assert "reload" not in to_html(CLASS, live=False, clock="09:00:00")


# -- the command -----------------------------------------------------------------------
@pytest.fixture
def lesson(tmp_path):
    """Two learners' folders, one with a name that HTML would read as a tag."""
    folder = tmp_path / "class"
    for learner, orders in {"<b>x": ("right", "wrong"), "ada": ("wrong",)}.items():
        (folder / learner).mkdir(parents=True)
        for name, order in zip(NAMES, orders, strict=False):
            (folder / learner / f"{name}.py").write_text(f"# play: {order}\n")
    return folder


def test_html_is_one_of_the_outputs(house, lesson):
    result = workshop(house, "grade", "--each", str(lesson), "--html", "room.html")
    assert result.returncode == 0, result.stderr
    found = Texts((house / "room.html").read_text())
    x = found.cells.index("<b>x")
    assert found.cells[x + 1 : x + 5] == ["1", "02_two wrong value", "✓", "✗"]
    assert "script" not in found.tags, "grading has ended: the page need not reload"
    refused = workshop(house, "grade", "--each", str(lesson), "--watch")
    assert refused.returncode == 2 and "add --html" in refused.stderr


def test_watch_grades_again_what_changes_until_it_is_interrupted(house, lesson):
    page = house / "room.html"
    words = ("grade", "--each", str(lesson), "--html", "room.html", "--watch")
    process = start(house, *words)

    def shows(text):
        assert process.poll() is None, process.communicate()
        return page.exists() and text in page.read_text()

    try:
        wait_until(lambda: shows("1 right, 2 wrong"))
        wait_until(lambda: not shows("to grade"))
        write(lesson / "ada" / f"{NAMES[0]}.py", "# play: right\n")
        wait_until(lambda: shows("2 right, 1 wrong"))
        (lesson / "bob").mkdir()
        write(lesson / "bob" / f"{NAMES[1]}.py", "# play: right\n")
        wait_until(lambda: shows("3 learners, 3 right"))
        assert "location.reload()" in page.read_text()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 130
    told = "workshop: stopped watching; their results are in room.html"
    assert errors.splitlines() == [told]
    assert "graded again: ada" in output and "graded again: bob" in output
    assert "location.reload()" not in page.read_text()
    begun = [line for line in graded(house) if line.startswith("begin")]
    assert len(begun) == 5, f"only what changed is graded again: {begun}"


class StoppedWhileWriting:
    """Outputs; Ctrl-C comes while the last results are written."""

    def write(self, book, now=False):
        if now:
            signal.raise_signal(signal.SIGINT)


def test_interruption_in_the_last_moment_of_a_round_is_not_lost():
    """Else a watch would go on, and its second Ctrl-C is an impatient one."""
    nobody = Gradebook([], [])
    engine = contextlib.nullcontext
    assert not grade_all(nobody, engine, 1, StoppedWhileWriting(), Screen, table=False)
