"""The cheat sheet says what the lessons say, and prints on two pages of A4."""

import re

import pytest

from tests.docs import pages
from tests.docs.pages import ROOT, directives, lesson_source
from workshop.lesson_pages import page_text

SHEET = ROOT / "docs" / "cheat_sheet.rst"
TEXT = page_text(SHEET)
SEEN = re.compile(r"\(:ref:`see it fail <[^)]+>`\)")  # on paper there is no link
LESSONS = {
    name[:2]: " ".join(SEEN.sub("", lesson_source(name)).split())
    for name in pages.LESSONS
}
ROW = re.compile(
    r"^   \* - (.*?)\n     - (.*?)\n     - (.*?)(?=\n   \* -|\n\n|\Z)", re.M | re.S
)
FAILURES, SENT, STORED = TEXT.split(".. list-table::")[1:]


def rows(table: str) -> list[list[str]]:
    """The cells of each row below the headings, a line each."""
    return [[" ".join(cell.split()) for cell in row] for row in ROW.findall(table)][1:]


def commands() -> list[str]:
    blocks = [box for box in directives(SHEET) if box.name == "code-block"]
    return [" ".join(" ".join(block.body).split()) for block in blocks]


def test_commands_are_those_of_the_lessons_and_job_scripts():
    scripts = [path.read_text("utf-8") for path in (ROOT / "job_scripts").glob("m*")]
    known = [*LESSONS.values(), *(" ".join(text.split()) for text in scripts)]
    assert len(commands()) == 5
    for command in commands():
        line = command.removeprefix("$ ")
        assert any(line in text for text in known), f"no lesson has {line}"


def test_recipe_for_gpus_imports_what_it_needs():
    recipe = (ROOT / "docs/examples/05_five_lines.py").read_text("utf-8")
    assert "import os" not in recipe
    assert "On GPUs, ``import os`` and call ``torch.cuda.set_device(int(os." in TEXT


def test_each_of_the_ten_failures_is_a_row_of_a_lesson():
    assert len(rows(FAILURES)) == 10
    for cells in rows(FAILURES):
        row = f"* - {' - '.join(cells)}"
        assert any(row in text for text in LESSONS.values()), f"no lesson has {row}"


@pytest.mark.parametrize("cells", [*rows(SENT), *rows(STORED)], ids=lambda c: c[0])
def test_each_formula_is_in_the_lesson_that_the_row_names(cells):
    _, formula, lesson = cells
    tex = re.match(r":math:`(.+?)`", formula)[1]
    number = re.fullmatch(r":ref:`(\d\d) <lesson-\1>`", lesson)[1]
    assert tex in LESSONS[number], f"lesson {number} doesn't have {tex}"


@pytest.mark.full
def test_two_pages_of_a4_when_printed(page):
    page.goto("docs/cheat_sheet.html")
    printed = page.pdf(prefer_css_page_size=True)
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed)
    assert len(re.findall(rb"/Type /Page\b", printed)) == 2
    assert {(round(float(w)), round(float(h))) for w, h in sizes} == {(595, 842)}


@pytest.mark.full
def test_hints_answers_and_diffs_stay_folded_in_print(page):
    page.emulate_media(media="print")
    page.goto("docs/lessons/05_ddp_spawn/2_wrap.html")
    boxes = page.locator("details.admonition")
    titles = boxes.locator("> summary").all_inner_texts()
    for kind in ("Hint 1", "Solution", "Answer", "The diff"):
        assert any(title.startswith(kind) for title in titles), kind
    unfolded = boxes.evaluate_all(
        "all => all.filter(box => box.open || [...box.children].slice(1)"
        ".some(part => part.checkVisibility())).map(box => box.innerText)"
    )
    answers = ("Hint", "Solution", "Answer", "The diff")
    assert [text for text in unfolded if text.startswith(answers)] == []
    assert len(unfolded) < len(titles)
