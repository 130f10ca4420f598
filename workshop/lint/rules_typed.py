"""Rules about characters that a web page or a word processor has put in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .rule import ERROR, Problem, Table
from .script import Script
from .shell import Command
from .words import Word

TABLE = Table()
QUOTES = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a"
BLANKS = "\u00a0\u2007\u202f\u200b\ufeff"
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
PLAIN = {
    **dict.fromkeys(map(ord, QUOTES[:4]), '"'),
    **dict.fromkeys(map(ord, QUOTES[4:]), "'"),
    **dict.fromkeys(map(ord, BLANKS), " "),
}
IN_A_WORD = re.compile(f"[{QUOTES}{BLANKS}]")
OPTION = re.compile(rf"(?<!\S)(?=-?[{DASHES}])[-{DASHES}]+(?=[A-Za-z])")
PRINTS = ("echo", "printf", ":")


@TABLE.add("DT025", ERROR, pages.READ_THE_SCRIPT)
def typographic(script: Script) -> Iterator[Problem]:
    """Typographic quotes, dashes or blanks

    Web pages and word processors replace quotes and hyphens by nicer ones. For the
    shell they're letters: they quote nothing, begin no option and separate no words.
    sbatch refuses them in a directive.

    Cure:
        Type plain quotes, hyphens and blanks in their place.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        srun bash -c \u201cpython train.py\u201d

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        srun bash -c "python train.py"
    """
    told: set[int] = set()
    for line, shown in typographic_words(script):
        if line not in told:
            told.add(line)
            written = script.lines[line - 1 : line]  # a variable's text may be longer
            plain = "".join(written or [shown]).translate(PLAIN)
            fixed = OPTION.sub(hyphens, plain).strip()
            what = f"`{shown}` has {kind_of(shown)} that the shell doesn't know"
            yield Problem(line, what, fixed)


def hyphens(match: re.Match) -> str:
    """One long dash is mostly two hyphens; before a single letter it's one."""
    rest = match.string[match.end() :]
    return "-" if re.match(r"[A-Za-z](\s|$|\d)", rest) else "--"


def kind_of(shown: str) -> str:
    if re.search(f"[{QUOTES}]", shown):
        return "a typographic quote"
    return "a typographic dash" if OPTION.search(shown) else "a blank of a web page"


def typographic_words(script: Script) -> Iterator[tuple[int, str]]:
    for directive in script.directives:
        text = directive.text.split(" #")[0]
        if not directive.late and (IN_A_WORD.search(text) or OPTION.match(text)):
            yield directive.line, text
    inside = [each for launch in script.launches for each in launch.inner]
    for command in [*script.commands, *inside]:
        if command.name not in PRINTS:
            for word in words_of(command):
                plain = "".join(p.text for p in word.pieces if not p.quoted)
                if IN_A_WORD.search(plain) or OPTION.match(word.raw):
                    yield word.line, word.raw.split("\n")[0]


def words_of(command: Command) -> list[Word]:
    words = [*command.words, *(each.word for each in command.assignments)]
    return words + [each for word in words for each in word.array or []]
