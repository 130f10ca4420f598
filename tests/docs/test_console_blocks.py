"""A reader types what a page shows: every command is run, and no set-up is hidden.

A console block of a lesson either holds commands that the recorded transcripts of its
page run (test_transcripts.py types those page after page), or it shows that it is not
for the reader's laptop: it stands under a Slurm or PBS tab, or has a word ``YOUR_...``
to replace. Docker is the exception that has no form: the tests' machines lack it.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import (
    LESSONS,
    Directive,
    directives,
    lesson_directives,
    sources,
)
from tools.transcript_catalog import Entry, load_catalog

CATALOG = load_catalog()
SHELLS = {  # opened once by a reader, and for each command by a transcript
    "workshop cluster run": "workshop cluster shell",
    "python -m workshop.cluster.pbs": "python -m workshop.cluster.pbs bash",
}
STARTS = re.compile(r"workshop (?:cluster up|site)[^&|;\n]*")
OTHERS = [page for page in sources() if "lessons" not in page.parts]


def one_line(command: str) -> str:
    return " ".join(command.replace("\\\n", " ").split())


def commands(lines: str) -> list[str]:
    """The commands of some lines: a backslash continues one on the next line."""
    return [one_line(found) for found in re.findall(r"(?:.*\\\n)*.+", lines.strip())]


def typed(block: Directive) -> list[str]:
    """The commands of a console block."""
    lines = [line.strip().removeprefix("$ ") for line in block.body]
    return commands("\n".join(lines))


def is_console(box: Directive) -> bool:
    return box.name == "code-block" and box.argument == "console"


def recorded(page: list[Directive]) -> list[Entry]:
    """The entries of the catalog that a page shows, in its order."""
    boxes = [box for box in page if box.name == "transcript"]
    return [CATALOG[box.argument] for box in boxes]


def run_by(entry: Entry) -> set[str]:
    """Every command that a recording runs, shown or not."""
    shell = SHELLS.get(entry.inside, "")
    lines = [entry.setup, entry.command, entry.cleanup, shell]
    return {command for text in lines for command in commands(text)}


def on_a_cluster(block: Directive, page: list[Directive]) -> bool:
    """Whether a block stands under a tab of Slurm or PBS."""
    here = [box for box in page if box.page == block.page and box.line < block.line]
    tabs = [box for box in here if box.name == "tab-item"]
    inside = bool(tabs) and set(block.body) <= set(tabs[-1].body)
    return inside and tabs[-1].argument in ("Slurm", "PBS")


def not_run(page: list[Directive]) -> list[str]:
    """The commands of a page that look as if they ran, but that no test types."""
    ran = {command for entry in recorded(page) for command in run_by(entry)}
    return [
        f"{block.place}: {command}"
        for block in page
        if is_console(block) and not on_a_cluster(block, page)
        if not any("YOUR_" in command for command in typed(block))
        for command in typed(block)
        if command not in ran and not command.startswith("docker ")
    ]


def hidden(page: list[Directive]) -> list[str]:
    """The clusters and sites that recordings start, but that the page doesn't show."""
    shown: set[str] = set()
    missing = []
    for box in page:
        if is_console(box):
            shown |= set(typed(box))
        if box.name == "transcript":
            entry = CATALOG[box.argument]
            started = {found.strip() for found in STARTS.findall(entry.setup)}
            missing += [f"{box.place}: {command}" for command in started - shown]
            shown |= set(commands(entry.command))
    return missing


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_console_block_is_run_or_shows_that_it_is_a_pattern(lesson):
    found = not_run(lesson_directives(lesson))
    assert not found, (
        "no transcript of the lesson runs this. Record it, or write YOUR_... for what "
        "the reader has to replace:\n" + "\n".join(found)
    )


TOLD = "the recording started this, and the page doesn't show it above:\n"


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_shows_the_cluster_and_the_site_of_its_transcripts(lesson):
    found = hidden(lesson_directives(lesson))
    assert not found, TOLD + "\n".join(found)


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.stem)
def test_a_page_shows_the_cluster_and_the_site_of_its_transcripts(page):
    found = hidden(directives(page))
    assert not found, TOLD + "\n".join(found)


TABS = """\
.. tab-item:: Slurm

   .. code-block:: console

      $ sbatch job.sh

.. code-block:: console

   $ workshop cluster up --nodes=2
   $ torchrun --nnodes=2 \\
         --rdzv-endpoint=YOUR_NODE:29400 train.py

.. code-block:: console

   $ sbatch job.sh

.. transcript:: 09_look
"""


def test_the_rules_about_commands_find_what_they_should(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    page = tmp_path / "page.rst"
    page.write_text(TABS)
    assert not_run(directives(page)) == ["page.rst:13: sbatch job.sh"]
    assert hidden(directives(page)) == ["page.rst:17: workshop cluster up"]
