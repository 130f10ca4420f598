"""What `workshop lint` and `python -m workshop.lint` do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from workshop.errors import UserError

from .linting import lint
from .report import FORMATS, explained, plural, render
from .rule import Finding
from .rules import BY_CODE

LARGEST = 2**20  # bytes of a script
STDIN, LINE = "-", "--line"
FOUND_ERRORS = 1


def run(jobs: Iterable[str], lines: Iterable[str], form: str = "text") -> int:
    """Print the findings of scripts and launch lines; 1 if one of them is an error.

    Raises:
        UserError: there is nothing to read, or a file can't be read as a script.
    """
    texts = [(job, read(job), False) for job in dict.fromkeys(jobs)]
    for number, line in enumerate(lines, 1):
        name = LINE if number == 1 else f"{LINE} {number}"
        texts.append((name, line, True))
    if not texts:
        raise UserError("name a job script, - for standard input, or --line 'COMMAND'")
    if form not in FORMATS:
        raise UserError(f"--format is one of {', '.join(FORMATS)}, not {form!r}")
    findings: list[Finding] = []
    for name, text, is_line in texts:
        findings += lint(text, name, is_line)
    print(render(findings, [name for name, _, _ in texts], form))
    return FOUND_ERRORS if any(finding.is_error for finding in findings) else 0


def explain(code: str) -> int:
    """Print what a rule finds, why, its cure, and a bad and a good example.

    Raises:
        UserError: no rule has that code.
    """
    rule = BY_CODE.get(code.upper())
    if rule is None:
        first, last = min(BY_CODE), max(BY_CODE)
        raise UserError(f"no rule has the code {code}: they are from {first} to {last}")
    print("\n".join(explained(rule)))
    return 0


def look_at(job: str) -> tuple[str, str]:
    """What to print about a script before it's submitted, and its number of errors."""
    findings = lint(read(job), job)
    errors = sum(finding.is_error for finding in findings)
    told = render(findings, [job], "text") if findings else ""
    return told, plural(errors, "error") if errors else ""


def read(job: str) -> str:
    """The text of a script.

    Raises:
        UserError: it can't be opened, isn't text, or is far too large.
    """
    try:
        data = sys.stdin.buffer.read() if job == STDIN else Path(job).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {job}: {error.strerror}") from error
    if b"\0" in data:
        raise UserError(f"{job} isn't a script: it holds bytes that no text has")
    if len(data) > LARGEST:
        raise UserError(f"{job} isn't a job script: it has {len(data)} bytes")
    if not data.strip():
        raise UserError(f"{job} is empty")
    return data.decode("utf-8", errors="replace")
