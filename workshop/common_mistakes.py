"""The common mistakes of the lessons: diagnose/mistakes.toml, and tables made of it.

``.. common-mistakes:: 05`` on a page is the table of that lesson, and
``.. common-mistakes:: sheet`` that of the cheat sheet. ``written_out`` puts the rows in
the place of the directive, for a reader of a page's source rather than of the site.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

MISTAKES = Path(__file__).parent / "diagnose" / "mistakes.toml"
FOLDER = "docs/lessons"
SHEET = "sheet"
HEADS = "Symptom, Cause, Cure"
WIDTHS = {SHEET: "36 31 33"}  # of the columns; those of a lesson:
OF_A_LESSON = "34 33 33"
DIRECTIVE = re.compile(
    r"^\.\. common-mistakes:: +(?P<which>\S+)\n(?:   :heads: (?P<heads>.+)\n)?", re.M
)
# "(see it fail)": on paper there is no link
LINKS = re.compile(r" *\((?::ref:`[^`]+`(?:, )?)+\)")
ROLE = re.compile(r":[\w:]+:`~?([^`<]+?)(?: *<[^`>]*>)?`")
QUALIFIED = re.compile(r"^(?:\w+\.)+(?=\w+$)")
WORDS_OF_A_LINK = 8


@dataclass(frozen=True)
class Mistake:
    """One ``[[mistake]]``, whose fields the first lines of the file explain."""

    page: str
    symptom: str
    cause: str
    cure: str
    messages: tuple[str, ...] = ()
    weight: int = 2
    known: str = ""
    sheet: int = 0

    @property
    def lesson(self) -> str:
        """Its number, such as ``05``."""
        return self.page[:2]

    @property
    def row(self) -> str:
        """The name of its row in an address."""
        words = re.findall(r"[a-z0-9]+", plain(self.symptom).lower())
        return "-".join(["mistake", self.lesson, *words[:WORDS_OF_A_LINK]])

    @property
    def address(self) -> str:
        """Where the site shows it."""
        return f"{FOLDER}/{self.page}.html#{self.row}"


@cache
def load_mistakes() -> tuple[Mistake, ...]:
    """All rows, in the order of the lessons."""
    entries = tomllib.loads(MISTAKES.read_text(encoding="utf-8"))["mistake"]
    return tuple(
        Mistake(**{**entry, "messages": tuple(entry.get("messages", []))})
        for entry in entries
    )


def rows_of(which: str) -> list[Mistake]:
    """Those of a lesson, or of the cheat sheet."""
    if which == SHEET:
        chosen = [one for one in load_mistakes() if one.sheet]
        return sorted(chosen, key=lambda one: one.sheet)
    return [one for one in load_mistakes() if one.lesson == which]


def table(which: str, heads: str = "") -> str:
    """The rows as a ``list-table``."""
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        f"   :widths: {WIDTHS.get(which, OF_A_LESSON)}",
        "",
    ]
    for cells in [(heads or HEADS).split(", "), *map(cells_of, rows_of(which))]:
        first, *others = [cell if which != SHEET else unlinked(cell) for cell in cells]
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return "\n".join(lines) + "\n"


def cells_of(mistake: Mistake) -> list[str]:
    return [mistake.symptom, mistake.cause, mistake.cure]


def written_out(source: str) -> str:
    """A page's source with the rows in the place of each directive."""
    return DIRECTIVE.sub(
        lambda found: table(found["which"], found["heads"] or ""), source
    )


def unlinked(text: str) -> str:
    """Without the links to failures of the gallery."""
    return LINKS.sub("", text)


def plain(text: str) -> str:
    """reStructuredText as it is read: code stands in single backticks."""
    text = ROLE.sub(said_by, unlinked(text).replace("``", "`"))
    return re.sub(r"\*(\w[^*]*)\*", r"\1", text)


def said_by(role: re.Match[str]) -> str:
    return f"`{QUALIFIED.sub('', role[1])}`" if "<" not in role[0] else role[1]
