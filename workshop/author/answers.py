"""Known answers of an exercise: ``tests/exercises/NN_name/answers.md``.

One section for each answer. Its heading is what the grader must say of it: ``right``,
or the kind of the verdict with words that the message must contain. Then come the name
of the answer and the code of one hole after the other; holes that aren't there have
the solution's code::

    ## wrong value: 3 times too large | nothing was divided

    `sum_not_divided`

    Hole 2:

    ```python
    dist.all_reduce(parameter.grad)
    ```

A heading may say for which torch it holds: ``## wrong value, torch>=2.9: words``. Any
other text is for the reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet

from workshop.errors import UserError

RIGHT = "right"
_HEADING = re.compile(r"^## (?P<promise>.+)$")
_NAME = re.compile(r"^`(?P<name>[\w.-]+)`$")
_HOLE = re.compile(r"^Hole (?P<number>\d+):$")
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>\w*)$")
_PROMISE = re.compile(
    r"(?P<kind>[a-z ]+)(, torch(?P<torch>[<>=!][^:]*))?(: (?P<words>.*))?"
)


@dataclass(frozen=True)
class Answer:
    """One way to fill the holes of an exercise, and what the grader says of it."""

    exercise: str
    name: str
    kind: str  # RIGHT, or the verdict that is promised
    words: tuple[str, ...]  # of the verdict; for a right answer, what is special
    torch: str  # for which it holds, as in ">=2.9"; "" for all
    code: dict[int, str]  # number of a hole -> its code, without indent

    @property
    def id(self) -> str:
        return f"{self.exercise}/{self.name}"

    @property
    def is_right(self) -> bool:
        return self.kind == RIGHT

    def holds_for(self, torch: str) -> bool:
        """Whether the promise is made for this version of torch."""
        return SpecifierSet(self.torch).contains(torch, prereleases=True)


def read_answers(path: Path, exercise: str) -> list[Answer]:
    """The answers in the order of the file.

    Raises:
        UserError: a section lacks its name or its code, or a name appears twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    starts = [number for number, line in enumerate(lines) if _HEADING.match(line)]
    starts = [number for number in starts if not _inside_a_fence(lines, number)]
    ends = [*starts[1:], len(lines)]
    answers = []
    for start, end in zip(starts, ends, strict=True):
        where = f"{path}, line {start + 1}"
        answers.append(_answer(lines[start:end], exercise, where))
    names = [answer.name for answer in answers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"{path}: {', '.join(twice)} appears twice")
    return answers


def _inside_a_fence(lines: list[str], number: int) -> bool:
    fence = ""
    for line in lines[:number]:
        if fence:
            fence = "" if line == fence else fence
        elif found := _FENCE.match(line):
            fence = found["fence"]
    return bool(fence)


def _answer(section: list[str], exercise: str, where: str) -> Answer:
    heading, *lines = section
    promise = _PROMISE.fullmatch(heading.removeprefix("## "))
    if promise is None:
        raise UserError(f"{where}: a heading is `right` or `a verdict: words of it`")
    names = [found["name"] for found in map(_NAME.match, lines) if found]
    if not names:
        raise UserError(f"{where}: the name of the answer is missing, as in `name`")
    code = _code(lines, where)
    if not code:
        raise UserError(f"{where}: there is no code below `Hole 1:`")
    words = (promise["words"] or "").split("|")
    return Answer(
        exercise=exercise,
        name=names[0],
        kind=promise["kind"].strip(),
        words=tuple(word.strip() for word in words if word.strip()),
        torch=(promise["torch"] or "").strip(),
        code=code,
    )


def _code(lines: list[str], where: str) -> dict[int, str]:
    """The fenced code of each hole."""
    code: dict[int, str] = {}
    number, fence = 0, ""
    inside: list[str] = []
    for line in lines:
        if fence and line == fence:
            code[number] = "\n".join(inside) + "\n"
            number, fence, inside = 0, "", []
        elif fence:
            inside.append(line)
        elif hole := _HOLE.match(line):
            number = int(hole["number"])
        elif found := _FENCE.match(line):
            if not number:
                raise UserError(f"{where}: code must stand below `Hole 1:` or the like")
            fence = found["fence"]
    if fence:
        raise UserError(f"{where}: the code of hole {number} has no end")
    return code
