"""The catalogs that hundreds of directives ask: each is read once until it changes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tools import transcript_catalog
from workshop import catalog
from workshop.catalog import Exercise

GALLERY = Path(transcript_catalog.__file__).parents[1] / "gallery" / "catalog.toml"


def exercises(root: Path) -> list[Exercise]:
    """Every exercise, as ``workshop.catalog.load_catalog`` reads them.

    Raises:
        UserError: what that function raises.
    """
    return list(_exercises(root, state(root / "exercises" / "catalog.toml")))


@cache
def _exercises(root: Path, _state: tuple[int, int]) -> tuple[Exercise, ...]:
    return tuple(catalog.load_catalog(root))


def transcripts(path: Path) -> dict[str, transcript_catalog.Entry]:
    """The entries of this catalog and of the gallery; don't change them.

    Raises:
        TranscriptError: what ``tools.transcript_catalog.load_catalog`` raises.
    """
    return _transcripts(path, state(path), state(GALLERY))


@cache
def _transcripts(path: Path, *_states: tuple[int, int]):
    return transcript_catalog.load_catalog(path)


def state(path: Path) -> tuple[int, int]:
    """Differs once the file has changed, so that what is remembered isn't used."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
