"""The commands of a shell script, with their lines, operators and blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .words import Inside, Reader, Word, word_of_heredoc

OPERATORS = ("&&", "||", ";;", "|&", ";", "&", "|", "\n")
REDIRECTION = re.compile(r"(\d*)(&>>|&>|<<<|<<-|<<|>>|>&|<&|>\||<>|<|>)")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^]]*\])?(\+?)=")
DECLARE = ("export", "declare", "local", "readonly", "typeset")
OPENS = {"then": "if", "do": "loop", "{": "group"}
CLOSES = ("fi", "done", "}", "esac")
CONDITIONS = ("if", "elif", "while", "until")
DEEPEST = 8  # $(...) inside of each other; quotes that aren't closed make more
KEYWORDS = (*OPENS, *CLOSES, *CONDITIONS, "else", "!")


@dataclass(frozen=True)
class Heredoc:
    """The text after ``<<EOF``; the shell replaces its variables unless quoted."""

    text: str
    line: int
    quoted: bool
    end: str = "END"  # the word after <<

    @property
    def word(self) -> Word:
        return word_of_heredoc(self.text, self.line, self.quoted)


@dataclass(frozen=True)
class Assignment:
    """``NAME=WORD`` before a command, on its own, or after ``export``."""

    name: str
    word: Word
    line: int
    certain: bool  # neither in a block nor in a function
    adds: bool  # NAME+=
    in_loop: bool = False  # in a loop, and in no branch of it


@dataclass
class Command:
    """One simple command. ``ends`` is the operator after it."""

    line: int
    words: list[Word] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    redirects: list[tuple[str, Word]] = field(default_factory=list)
    heredocs: list[Heredoc] = field(default_factory=list)
    blocks: tuple[str, ...] = ()
    follows: str = ""  # the operator before it
    ends: str = "\n"
    tested: bool = False  # the condition of an if or a while, or after "!"
    captured: bool = False  # inside $(...)
    negated: bool = False  # after "!", which turns its status over
    background: bool = False  # it, or a pipe or a block around it, ends with "&"

    @property
    def name(self) -> str:
        return self.words[0].value if self.words else ""

    @property
    def in_loop(self) -> bool:
        return "loop" in self.blocks

    @property
    def in_branch(self) -> bool:
        """Maybe it isn't run: in an if or a case, or after a && or a ||."""
        return bool({"if", "case"} & set(self.blocks)) or self.follows in ("&&", "||")

    @property
    def last_line(self) -> int:
        words = [*self.words, *(each.word for each in self.assignments)]
        lines = [word.line + word.raw.count("\n") for word in words]
        return max([self.line, *lines])


def parse(text: str, line: int = 1, depth: int = 0) -> list[Command]:
    """All commands of a text in their order, with those inside ``$(...)``."""
    return Parser(text, line, depth).parse()


