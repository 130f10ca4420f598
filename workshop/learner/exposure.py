"""Tell a learner once that checks run without isolation here, and what that means."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

SENTENCE = (
    "Your code runs here without isolation, like any program that you start ({why}). "
    "The verdicts are the same; `workshop doctor` says what isolation needs."
)


def say_once(root: Path, why: str, say: Callable[[str, str], None]) -> None:
    """Say it unless it was said on this machine, or in this container, before.

    Args:
        root: the workshop's folder, which remembers it.
        why: what forbids isolation; "" if checks are isolated.
        say: gets the sentence and its style.
    """
    if not why:
        return
    said = root / ".workshop" / "without_isolation"
    now = f"{socket.gethostname()}: {why}\n"
    with contextlib.suppress(OSError):
        if said.read_text(encoding="utf-8") == now:
            return
    say(SENTENCE.format(why=why), "dim")
    with contextlib.suppress(OSError):  # a clone that can't be written to: say it again
        said.parent.mkdir(exist_ok=True)
        said.write_text(now, encoding="utf-8")
