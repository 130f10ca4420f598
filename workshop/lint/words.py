"""The words of a shell line: what they say, and what the shell replaces in them.

Quotes decide which shell replaces a variable, and that decides whose ``SLURM_NODEID``
it is. So a word is kept in pieces, each of which knows its quotes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BLANKS = " \t\r"
ENDS = frozenset(BLANKS + "\n;&|()<>")
ESCAPED_IN_QUOTES = '$`"\\'
ESCAPED_IN_HEREDOC = "$`\\"


@dataclass(frozen=True)
class Piece:
    """A part of a word. A shell replaces variables only in live ones."""

    text: str
    live: bool
    quoted: bool


@dataclass(frozen=True)
class Inside:
    """The text of a ``$(...)`` or of backticks."""

    text: str
    line: int


@dataclass
class Word:
    """One word; its value has no quotes, and its variables are not replaced."""

    line: int
    pieces: list[Piece] = field(default_factory=list)
    array: list[Word] | None = None  # of NAME=(...)
    inside: list[Inside] = field(default_factory=list)
    raw: str = ""

    @property
    def value(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def live(self) -> str:
        """What the shell that reads the word replaces, with the text around it."""
        return "".join(piece.text for piece in self.pieces if piece.live)

    @property
    def left(self) -> str:
        """What it leaves to a later shell: in single quotes, or behind a backslash."""
        found: list[str] = []
        escaped = False
        for piece in self.pieces:
            expands = piece.text.startswith(("$", "`"))
            if piece.live and (expands or piece.text.isspace()):
                escaped = False
            if not piece.live:
                escaped = piece.text == "$"
            if escaped or not piece.live:
                found.append(piece.text)
        return "".join(found)

    def add(self, text: str, live: bool, quoted: bool) -> None:
        if text or quoted:
            self.pieces.append(Piece(text, live, quoted))


class Reader:
    """A position in a text. It never fails: a quote that isn't closed ends the text."""

    def __init__(self, text: str, line: int = 1):
        self.text = text
        self.at = 0
        self.line = line

    @property
    def more(self) -> bool:
        return self.at < len(self.text)

    def starts(self, token: str) -> bool:
        return self.text.startswith(token, self.at)

    def take(self, count: int = 1) -> str:
        taken = self.text[self.at : self.at + count]
        self.at += len(taken)
        self.line += taken.count("\n")
        return taken

    def take_escaped(self) -> str:
        """A character, and the one before which a backslash stands along with it."""
        if self.starts("\\"):
            return self.take(2)
        return self.take()

    def skip_blanks(self) -> None:
        while self.more:
            if self.starts("\\\n"):
                self.take(2)
            elif self.text[self.at] in BLANKS:
                self.take()
            else:
                return

    def skip_comment(self) -> None:
        while self.more and self.text[self.at] != "\n":
            self.take()

    def read_word(self) -> Word:
        """The next word, up to a blank or an operator."""
        word = Word(self.line)
        start = self.at
        while self.more and self.text[self.at] not in ENDS:
            self._read_piece(word)
            if self.starts("(") and _names_an_array(word):
                word.array = self._read_array()
        word.raw = self.text[start : self.at]
        return word

    def _read_piece(self, word: Word) -> None:
        char = self.text[self.at]
        if self.starts("\\\n"):
            self.take(2)
        elif char == "\\":
            word.add(self.take(2)[1:], live=False, quoted=False)
        elif char == "'":
            word.add(self._read_single(), live=False, quoted=True)
        elif self.starts("$'"):
            self.take()
            word.add(self._read_single(), live=False, quoted=True)
        elif char == '"':
            self._read_double(word)
        elif char in "$`":
            word.add(self._read_expansion(word), live=True, quoted=False)
        else:
            word.add(self.take(), live=True, quoted=False)

    def _read_single(self) -> str:
        self.take()
        end = self.text.find("'", self.at)
        end = len(self.text) if end < 0 else end
        text = self.take(end - self.at)
        self.take()
        return text

    def _read_double(self, word: Word) -> None:
        self.take()
        word.add("", live=True, quoted=True)
        while self.more and self.text[self.at] != '"':
            if self.starts("\\\n"):
                self.take(2)
            elif self._starts_escape():
                word.add(self.take(2)[1:], live=False, quoted=True)
            elif self.text[self.at] in "$`":
                word.add(self._read_expansion(word), live=True, quoted=True)
            else:
                word.add(self.take(), live=True, quoted=True)
        self.take()

    def _starts_escape(self) -> bool:
        """Between double quotes, a backslash protects only these characters."""
        after = self.text[self.at + 1 : self.at + 2]
        return self.starts("\\") and bool(after) and after in ESCAPED_IN_QUOTES

    def read_replaced(self, word: Word) -> None:
        """All of a here-document in which the shell replaces variables."""
        while self.more:
            after = self.text[self.at + 1 : self.at + 2]
            if self.starts("\\") and after and after in ESCAPED_IN_HEREDOC:
                word.add(self.take(2)[1:], live=False, quoted=True)
            elif self.text[self.at] in "$`":
                word.add(self._read_expansion(word), live=True, quoted=True)
            else:
                word.add(self.take(), live=True, quoted=True)

    def _read_expansion(self, word: Word) -> str:
        """``$NAME``, ``${...}``, ``$(...)``, ``$((...))`` or backticks, as written."""
        start, line = self.at, self.line
        if self.starts("$(("):
            self.skip_nested("(", ")")
        elif self.starts("$("):
            self.skip_nested("(", ")")
            word.inside.append(Inside(self.text[start + 2 : self.at - 1], line))
        elif self.starts("${"):
            self.skip_nested("{", "}")
        elif self.starts("`"):
            self.take()
            while self.more and self.text[self.at] != "`":
                self.take_escaped()
            self.take()
            word.inside.append(Inside(self.text[start + 1 : self.at - 1], line))
        else:
            self.take()
        return self.text[start : self.at]

    def skip_nested(self, opening: str, closing: str) -> None:
        """From ``$(`` to the bracket that closes it, over quotes and inner brackets."""
        self.take(2)
        depth = 1
        while self.more and depth:
            char = self.text[self.at]
            if char == "\\":
                self.take(2)
            elif char == "'":
                self._read_single()
            elif char == '"':
                self._read_double(Word(self.line))
            else:
                depth += (char == opening) - (char == closing)
                self.take()

    def _read_array(self) -> list[Word]:
        self.take()
        words = []
        while self.more and not self.starts(")"):
            if self.text[self.at] in BLANKS + "\n" or self.starts("\\\n"):
                self.take_escaped()
            elif self.starts("#"):
                self.skip_comment()
            elif self.text[self.at] in ENDS:
                self.take()
            else:
                words.append(self.read_word())
        self.take()
        return words


def word_of_heredoc(text: str, line: int, quoted: bool) -> Word:
    """The text of a here-document as one word, whose lines are those of the file."""
    word = Word(line, raw=text)
    if quoted:
        word.add(text, live=False, quoted=True)
    else:
        Reader(text, line).read_replaced(word)
    return word


def _names_an_array(word: Word) -> bool:
    value = word.value
    if word.array is not None or not value.endswith("="):
        return False
    return value.removesuffix("=").removesuffix("+").isidentifier()
