"""What the variables of a script hold, as far as the script itself says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from .shell import ASSIGNMENT, Assignment, Command
from .words import Piece, Word

REFERENCE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
WITH_A_PART = re.compile(r"\$\{([A-Za-z_]\w*)(//?)([\w.@%:,=+-]+)/([^{}]*)\}")
ALL_ELEMENTS = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
# $((A * B)), $(a | b) and `a b` are one each.
FIELD = re.compile(
    r"(?:\$\(\([^)]*(?:\([^)]*\)[^)]*)*\)\)|\$\([^()]*(?:\([^()]*\)[^()]*)*\)|`[^`]*`|\S)+"
)
LAUNCHER = re.compile(
    r"\b(torchrun|accelerate launch|deepspeed|torch\.distributed\.(run|launch))\b"
)
LAUNCH_LINE = re.compile(LAUNCHER.pattern + r".*\.py\b", re.S)
READ_UP_TO = re.compile(r"-[a-z]*d")
DEEPEST = 8  # assignments that refer to each other


@dataclass(frozen=True)
class Token:
    """A word as a program gets it, where it is known; variables stay where not."""

    text: str
    line: int  # where it's written, maybe in the value of a variable
    word: Word


class Variables:
    """The assignments of a script by their names."""

    def __init__(self, commands: list[Command]):
        self.found: dict[str, list[Assignment]] = {}
        self.set_otherwise: set[str] = set()
        self.files: dict[str, Word | None] = {}  # written by here-documents
        for command in commands:
            for assignment in [*command.assignments, *assignments_of_let(command)]:
                self.found.setdefault(assignment.name, []).append(assignment)
            if name_that_is_read(command) is not None:
                text = text_that_is_read(command)
                self.found.setdefault(text.name, []).append(text)
            elif command.name in ("read", "mapfile", "readarray", "getopts", "for"):
                names = (word.value for word in command.words[1:])
                self.set_otherwise.update(n for n in names if n.isidentifier())
        for command in commands:
            self._add_file(command)

    def _add_file(self, command: Command) -> None:
        """``cat > FILE <<END``; None for a file that is written in several ways."""
        targets = [
            word for sign, word in command.redirects if sign in (">", ">|", ">>")
        ]
        if command.name == "tee":
            targets += command.words[1:]
        for target in targets:
            name = self.fill(target, target.line).removeprefix("./")
            only = len(command.heredocs) == 1 and name not in self.files
            appended = any(sign == ">>" for sign, _ in command.redirects)
            sure = not command.in_branch and not command.in_loop and not appended
            text = command.heredocs[0].word if only and sure else None
            self.files[name] = text

    def written(self, name: str) -> Word | None:
        """The text of a file that the script itself writes, if it's a shell script."""
        word = self.files.get(name.removeprefix("./"))
        if word is None or not is_shell(word.raw.partition("\n")[0]):
            return None
        return word

    def sets(self, name: str) -> bool:
        return name in self.found or name in self.set_otherwise

    def last(self, name: str, line: int) -> Assignment | None:
        """The assignment that certainly holds at a line, if there is one."""
        if name in self.set_otherwise:
            return None
        before = [a for a in self.found.get(name, []) if a.line <= line]
        if not before or before[-1].adds:
            return None
        only = len(self.found[name]) == 1 and is_set_anew(before[-1])
        return before[-1] if before[-1].certain or only else None

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
        word = assignment.word
        if word.array is not None:
            return None  # a list
        if word.inside and not LAUNCHER.search(word.value):
            return None  # what a command prints
        return self.fill(word, assignment.line - 1, depth + 1).partition("=")[2]

    def fill(self, word: Word, line: int, depth: int = 0) -> str:
        """The value of a word with what is known in place of its variables."""

        def replace(match: re.Match) -> str:
            known = self.text(match[1] or match[2], line, depth)
            return match[0] if known is None else known

        def replace_part(match: re.Match) -> str:
            known = self.text(match[1], line, depth)
            if known is None:
                return match[0]
            new = REFERENCE.sub(replace, match[4].strip("\"'"))
            times = 1 if match[2] == "/" else -1
            return known.replace(match[3], new, times)

        def replace_list(match: re.Match) -> str:
            known = self._joined(match[1], depth)
            return match[0] if known is None else known

        parts = []
        for text, live in joined_pieces(word):
            if live:
                text = WITH_A_PART.sub(replace_part, text)
                text = ALL_ELEMENTS.sub(replace_list, REFERENCE.sub(replace, text))
            parts.append(text)
        return "".join(parts)

    def _joined(self, name: str, depth: int) -> str | None:
        """The elements of a list as one text, unless a command prints one of them."""
        assignments = self.found.get(name, [])
        if not assignments or depth > DEEPEST:
            return None
        words: list[Word] = []
        for assignment in assignments:
            if assignment.word.array is None:
                return None
            words += assignment.word.array
        if any(word.inside for word in words):
            return None
        return " ".join(self.fill(word, word.line, depth + 1) for word in words)

    def line_of(self, text: str, word: Word, depth: int = 0) -> int | None:
        """The line of the assignment that a part of a word was written in."""
        written = text.partition("$")[0]
        if not written or depth > DEEPEST:
            return None
        for match in REFERENCE.finditer(word.live):
            name = match[1] or match[2]
            assignment = self.last(name, word.line) or self.before_more(name, word.line)
            if assignment is None or assignment.word is word:
                continue
            before, found, _ = assignment.word.raw.partition(written)
            if found:
                return assignment.line + before.count("\n")
            line = self.line_of(text, assignment.word, depth + 1)
            if line is not None:
                return line
        return None

    def tokens(self, word: Word, depth: int = 0) -> list[Token]:
        """One word, or as many as an array or an unquoted variable holds."""
        array = ALL_ELEMENTS.fullmatch(word.value)
        if array and depth <= DEEPEST:
            return self._elements(array[1], word, depth)
        filled = self.fill(word, word.line)
        quoted = any(piece.quoted for piece in word.pieces)
        changed = filled != word.value
        if not changed or quoted:
            return [Token(filled, word.line, word)]
        found = []
        for text in FIELD.findall(filled):
            found.append(Token(text, self.line_of(text, word) or word.line, word))
        return found

    def _elements(self, name: str, word: Word, depth: int) -> list[Token]:
        assignments = self.found.get(name, [])
        if not assignments or any(a.word.array is None for a in assignments):
            return [Token(word.value, word.line, word)]
        words = [each for a in assignments for each in a.word.array or []]
        return [token for each in words for token in self.tokens(each, depth + 1)]


