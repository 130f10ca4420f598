"""What may be written to a terminal, and in which colors."""

from __future__ import annotations

import sys
import unicodedata

from rich.console import Console

STYLES = {
    "right": "green",
    "not fully checked": "cyan",
    "wrong": "red",
    "changed": "yellow",
    "missing": "yellow",
    "not started": "dim",
    "environment": "magenta",
    "unreadable": "magenta",
    "not graded": "magenta",
}


def make_console(stderr: bool = False) -> Console:
    """A console that writes what the terminal cannot encode as an escape."""
    stream = sys.stderr if stderr else sys.stdout
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")
    return Console(
        stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False
    )


def printable(text: str) -> str:
    """The text without what would move the cursor, ring, or color the terminal."""
    return "".join(map(_shown, text.expandtabs(4)))


def _shown(char: str) -> str:
    is_control = unicodedata.category(char)[0] == "C" and char != "\n"
    return "?" if is_control else char
