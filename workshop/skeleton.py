"""What learners get, derived from the solution, so that the two cannot drift.

A solution marks each hole under its TODO comment::

    # TODO 1 of 2: sum the gradient over the ranks, then divide by their number.
    # [start answer 1]
    dist.all_reduce(grad)
    grad /= world_size
    # [end answer 1]

The skeleton has ``raise NotImplementedError("TODO 1 of 2")`` in its place. Lines
that begin with ``#~`` or ``# ~`` inside an answer are what the skeleton shows after
that line (for exercises that repair broken code); the solution does not have them.
In shell scripts the hole stops the script with status 64 instead; in YAML it is an
extra key, ``x-todo-1``, which the checks of such exercises look for.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import NOT_PYTHON, UserError

_START = re.compile(r"^(?P<indent>[ \t]*)# \[start answer (?P<number>\d+)\]\s*$")
_END = re.compile(r"^[ \t]*# \[end answer (?P<number>\d+)\]\s*$")
_BROKEN = re.compile(r"^[ \t]*# ?~ ?(?P<code>.*)$")  # formatters write "# ~"


@dataclass
class Hole:
    """One marked answer: ``number`` from 1, its indent, its two kinds of lines."""

    number: int
    indent: str
    answer: list[str]
    broken: list[str]


def parse(text: str, name: str = "the solution") -> list[str | Hole]:
    """Split a solution into plain lines and holes.

    Raises:
        UserError: a marker is missing, nested, or out of order.
    """
    parts: list[str | Hole] = []
    hole: Hole | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{name}, line {number}"
        if start := _START.match(line):
            if hole is not None:
                raise UserError(f"{where}: an answer starts inside another answer")
            hole = Hole(int(start["number"]), start["indent"], [], [])
        elif end := _END.match(line):
            if hole is None or int(end["number"]) != hole.number:
                raise UserError(f"{where}: this [end answer] has no matching start")
            parts.append(hole)
            hole = None
        elif hole is None:
            parts.append(line)
        elif broken := _BROKEN.match(line):
            hole.broken.append(broken["code"])
        else:
            hole.answer.append(line)
    if hole is not None:
        raise UserError(f"{name}: answer {hole.number} has no [end answer] line")
    found = [hole.number for hole in holes(parts)]
    if found != list(range(1, len(found) + 1)):
        raise UserError(f"{name}: answers must be numbered 1, 2, ..., not {found}")
    return parts


def holes(parts: list[str | Hole]) -> list[Hole]:
    """Only the holes of what :func:`parse` returns."""
    return [part for part in parts if isinstance(part, Hole)]


def skeleton_text(solution: str, suffix: str = ".py") -> str:
    """The file a learner starts from, made from the text of its solution."""
    parts = parse(solution)
    total = len(holes(parts))
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
            continue
        todo = f"TODO {part.number} of {total}"
        lines.append(part.indent + _stop(todo, part.number, suffix))
        lines.extend((part.indent + code).rstrip() for code in part.broken)
    return "\n".join(lines) + "\n"


def _stop(todo: str, number: int, suffix: str) -> str:
    """The line in place of an answer, by which the file says that it is not done."""
    if suffix == ".py":
        return f'raise NotImplementedError("{todo}")'
    if suffix == ".yaml":  # what follows may be the rest of a mapping
        return f"x-todo-{number}: {todo} is still open"
    return f'echo "{todo} is still open" >&2; exit 64'


def plain_solution(solution: str) -> str:
    """The solution as a learner would have written it: no markers."""
    lines: list[str] = []
    for part in parse(solution):
        if isinstance(part, str):
            lines.append(part)
        else:
            lines.extend(part.answer)
    return "\n".join(lines) + "\n"


def with_answers(solution: str, answers: dict[int, str]) -> str:
    """The solution with some of its holes answered differently.

    ``answers`` maps the hole's number to code written at indentation 0.
    """
    parts = parse(solution)
    unknown = set(answers) - {hole.number for hole in holes(parts)}
    if unknown:
        raise UserError(f"there is no hole number {sorted(unknown)} in this exercise")
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
        elif part.number in answers:
            code = textwrap.dedent(answers[part.number]).strip("\n")
            lines.extend(textwrap.indent(code, part.indent).splitlines())
        else:
            lines.extend(part.answer)
    return "\n".join(lines) + "\n"


def same_code(left: str, right: str, suffix: str = ".py") -> bool:
    """Whether two files differ in nothing but comments, docstrings' indent, spaces."""
    if suffix != ".py":
        return left.split() == right.split()
    try:
        return ast.dump(ast.parse(left)) == ast.dump(ast.parse(right))
    except NOT_PYTHON:
        return left == right


def read_solution(path: Path) -> str:
    """The text of a solution file; a :class:`UserError` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
