"""Write docs/lint_rules.inc, the table of the linter's rules in docs/lint.rst.

    python tools/lint_rules.py

tests/lint/test_page.py compares the two.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `python tools/lint_rules.py`
from workshop.lint.rule import Rule  # noqa: E402
from workshop.lint.rules import RULES  # noqa: E402

TABLE = ROOT / "docs" / "lint_rules.inc"
GROUPS = {
    "DT0": "What the scheduler reads",
    "DT1": "What is started, where, and how many times",
    "DT2": "Where the ranks connect",
    "DT3": "How the job ends",
    "DT4": "Threads, paths and secrets",
}
HEAD = """\
.. list-table:: {title}
   :header-rows: 1
   :widths: 12 48 40

   * - Code
     - What it finds, and why it matters
     - Cure
"""
# Escaped, they stay as they are typed: no dash for two hyphens, no curly quotes
TYPOGRAPHY = re.compile(r"(-(?=-)|(?<=-)-|[\"'])")
ROW = """\
   * - {code}, {severity}
     - **{title}.** {reason}
     - {cure} :doc:`Read on <{page}>`
"""


def rst(text: str) -> str:
    """Plain text with backquotes, as reStructuredText."""
    parts = text.replace("\\", "\\\\").replace("*", "\\*").split("`")
    for number in range(0, len(parts), 2):  # outside backquotes
        parts[number] = TYPOGRAPHY.sub(r"\\\1", parts[number])
    return "``".join(parts).replace("|", "\\|")


def row(rule: Rule) -> str:
    page = rule.page.name.removeprefix("docs/")
    texts = {"title": rule.title, "reason": rule.reason, "cure": rule.cure}
    shown = {name: rst(text) for name, text in texts.items()}
    return ROW.format(code=rule.code, severity=rule.severity, page=page, **shown)


def table() -> str:
    parts = [".. Written by tools/lint_rules.py: change the rules, not this file.\n"]
    for prefix, title in GROUPS.items():
        rules = [rule for rule in RULES if rule.code.startswith(prefix)]
        parts.append(HEAD.format(title=title) + "".join(map(row, rules)))
    return "\n".join(parts)


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
