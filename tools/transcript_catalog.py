"""docs/transcripts/catalog.toml: the commands whose output the pages show."""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path

from workshop.cluster import nodes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "transcripts"
OURS = FOLDER / "catalog.toml"
sys.path.append(str(ROOT / "src"))
from common.gallery import GalleryError, load_gallery  # noqa: E402

NAME = re.compile(r"[A-Za-z0-9_]+")
PRACTICE_CLUSTER = "practice cluster"


class TranscriptError(Exception):
    """One sentence: what is wrong with a name, the catalog, a file or a command."""


@dataclass(frozen=True)
class Entry:
    """One ``[[transcript]]`` of the catalog.

    ``command`` is one command or several, a line each (a backslash at the end of a line
    continues it). ``normalize`` holds pairs of a regular expression and what stands for
    it in comparisons (``re.MULTILINE``). ``fewer`` holds pairs of a regular expression
    and the smaller number that a test puts there. ``setup`` runs first, not shown,
    ``cleanup`` always runs last, whatever came before. ``inside`` is the start of a
    command which runs those that are shown, such as ``workshop cluster run``.
    ``after`` names the entry whose commands a reader of the page has typed before.
    ``needs`` names programs without which the command cannot run at all, or
    ``practice cluster``; ``packages`` names Python's that the workshop doesn't install.
    ``cold`` holds words of commands for which a test must start
    Python cold (tests/warm), and why.
    ``shows`` is what a failure of the gallery must show: all that is compared of it,
    because which ranks still report before torchrun ends them is chance.
    """

    name: str
    command: str
    normalize: tuple[tuple[str, str], ...] = ()
    fewer: tuple[tuple[str, str], ...] = ()
    sort_lines: bool = False
    status: int = 0
    setup: str = ""
    cleanup: str = ""
    inside: str = ""
    after: str = ""
    limit: int = 600
    cold: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    shows: str = ""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.txt"

    @property
    def commands(self) -> list[str]:
        """The command lines; continued lines belong to one command."""
        return re.findall(r"(?:.*\\\n)*.+", self.command.strip())

    def shortened(self, text: str) -> str:
        """``text``, commands or what they printed, with the numbers of ``fewer``."""
        for pattern, replacement in self.fewer:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        return text

    @property
    def needs_nodes(self) -> bool:
        return PRACTICE_CLUSTER in self.needs

    def missing_programs(self) -> list[str]:
        programs = [name for name in self.needs if name != PRACTICE_CLUSTER]
        absent = [name for name in programs if not shutil.which(name)]
        reasons = nodes.missing() if self.needs_nodes else []
        if reasons:
            absent.append(f"a practice cluster ({'; '.join(reasons)})")
        absent += [f"package {name}" for name in self.packages if not find_spec(name)]
        return absent


def load_catalog(path: Path | None = None) -> dict[str, Entry]:
    """The entries of the catalog by name, in its order, and those of the gallery.

    Raises:
        TranscriptError: it cannot be read, or an entry has a wrong or unknown field.
    """
    path = path or FOLDER / "catalog.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("transcript", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TranscriptError(f"cannot read {path}: {error}") from error
    entries: dict[str, Entry] = {}
    for table in tables:
        entry = _entry(path, table)
        if entry.name in entries:
            raise TranscriptError(f"{path.name}: {entry.name} appears twice")
        if entry.after and entry.after not in entries:
            raise TranscriptError(
                f"{path.name}: {entry.name} comes after {entry.after!r}, which is no "
                "entry above it"
            )
        entries[entry.name] = entry
    return entries | (of_the_gallery() if path == OURS else {})


# of an entry of the gallery -> of its transcript
NEEDS = {"": (), "cluster": (PRACTICE_CLUSTER,)}


def of_the_gallery() -> dict[str, Entry]:
    """The commands of the failure gallery, gallery/catalog.toml."""
    try:
        gallery = load_gallery()
    except GalleryError as error:
        raise TranscriptError(str(error)) from error
    entries: dict[str, Entry] = {}
    for failure in gallery.values():
        name = f"19_{failure.name}"
        entries[name] = Entry(
            name=name,
            command=failure.command,
            status=failure.status,
            limit=failure.limit,
            needs=NEEDS[failure.needs],
            shows=failure.shows,
        )
    return entries


def _entry(path: Path, table: dict) -> Entry:
    name = str(table.get("name", ""))
    if not NAME.fullmatch(name) or not str(table.get("command", "")).strip():
        raise TranscriptError(
            f"{path.name}: each [[transcript]] needs a command and a name of letters, "
            f"digits and underscores, not {name!r}"
        )
    if unknown := set(table) - {field.name for field in fields(Entry)}:
        raise TranscriptError(
            f"{path.name}: {name} has unknown fields {', '.join(sorted(unknown))}"
        )
    lists = {key: _pairs(path, table, key) for key in ("normalize", "fewer")}
    names = {key: tuple(table.get(key, ())) for key in ("needs", "packages")}
    return Entry(**{**table, **lists, **names})


def _pairs(path: Path, table: dict, key: str) -> tuple[tuple[str, str], ...]:
    try:
        pairs = tuple((str(a), str(b)) for a, b in table.get(key, ()))
        for pattern, replacement in pairs:
            re.sub(pattern, replacement, "")
    except (re.error, ValueError, TypeError) as error:
        raise TranscriptError(
            f"{path.name}: {table['name']}: {key} holds pairs "
            f'["regular expression", "replacement"]: {error}'
        ) from error
    return pairs


def select(catalog: dict[str, Entry], names: list[str]) -> list[Entry]:
    """The named entries, or all of them.

    Raises:
        TranscriptError: a name is not in the catalog; near names are offered.
    """
    for name in names:
        if name not in catalog:
            near = difflib.get_close_matches(name, catalog, n=3, cutoff=0.4)
            hint = f": did you mean {' or '.join(near)}?" if near else ""
            raise TranscriptError(
                f"{name!r} is not in docs/transcripts/catalog.toml{hint}"
            )
    return [catalog[name] for name in names or catalog]
