"""Paths as people see them."""

from __future__ import annotations

from pathlib import Path


def shown_path(path: Path) -> str:
    """The path as one would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