class Parser:
    """Reads what it understands and skips the rest; wrong shell never stops it."""

    def __init__(self, text: str, line: int, depth: int = 0):
        self.reader = Reader(text, line)
        self.depth = depth  # of $(...) inside of $(...)
        self.commands: list[Command] = []
        self.blocks: list[str] = []
        self.starts: list[int] = []  # the first command of each of these blocks
        self.closed: list[Command] = []  # of the block that has just ended
        self.waiting: list[tuple[Command, str, bool, bool]] = []  # heredocs to read
        self.follows = ""
        self.tested = False
        self.negated = False
        self.command = self._new()

    def _new(self) -> Command:
        return Command(self.reader.line)

    def parse(self) -> list[Command]:
        reader = self.reader
        while reader.more:
            reader.skip_blanks()
            if not reader.more:
                break
            if reader.starts("#"):
                reader.skip_comment()
            elif self._read_redirection() or self._read_operator():
                continue
            elif reader.starts("(") or reader.starts(")"):
                self._read_parenthesis()
            else:
                self._read_word()
        self._finish("\n")
        return self.commands

    def _read_word(self) -> None:
        reader = self.reader
        at_start = not self.command.words and not self.command.assignments
        if at_start and reader.starts("[["):
            self._read_test("]]")
            return
        word = reader.read_word()
        if not word.raw:  # a character that starts no word
            reader.take()
            return
        if at_start and word.raw in KEYWORDS:
            self._keyword(word.raw)
            return
        if at_start:
            self.command.line = word.line
        if not self.command.words and ASSIGNMENT.match(word.value):
            self.command.assignments.append(self._assignment(word))
        else:
            self.command.words.append(word)
        if word.raw == "in" and self.command.name == "case":
            self._finish("\n")
            self._open("case")

    def _assignment(self, word: Word) -> Assignment:
        match = ASSIGNMENT.match(word.value)
        assert match
        certain = not (set(self.blocks) & {"if", "loop", "case", "function"})
        certain = certain and not match[2] and self.follows not in ("&&", "||")
        branch = bool(set(self.blocks) & {"if", "case", "function"} or match[2])
        always = not branch and self.follows not in ("&&", "||")
        in_loop = "loop" in self.blocks and always
        return Assignment(match[1], word, word.line, certain, bool(match[3]), in_loop)

    def _keyword(self, word: str) -> None:
        if word in OPENS:
            kind = OPENS[word]
            named = bool(self.blocks) and self.blocks[-1] == "function("
            if named:
                self.blocks[-1] = "function"
            else:
                self._open(kind)
            self.tested = False
        elif word in CLOSES:
            self._close()
        elif word == "!":
            self.negated = True
        elif word in CONDITIONS:
            self.tested = True
        if word == "elif":
            self._close()

    def _open(self, kind: str) -> None:
        self.blocks.append(kind)
        self.starts.append(len(self.commands))

    def _close(self) -> None:
        if self.blocks:
            self.blocks.pop()
            self.closed = self.commands[self.starts.pop() :]

    def _read_test(self, end: str) -> None:
        """``[[ ... ]]`` is one word: its < and && are not the shell's."""
        reader = self.reader
        word = Word(reader.line)
        start = reader.at
        while reader.more and not reader.starts(end) and not reader.starts("\n"):
            reader.take()
        if reader.starts(end):
            reader.take(len(end))
        word.raw = reader.text[start : reader.at]
        word.add(word.raw, live=True, quoted=False)
        self.command.line = word.line
        self.command.words.append(word)

    def _read_parenthesis(self) -> None:
        reader = self.reader
        if reader.starts("((") and not self.command.words:
            self._read_test("))")
            return
        opening = reader.take() == "("
        if opening and self.command.words and reader.starts(")"):  # NAME()
            reader.take()
            self.command = self._new()
            self._open("function(")
        elif opening:
            self._finish(";")
            self._open("subshell")
        elif self.blocks and self.blocks[-1] == "case":  # the end of a pattern
            self.command = self._new()
        else:
            self._finish(";")
            if "subshell" in self.blocks:
                self._close()

    def _read_redirection(self) -> bool:
        reader = self.reader
        match = REDIRECTION.match(reader.text, reader.at)
        if match is None:
            return False
        if match[2] in "<>" and reader.text[match.end() :].startswith("("):
            self._read_process()
            return True
        reader.take(len(match[0]))
        reader.skip_blanks()
        word = reader.read_word()
        if match[2] in ("<<", "<<-"):
            tabs = match[2] == "<<-"
            quoted = word.value != word.raw
            self.waiting.append((self.command, word.value, quoted, tabs))
        else:
            self.command.redirects.append((match[2], word))
        return True

    def _read_process(self) -> None:
        """``<(...)`` or ``>(...)`` is a word with a command inside."""
        reader = self.reader
        word = Word(reader.line)
        start = reader.at
        reader.skip_nested("(", ")")
        word.raw = reader.text[start : reader.at]
        word.inside.append(Inside(word.raw[2:-1], word.line))
        word.add(word.raw, live=True, quoted=False)
        if self.command.redirects and not self.command.redirects[-1][1].raw:
            self.command.redirects[-1] = (word.raw[0], word)  # < <(...)
        else:
            self.command.words.append(word)

    def _read_operator(self) -> bool:
        reader = self.reader
        operator = next((o for o in OPERATORS if reader.starts(o)), None)
        if operator is None:
            return False
        reader.take(len(operator))
        self._finish(operator)
        if operator == "\n":
            self._read_heredocs()
        return True

    def _finish(self, operator: str) -> None:
        command = self.command
        if command.words or command.assignments or command.redirects:
            command.blocks = tuple(self.blocks)
            command.follows = self.follows
            command.ends = operator
            command.tested = self.tested or self.negated
            command.negated = self.negated
            self.negated = False
            if command.name in DECLARE:
                self._declare(command)
            self.commands.append(command)
            self._add_captured(command)
            self.follows = operator
        elif operator != "\n" and self.commands and self.commands[-1].ends == "\n":
            self.commands[-1].ends = operator  # after the end of a block
        self._finish_block(operator)
        if operator == "&":
            self._leave_in_background()
        if operator in ("\n", ";", "&"):
            self.follows = ""
        self.command = self._new()

    def _finish_block(self, operator: str) -> None:
        """What follows ``( ... )`` and ``{ ...; }`` is for all commands in there."""
        inside = [each for each in self.closed if not each.captured]
        self.closed = []
        if self.command.words or self.command.assignments or not inside:
            return
        if operator == "&":
            for each in inside:
                each.background = True
        if operator in ("|", "|&"):
            inside[-1].ends = operator

    def _leave_in_background(self) -> None:
        """``a | b &`` and ``a && b &`` leave both commands there."""
        own = [each for each in self.commands if not each.captured]
        blocks = tuple(self.blocks)
        for each in reversed(own):
            joined = each.background or each.ends in ("&", "|", "|&", "&&", "||")
            if each.blocks[: len(blocks)] != blocks or not joined:
                break
            each.background = True
            if each.follows not in ("|", "|&", "&&", "||"):
                break

    def _declare(self, command: Command) -> None:
        for word in command.words[1:]:
            if ASSIGNMENT.match(word.value):
                command.assignments.append(self._assignment(word))

    def _add_captured(self, command: Command) -> None:
        words = [*command.words, *(a.word for a in command.assignments)]
        words += [word for _, word in command.redirects]
        words += [each for word in words for each in word.array or []]
        once = {id(word): word for word in words}.values()  # export A=$(...) has two
        if self.depth >= DEEPEST:
            return
        for inside in (inside for word in once for inside in word.inside):
            for inner in parse(inside.text, inside.line, self.depth + 1):
                inner.captured = True
                inner.blocks = (*command.blocks, *inner.blocks)
                self.commands.append(inner)

    def _read_heredocs(self) -> None:
        reader = self.reader
        for command, end, quoted, tabs in self.waiting:
            line = reader.line
            body = []
            while reader.more:
                rest = reader.text.find("\n", reader.at)
                stop = len(reader.text) if rest < 0 else rest + 1
                text = reader.take(stop - reader.at)
                shown = text.lstrip("\t") if tabs else text
                if shown.rstrip("\r\n") == end:
                    break
                body.append(text)
            command.heredocs.append(Heredoc("".join(body), line, quoted, end))
        self.waiting.clear()
