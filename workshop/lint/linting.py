"""Lint a text: every rule, less what its comments say to ignore."""

from __future__ import annotations

import re
from dataclasses import replace

from .rule import Finding, Problem, Rule
from .rules import RULES
from .script import Script
from .submitted import Submitted, submitted_by

CUT_OFF = "DT012"
UNREADABLE = "DT015"
FIRST_OF_COMMANDS = "DT100"  # rules before it are about directives and the file
MISSING = {"DT102", "DT201", "DT202"}  # rules about options that aren't there
IGNORE = re.compile(r"#.*?\bworkshop:\s*(ignore-file|ignore)\b[:\s]*([A-Z0-9, ]*)")


def lint(text: str, name: str = "-", is_line: bool = False) -> list[Finding]:
    """What is wrong with a job script or a launch line, in the order of its lines."""
    script = Script(name, text, is_line)
    findings = lint_script(script)
    told = {(each.line, each.rule.code) for each in findings}
    ignored = read_ignored(script)
    for inner in submitted_by(script):
        part = Script(name, inner.text, False, True, inner.scheduler, inner.given)
        for found in lint_script(part):
            moved = in_file(found, inner)
            place = (moved.line, moved.rule.code)
            known = found.line not in inner.unknown and place not in told
            if known and not is_ignored(moved, ignored):
                told.add(place)
                findings.append(moved)
    return sorted(findings, key=lambda found: (found.line, found.rule.code))


def lint_script(script: Script) -> list[Finding]:
    findings = [
        finding_of(script, rule, problem)
        for rule in RULES
        for problem in rule.check(script)
    ]
    findings = without_consequences(script, without_misread(findings))
    ignored = read_ignored(script)
    return [finding for finding in findings if not is_ignored(finding, ignored)]


def in_file(found: Finding, inner: Submitted) -> Finding:
    """A finding in a job script that is a part of this file."""
    line = inner.line_in_file(found.line)
    return replace(
        found,
        line=line,
        covered=(line,),
        what=inner.with_lines_in_file(found.what),
        cure=inner.with_lines_in_file(inner.as_written(found.cure)),
    )


def without_misread(findings: list[Finding]) -> list[Finding]:
    """Below a quote that isn't closed, commands and texts trade places."""
    if not any(each.rule.code == UNREADABLE for each in findings):
        return findings
    return [each for each in findings if each.rule.code < FIRST_OF_COMMANDS]


def without_consequences(script: Script, findings: list[Finding]) -> list[Finding]:
    """An option that's missing where a command is cut off is on its next line."""
    cut: set[int] = set()
    for line in (each.line for each in findings if each.rule.code == CUT_OFF):
        for command in script.commands:
            if command.line <= line <= command.last_line + 1:
                cut.update(range(command.line, command.last_line + 1))
    return [
        each
        for each in findings
        if each.rule.code not in MISSING or each.line not in cut
    ]


def finding_of(script: Script, rule: Rule, problem: Problem) -> Finding:
    cure = problem.cure or rule.cure
    covered = lines_of_command(script, problem.line)
    severity = problem.severity or rule.severity
    return Finding(
        script.name, problem.line, rule, problem.what, cure, severity, covered
    )


def lines_of_command(script: Script, line: int) -> tuple[int, ...]:
    """The first line of the command that a line belongs to, and the line itself."""
    for command in script.commands:
        if command.line <= line <= command.last_line and not command.captured:
            return (command.line, line)
    return (line,)


def read_ignored(script: Script) -> dict[int, set[str]]:
    """Codes by the lines that they are ignored on; line 0 is the whole file."""
    first = min((each.line for each in script.commands), default=len(script.lines) + 1)
    ignored: dict[int, set[str]] = {}
    for number, line in enumerate(script.lines, 1):
        match = IGNORE.search(line)
        if match is None:
            continue
        codes = set(re.findall(r"DT\d+", match[2])) or {"all"}
        alone = line.lstrip().startswith("#") and not line.startswith(
            ("#SBATCH", "#PBS")
        )
        if match[1] == "ignore-file":
            line_numbers = [0] if number <= first else []
        else:
            line_numbers = [number, number + 1] if alone else [number]
        for each in line_numbers:
            ignored.setdefault(each, set()).update(codes)
    return ignored


def is_ignored(finding: Finding, ignored: dict[int, set[str]]) -> bool:
    codes = set().union(*(ignored.get(n, set()) for n in (0, *finding.covered)))
    return bool({finding.rule.code, "all"} & codes)
