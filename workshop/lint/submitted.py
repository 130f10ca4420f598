"""Job scripts inside of a script, which it hands to sbatch or qsub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .directives import (
    NOT_COUNTED,
    PBS_FLAGS,
    Directive,
    pbs_options,
    slurm_options,
)
from .launches import base
from .script import Script
from .shell import Command, Heredoc
from .variables import REFERENCE, Variables
from .words import Word

SUBMITS = {"sbatch": "slurm", "qsub": "pbs"}
STDIN = ("", "-", "/dev/stdin")
FIRST_LINE = "#!/bin/bash"


@dataclass(frozen=True)
class Submitted:
    """A job script as the scheduler gets it."""

    text: str
    line: int  # of the file, where it begins
    unknown: frozenset[int] = frozenset()  # its lines that another shell fills in
    escaped: bool = False  # a variable of its own has a backslash
    on_one_line: bool = False
    scheduler: str = ""
    given: Directive | None = None  # the options of its command line

    def line_in_file(self, line: int) -> int:
        return self.line if self.on_one_line else self.line + line - 1

    def as_written(self, cure: str) -> str:
        if self.given is not None:
            for name in self.given.options:
                cure = cure.replace(f"#SBATCH --{name}", f"sbatch --{name}")
        return re.sub(r"(?<!\\)\$", r"\\$", cure) if self.escaped else cure

    def with_lines_in_file(self, told: str) -> str:
        """``line 6`` of the job script as a line of the file."""

        def moved(match: re.Match) -> str:
            return f"line {self.line_in_file(int(match[1]))}"

        return re.sub(r"\bline (-?\d+)\b", moved, told)


@dataclass(frozen=True)
class Call:
    """A command that submits: its options, and the file that it names."""

    options: dict[str, str]
    file: str


def submitted_by(script: Script) -> Iterator[Submitted]:
    """Those whose text and options the script itself shows."""
    for command in script.commands:
        tool = base(command.name)
        if tool not in SUBMITS:
            continue
        call = call_of(script, command)
        if "wrap" in call.options:
            yield from wrapped(command, call.options)
            continue
        text = text_of(script, command, call)
        components = text is not None and any(name in text.raw for name in NOT_COUNTED)
        if text is None or "$" in call.options or (call.options and components):
            continue
        line = command.line - text.line + 1  # of the job script
        given = Directive(line, "", call.options, late=False)
        yield read_text(text, script.variables, SUBMITS[tool], given)


def call_of(script: Script, command: Command) -> Call:
    tokens = [t for word in command.words[1:] for t in script.variables.tokens(word)]
    words = [token.text for token in tokens]
    if base(command.name) == "sbatch":
        options, at = slurm_options(words)
    else:
        options, at = pbs_options(words), end_of_pbs_options(words)
    file = words[at] if at < len(words) else ""
    return Call(options, file)


def end_of_pbs_options(words: list[str]) -> int:
    """The index of the first word after the options of qsub."""
    at = 0
    while at < len(words) and re.match(r"-[A-Za-z]", words[at]):
        alone = len(words[at]) > 2 or words[at][1] in PBS_FLAGS
        at += 1 if alone else 2
    return at


def text_of(script: Script, command: Command, call: Call) -> Word | None:
    """The job script: a file that the script has written, or a here-document."""
    file = call.file
    heredocs = heredocs_of(script, command)
    if file in STDIN and len(heredocs) == 1:
        return heredocs[0].word
    if file in STDIN:
        sources = [word.value for sign, word in command.redirects if sign == "<"]
        file = sources[0] if len(sources) == 1 else ""
    return script.variables.files.get(file.removeprefix("./"))


def heredocs_of(script: Script, command: Command) -> list[Heredoc]:
    """Its own, or that of ``cat <<END | sbatch``."""
    if command.heredocs or command.follows != "|":
        return command.heredocs
    own = [each for each in script.commands if not each.captured]
    before = next((a for a, b in pairwise(own) if b is command), command)
    return before.heredocs if before.name == "cat" else []


def read_text(
    word: Word, variables: Variables, scheduler: str, given: Directive
) -> Submitted:
    unknown = unknown_lines(word, variables)
    lines = variables.fill(word, word.line).split("\n")
    for number in unknown:
        if word.raw.split("\n")[number - 1].lstrip().startswith("$"):
            lines[number - 1] = "#"  # maybe a command, maybe a directive
    escaped = any(piece.live for piece in word.pieces)
    text = "\n".join(lines)
    return Submitted(
        text, word.line, unknown, escaped, scheduler=scheduler, given=given
    )


def unknown_lines(word: Word, variables: Variables) -> frozenset[int]:
    """The lines of a text in which the submitting shell replaces something."""
    found: set[int] = set()
    for number, line in enumerate(word.live.split("\n"), 1):
        names = [match[1] or match[2] for match in REFERENCE.finditer(line)]
        known = [name for name in names if variables.text(name, word.line) is not None]
        if "`" in line or line.count("$") > len(known):
            found.add(number)
    return frozenset(found)


def wrapped(command: Command, options: dict[str, str]) -> Iterator[Submitted]:
    """``sbatch -N 2 --wrap='srun ...'`` as the script that sbatch makes of it."""
    if "$" in options:
        return
    lines = [FIRST_LINE]
    for name, value in options.items():
        if name != "wrap":
            lines.append(f"#SBATCH --{name}={value}".removesuffix("="))
    unknown = {number for number, line in enumerate(lines, 1) if "$" in line}
    lines.append(options["wrap"])
    text = "\n".join(lines) + "\n"
    escaped = any(piece.live and piece.quoted for piece in wrap_word(command).pieces)
    yield Submitted(text, command.line, frozenset(unknown), escaped, on_one_line=True)


def wrap_word(command: Command) -> Word:
    """``--wrap=TEXT``, or the word after ``--wrap``."""
    for word, after in pairwise([*command.words, Word(command.line)]):
        if word.value == "--wrap":
            return after
        if word.value.startswith("--wrap="):
            return word
    return Word(command.line)
