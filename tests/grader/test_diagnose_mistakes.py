"""mistakes.toml: rows of the lessons' tables, each on a page and in the diagnosis."""

from __future__ import annotations

import re

import pytest

from tests.grader.test_diagnose import ROOT, written
from workshop.common_mistakes import (
    DIRECTIVE,
    FOLDER,
    SHEET,
    load_mistakes,
    plain,
    rows_of,
    table,
    written_out,
)
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed, is_consequence

MISTAKES = load_mistakes()
KNOWN = {cause.name: cause for cause in load(ROOT)}
CARDS = {name for cause in KNOWN.values() for name in cause.gallery}
PAGES = {
    path.relative_to(ROOT / FOLDER).with_suffix("").as_posix(): path.read_text("utf-8")
    for path in sorted((ROOT / FOLDER).glob("*/*.rst"))
}
# code of a symptom that a program prints, rather than a name or a state
PRINTED = re.compile(
    r"Error\b|EADDR|Expected |Missing key|timed? out|closed by peer|has no|must be|"
    r"refused|arguments|does not|contains|unbound|not set|slots|could not|unable|"
    r"Unable|twice|second time|Cannot|do not|can only|has not been|has no|mixed|"
    r"another job|from scratch|predicts|implicitly"
)


def printed(mistake) -> list[str]:
    """The error lines of a symptom, as far as the page shows them."""
    codes = re.findall(r"``(.+?)``", mistake.symptom)
    return [code for code in codes if PRINTED.search(code)]


# alone they prove nothing; the search shows what they may be
FRAGMENTS = {"Connection refused", "Connection refused, remote=[127.0.0.1]"}
WITH_LINES = [one for one in MISTAKES if printed(one)]


def test_each_row_is_on_the_page_of_a_lesson_and_nowhere_else():
    shown = {
        page: found["which"]
        for page, text in PAGES.items()
        for found in DIRECTIVE.finditer(text)
    }
    assert shown == {one.page: one.lesson for one in MISTAKES}
    assert len(MISTAKES) >= 148


def test_no_page_types_a_table_of_common_mistakes():
    """Move its rows into mistakes.toml, and put the directive in its place."""
    head = re.compile(r"^   \* - (?:Symptom|What you see)\n +- (?:Cause|Why)\n", re.M)
    typed = [page for page, text in PAGES.items() if head.search(text)]
    assert not typed


def test_each_row_has_an_address_of_its_own():
    rows = [one.row for one in MISTAKES]
    assert sorted(set(rows)) == sorted(rows)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.row)
def test_what_a_row_names_is_known(mistake):
    """The cause, each failure that it links to, and what its page says of code."""
    assert not mistake.known or mistake.known in CARDS | set(KNOWN), mistake.known
    text = f"{mistake.symptom} {mistake.cause} {mistake.cure}"
    assert set(re.findall(r"<failure-(\w+)>", text)) <= CARDS
    for cell in (mistake.symptom, mistake.cause, mistake.cure):
        assert cell == " ".join(cell.split()) and cell
        assert "``" not in plain(cell) and ":ref:" not in plain(cell)


@pytest.mark.parametrize("mistake", WITH_LINES, ids=lambda one: one.row)
def test_error_line_of_a_row_is_found_by_the_diagnosis(mistake, tmp_path):
    for number, line in enumerate(printed(mistake)):
        log = written(tmp_path, f"step {number}\n{line}\n")
        found = candidates(load(ROOT), log, first_failed(log))
        assert found or is_consequence(line) or line in FRAGMENTS, line


def test_rows_without_an_own_message_are_known_elsewhere():
    lacking = [
        one.row for one in WITH_LINES if not (one.messages or one.known or one.sheet)
    ]
    assert not lacking


def test_a_message_of_a_lesson_names_its_page(tmp_path):
    log = written(tmp_path, "grad can be implicitly created only for scalar outputs\n")
    (found,) = candidates(load(ROOT), log, first_failed(log))
    assert found.cause.read.startswith("docs/lessons/04_data_parallel/2_what_it_costs")
    assert found.cause.cure.startswith("Weight its entries")


def test_cheat_sheet_has_ten_rows_without_links():
    assert [one.sheet for one in rows_of(SHEET)] == list(range(1, 11))
    assert "failure-" in table("02") and "failure-" not in table(SHEET)


def test_written_out_page_has_the_rows_where_the_directive_stands():
    directive = ".. common-mistakes:: 20\n   :heads: A, B, C\n"
    text = written_out(f"above\n\n{directive}\nbelow\n")
    above, rows, below = text.partition(table("20", "A, B, C"))
    assert (above, below) == ("above\n\n", "\nbelow\n") and "   * - A\n" in rows


def test_plain_text_has_neither_roles_nor_links():
    text = ":class:`~torch.nn.SyncBatchNorm`, *once* (:ref:`see it fail <failure-x>`)"
    assert plain(text) == "`SyncBatchNorm`, once"
    assert plain(":ref:`the lesson <lesson-01>`") == "the lesson"
