"""The scripts that the linter is held to: tests/lint/good and tests/lint/bad."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOOD = sorted((HERE / "good").iterdir())
BAD = sorted((HERE / "bad").iterdir())
PROMISE = "# expected: "  # the last line of a bad script: its codes


def promised(text: str) -> list[str]:
    last = text.rstrip("\n").rpartition("\n")[2]
    assert last.startswith(PROMISE), last
    return sorted(last.removeprefix(PROMISE).split())
