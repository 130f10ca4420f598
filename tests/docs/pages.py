"""What the tests of the pages share: where the sources are, and how to read them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from workshop import lesson_pages

ROOT = Path(__file__).resolve().parents[2]
LESSONS = lesson_pages.lesson_names(ROOT)
FIGURES = ROOT / "docs" / "figures"
LEADS_ON = '<meta name="robots" content="noindex">'  # in the head of such a page

DIRECTIVE = re.compile(
    r"^(?P<indent>[ ]*)\.\. (?P<name>[\w-]+)::(?:[ ]+(?P<argument>\S.*?))?[ ]*$"
)
OPTION = re.compile(r"^\s+:(?P<name>[\w-]+):\s*(?P<value>.*?)\s*$")


@dataclass
class Directive:
    """A directive of a page: its name, argument, options and body lines."""

    page: Path
    line: int
    name: str
    argument: str
    options: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> Path:
        """The file that the argument names, from the page or from the root."""
        if self.argument.startswith("/"):
            return ROOT / self.argument.lstrip("/")
        return (self.page.parent / self.argument).resolve()


def lesson_source(name: str) -> str:
    """The sources of all pages of a lesson, one after the other."""
    return lesson_pages.lesson_text(ROOT, name)


def lesson_of(page: Path) -> str:
    """The name of the lesson that a page under docs/lessons belongs to."""
    inside = page.relative_to(ROOT / lesson_pages.FOLDER)
    return inside.parts[0].removesuffix(".rst")


def site_pages(site: Path, under: str = "") -> list[Path]:
    """Every page of a built site, without those that only lead on to another."""
    return [
        path
        for path in sorted((site / under).rglob("*.html"))
        if LEADS_ON not in path.read_text(encoding="utf-8")[:400]
    ]


def sources() -> list[Path]:
    """Every page's source."""
    return [
        ROOT / "index.rst",
        ROOT / "404.rst",
        *sorted((ROOT / "docs").rglob("*.rst")),
    ]


def directives(page: Path) -> list[Directive]:
    """The directives of a page in order, nested ones as well."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        match = DIRECTIVE.match(line)
        if not match:
            continue
        directive = Directive(page, number, match["name"], match["argument"] or "")
        inside = _indented(lines[number:], len(match["indent"]))
        while inside and (option := OPTION.match(inside[0])):
            directive.options[option["name"]] = option["value"]
            inside.pop(0)
        directive.body = [line for line in inside if line.strip()]
        found.append(directive)
    return found


def _indented(lines: list[str], indent: int) -> list[str]:
    """The lines at the top that are indented deeper than ``indent``, or empty."""
    inside = []
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        inside.append(line)
    return inside


def lesson_directives(name: str) -> list[Directive]:
    """The directives of all pages of a lesson in the order in which they are read."""
    pages = lesson_pages.pages_of(ROOT, name)
    return [directive for page in pages for directive in directives(page)]


def all_directives(*names: str) -> list[Directive]:
    """The directives of these names on every page."""
    return [d for page in sources() for d in directives(page) if d.name in names]


def checked_page(name: str) -> Callable[[str], None]:
    """A check that a page of the lesson still has a sentence, wrapped or not."""
    text = " ".join(lesson_source(name).split())

    def on_the_page(sentence: str) -> None:
        assert sentence in text, f"the page no longer says {sentence!r}"

    return on_the_page
