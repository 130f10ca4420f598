"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from textwrap import dedent

from .script import Script

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Page:
    """A section of the workshop's pages."""

    name: str  # such as docs/lessons/09_slurm
    heading: str

    @property
    def anchor(self) -> str:
        """The section's address on the site, from the first page."""
        letters = (c if c.isalnum() else " " for c in self.heading.lower())
        return f"{self.name}.html#{'-'.join(''.join(letters).split())}"

    def __str__(self) -> str:
        return f'{self.name}.rst, "{self.heading}"'


@dataclass(frozen=True)
class Problem:
    """What one rule has found in one place, in the user's own words."""

    line: int
    what: str
    cure: str = ""  # the corrected line; else the rule's
    severity: str = ""  # else the rule's


@dataclass(frozen=True)
class Rule:
    """One mistake: how it's told, and how it's found."""

    code: str  # never given to another rule
    severity: str
    title: str
    reason: str
    cure: str
    page: Page
    bad: str
    good: str
    check: Callable[[Script], Iterator[Problem]]


@dataclass(frozen=True)
class Finding:
    """A problem of one rule in one file."""

    path: str
    line: int
    rule: Rule
    what: str
    cure: str
    severity: str
    covered: tuple[int, ...] = field(default=(), repr=False)  # lines of its command

    @property
    def is_error(self) -> bool:
        return self.severity == ERROR


class Table:
    """The rules of one module, in the order in which they are written."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def add(self, code: str, severity: str, page: Page) -> Callable:
        """A decorator for the function that finds the mistake.

        Its docstring is what people read: a title, the reason, and then the cure, a bad
        and a good example under the headings "Cure:", "Bad:" and "Good:".
        """

        def keep(check: Callable[[Script], Iterator[Problem]]) -> Callable:
            title, reason, parts = read_parts(check.__doc__ or "")
            cure = " ".join(parts["Cure"].split())
            bad, good = parts["Bad"], parts["Good"]
            rule = Rule(code, severity, title, reason, cure, page, bad, good, check)
            self.rules.append(rule)
            return check

        return keep


def read_parts(text: str) -> tuple[str, str, dict[str, str]]:
    """Title, reason and the parts with a heading, of a rule's docstring."""
    lines = [line.removeprefix("    ") for line in text.split("\n")]
    head: list[str] = []
    parts: dict[str, list[str]] = {}
    into = head
    for line in lines:
        heading = line.strip().removesuffix(":")
        if line.endswith(":") and heading in ("Cure", "Bad", "Good"):
            into = parts.setdefault(heading, [])
        else:
            into.append(line)
    title, *reason = head
    return (
        title,
        " ".join(" ".join(reason).split()),
        {name: dedent("\n".join(part)).strip("\n ") for name, part in parts.items()},
    )