def is_set_anew(assignment: Assignment) -> bool:
    """In each round of a loop, from other variables alone."""
    value = assignment.word.value.partition("=")[2]
    itself = re.search(rf"\b{assignment.name}\b", value)
    return assignment.in_loop and not itself


def assignments_of_let(command: Command) -> Iterator[Assignment]:
    """``let N=2*4``, as if it were ``N=2*4`` in a place for numbers."""
    if command.name != "let":
        return
    unsure = command.in_branch or command.in_loop or "function" in command.blocks
    for word in command.words[1:]:
        match = ASSIGNMENT.match(word.value)
        if match:
            adds = bool(match[3])
            yield Assignment(match[1], word, word.line, not unsure, adds)


def reads_it_all(command: Command) -> bool:
    """``read -r -d ''``, up to a zero byte that no text has."""
    words = [word.value for word in command.words]
    ends = [after for word, after in pairwise(words) if READ_UP_TO.fullmatch(word)]
    return words[:1] == ["read"] and bool({"", "\\0"} & set(ends))


def name_that_is_read(command: Command) -> str | None:
    """The variable that gets a whole here-document: ``read -r -d '' NAME <<END``."""
    if not reads_it_all(command) or len(command.heredocs) != 1:
        return None
    words = [word.value for word in command.words]
    listed = any(word.startswith("-") and "a" in word for word in words)
    return words[-1] if words[-1].isidentifier() and not listed else None


def text_that_is_read(command: Command) -> Assignment:
    """``read`` with a here-document, as if it were an assignment."""
    name, heredoc = command.words[-1].value, command.heredocs[0]
    text = heredoc.word
    pieces = [Piece(f"{name}=", live=True, quoted=False), *text.pieces]
    word = Word(heredoc.line, pieces, inside=text.inside, raw=text.raw)
    unsure = command.in_branch or command.in_loop or "function" in command.blocks
    return Assignment(name, word, heredoc.line, not unsure, adds=False)


def is_shell(first: str) -> bool:
    """The first line names a shell, or nothing: not Python, R or another language."""
    if not first.startswith("#!"):
        return True
    names = [PurePosixPath(word).name for word in first[2:].split()]
    names = [name for name in names if not name.startswith("-") and name != "env"]
    return not names or "sh" in names[0]


def joined_pieces(word: Word) -> list[tuple[str, bool]]:
    """Neighboring pieces of one kind as one, since a name may lie in several."""
    joined: list[tuple[str, bool]] = []
    for piece in word.pieces:
        if joined and joined[-1][1] == piece.live:
            joined[-1] = (joined[-1][0] + piece.text, piece.live)
        else:
            joined.append((piece.text, piece.live))
    return joined
