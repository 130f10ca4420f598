"""Findings as text for people, as JSON, and as SARIF for code hosts."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence

from .rule import ERROR, NOTE, WARNING, Finding, Rule
from .rules import RULES

NAME = "workshop lint"
WIDTH = 88
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SEVERITIES = (ERROR, WARNING, NOTE)
FORMATS = ("text", "json", "sarif")


def render(findings: Sequence[Finding], names: Sequence[str], form: str) -> str:
    if form == "json":
        return json.dumps(as_json(findings, names), indent=2)
    if form == "sarif":
        return json.dumps(as_sarif(findings), indent=2)
    return as_text(findings, names)


def as_text(findings: Sequence[Finding], names: Sequence[str]) -> str:
    """A block of lines for each finding; a reason only where it's needed first."""
    lines: list[str] = []
    explained: set[str] = set()
    for name in names:
        own = [finding for finding in findings if finding.path == name]
        own.sort(key=importance)  # errors first, each kind in the order of lines
        if not own:
            lines += [f"{name}: no findings", ""]
        for finding in own:
            lines += [*told(finding, finding.rule.code not in explained), ""]
            explained.add(finding.rule.code)
    if findings:
        lines.append(totals(findings, names))
    return "\n".join(lines).rstrip("\n")


def importance(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def told(finding: Finding, with_reason: bool) -> list[str]:
    rule = finding.rule
    head = (
        f"{finding.path}:{finding.line}: {finding.severity} {rule.code}: {finding.what}"
    )
    lines = [head]
    if with_reason:
        lines += folded("why", rule.reason)
    if finding.cure == rule.cure:
        lines += folded("cure", finding.cure)
    else:
        lines.append(f"    {'cure':<5} {finding.cure}")  # to copy
    if with_reason:
        lines += folded("read", str(rule.page))
    return lines


def explained(rule: Rule) -> list[str]:
    """All that is known of a rule."""
    lines = [f"{rule.code} {rule.title} ({rule.severity})"]
    lines += folded("why", rule.reason) + folded("cure", rule.cure)
    lines += folded("read", str(rule.page))
    for heading, example in (("Bad", rule.bad), ("Good", rule.good)):
        shown = example.replace("\r", "\\r").split("\n")
        lines += ["", f"{heading}:", *(f"    {line}" for line in shown)]
    return lines


def folded(label: str, text: str) -> list[str]:
    first = f"    {label:<5} "
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def totals(findings: Sequence[Finding], names: Sequence[str]) -> str:
    count = Counter(finding.severity for finding in findings)
    parts = [plural(count[kind], kind) for kind in SEVERITIES if count[kind]]
    where = "" if len(names) == 1 else f" in {plural(len(names), 'file')}"
    return f"{', '.join(parts)}{where}"


def plural(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def as_json(findings: Sequence[Finding], names: Sequence[str]) -> dict:
    return {
        "files": list(names),
        "errors": sum(finding.is_error for finding in findings),
        "findings": [
            {
                "file": finding.path,
                "line": finding.line,
                "code": finding.rule.code,
                "severity": finding.severity,
                "what": finding.what,
                "why": finding.rule.reason,
                "cure": finding.cure,
                "page": finding.rule.page.anchor,
            }
            for finding in findings
        ],
    }


def as_sarif(findings: Sequence[Finding]) -> dict:
    """The form that GitHub, GitLab and editors show beside the line."""
    driver = {
        "name": NAME,
        "rules": [
            {
                "id": rule.code,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.reason},
                "help": {"text": f"{rule.cure} See {rule.page}."},
                "defaultConfiguration": {"level": rule.severity},
            }
            for rule in RULES
        ],
    }
    run = {"tool": {"driver": driver}, "results": [result(each) for each in findings]}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def result(finding: Finding) -> dict:
    place = {
        "artifactLocation": {"uri": finding.path},
        "region": {"startLine": finding.line},
    }
    return {
        "ruleId": finding.rule.code,
        "level": finding.severity,
        "message": {"text": f"{finding.what}. Cure: {finding.cure}"},
        "locations": [{"physicalLocation": place}],
    }
