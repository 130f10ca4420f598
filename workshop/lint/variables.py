"""What the variables of a script hold, as far as the script itself says it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .shell import Assignment, Command
from .words import Word

REFERENCE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
WHOLE_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
FIELD = re.compile(r"(?:\$\(\([^)]*(?:\([^)]*\)[^)]*)*\)\)|\S)+")  # $((A * B)) is one
LAUNCH_LINE = re.compile(
    r"\b(torchrun|accelerate launch|deepspeed|torch\.distributed\.run)\b.*\.py\b", re.S
)
DEEPEST = 8  # assignments that refer to each other


@dataclass(frozen=True)
class Token:
    """A word as a program gets it, where it is known; variables stay where not."""

    text: str
    line: int
    word: Word


class Variables:
    """The assignments of a script by their names."""

    def __init__(self, commands: list[Command]):
        self.found: dict[str, list[Assignment]] = {}
        self.set_otherwise: set[str] = set()
        for command in commands:
            for assignment in command.assignments:
                self.found.setdefault(assignment.name, []).append(assignment)
            if command.name in ("read", "mapfile", "readarray", "getopts", "for"):
                names = (word.value for word in command.words[1:])
                self.set_otherwise.update(n for n in names if n.isidentifier())

    def sets(self, name: str) -> bool:
        return name in self.found or name in self.set_otherwise

    def last(self, name: str, line: int) -> Assignment | None:
        """The assignment that certainly holds at a line, if there is one."""
        if name in self.set_otherwise:
            return None
        before = [a for a in self.found.get(name, []) if a.line <= line]
        if not before or not before[-1].certain or before[-1].adds:
            return None
        return before[-1]

    def before_more(self, name: str, line: int) -> Assignment | None:
        """A launch line that later lines only lengthen: ``CMD="$CMD --more"``.

        Its launcher and program are known, whichever of those lines are run.
        """
        if name in self.set_otherwise:
            return None
        before = [a for a in self.found.get(name, []) if a.line <= line]
        if not before or not before[0].certain or before[0].adds:
            return None
        own = re.compile(rf"{name}=\$(?:{name}\b|\{{{name}\}})")
        lengthen = all(a.adds or own.match(a.word.value) for a in before[1:])
        complete = LAUNCH_LINE.search(before[0].word.value)
        return before[0] if lengthen and complete else None

    def text(self, name: str, line: int, depth: int = 0) -> str | None:
        assignment = self.last(name, line) or self.before_more(name, line)
        if assignment is None or depth > DEEPEST:
            return None
        if assignment.word.array is not None or assignment.word.inside:
            return None  # a list, or what a command prints
        whole = self.fill(assignment.word, assignment.line - 1, depth + 1)
        return whole.partition("=")[2]

    def fill(self, word: Word, line: int, depth: int = 0) -> str:
        """The value of a word with what is known in place of its variables."""

        def replace(match: re.Match) -> str:
            known = self.text(match[1] or match[2], line, depth)
            return match[0] if known is None else known

        parts = [
            REFERENCE.sub(replace, text) if live else text
            for text, live in joined_pieces(word)
        ]
        return "".join(parts)

    def tokens(self, word: Word, depth: int = 0) -> list[Token]:
        """One word, or as many as an array or an unquoted variable holds."""
        array = WHOLE_ARRAY.fullmatch(word.value)
        if array and depth <= DEEPEST:
            return self._elements(array[1], word, depth)
        filled = self.fill(word, word.line)
        quoted = any(piece.quoted for piece in word.pieces)
        changed = filled != word.value
        texts = FIELD.findall(filled) if changed and not quoted else [filled]
        return [Token(text, word.line, word) for text in texts]

    def _elements(self, name: str, word: Word, depth: int) -> list[Token]:
        assignments = self.found.get(name, [])
        if not assignments or any(a.word.array is None for a in assignments):
            return [Token(word.value, word.line, word)]
        words = [each for a in assignments for each in a.word.array or []]
        return [token for each in words for token in self.tokens(each, depth + 1)]


def joined_pieces(word: Word) -> list[tuple[str, bool]]:
    """Neighboring pieces of one kind as one, since a name may lie in several."""
    joined: list[tuple[str, bool]] = []
    for piece in word.pieces:
        if joined and joined[-1][1] == piece.live:
            joined[-1] = (joined[-1][0] + piece.text, piece.live)
        else:
            joined.append((piece.text, piece.live))
    return joined
