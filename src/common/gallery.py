"""The failure gallery: what gallery/catalog.toml says about each failure.

The pages are built without torch, so this module needs none.
"""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, fields
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parents[2] / "gallery"
CURE = "# The cure: "  # the first line below a program, before the diff that cures it
SYMPTOMS = (
    "hangs",
    "does not start",
    "crashes",
    "is slow",
    "runs and is wrong",
)


class GalleryError(Exception):
    """One sentence: an unknown name, or an entry that can't be read."""


@dataclass(frozen=True)
class Failure:
    """One ``[[failure]]`` of the catalog, whose first lines explain the fields."""

    name: str
    symptom: str
    title: str
    command: str
    shows: str
    cured_shows: str
    question: str
    tool: str
    cure: str
    lesson: str
    status: int = 1
    limit: int = 120
    messages: tuple[str, ...] = ()
    needs: str = ""
    note: str = ""

    @property
    def program(self) -> str:
        """The path of the failing program, from the folder of the workshop."""
        return f"gallery/{self.name}.py"

    def text(self, folder: Path = FOLDER) -> str:
        """The failing program, without the cure below it."""
        return self._parts(folder)[0]

    def cured_text(self, folder: Path = FOLDER) -> str:
        """The program that the cure makes of it.

        Raises:
            GalleryError: the cure is missing, or doesn't fit the program.
        """
        program, cure = self._parts(folder)
        sentence, _, diff = cure.partition("\n#\n")
        if not diff:
            raise GalleryError(f"{self.program} has no {CURE.strip()!r} with a diff")
        docstring = sentence.replace("\n# ", " ")
        lines = [f'"""{docstring}"""', *program.splitlines()[1:]]
        for hunk in re.split(r"^# @@\n", diff, flags=re.M):
            lines = self._changed(lines, hunk.splitlines())
        return "\n".join(lines).rstrip("\n") + "\n"

    def _parts(self, folder: Path) -> tuple[str, str]:
        """The program, and what follows "The cure:" below it."""
        text = (folder / f"{self.name}.py").read_text(encoding="utf-8")
        program, _, cure = text.partition(f"\n{CURE}")
        return program, cure

    def _changed(self, lines: list[str], hunk: list[str]) -> list[str]:
        """The lines with one hunk applied; its lines begin with "# -", "# +", "#  "."""
        diff = [line[2:] or " " for line in hunk]
        before = [line[1:] for line in diff if line[0] in "- "]
        after = [line[1:] for line in diff if line[0] in "+ "]
        size = len(before)
        starts = [n for n in range(len(lines)) if lines[n : n + size] == before]
        if len(starts) != 1:
            raise GalleryError(
                f"{self.program}: the lines that the cure changes stand in the program "
                f"{len(starts)} times, not once: {before[:1]}"
            )
        start = starts[0]
        return lines[:start] + after + lines[start + size :]


def load_gallery(path: Path = FOLDER / "catalog.toml") -> dict[str, Failure]:
    """The failures by name, in the catalog's order.

    Raises:
        GalleryError: the catalog isn't TOML, or a field is missing, unknown or wrong.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("failure", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise GalleryError(f"cannot read {path}: {error}") from error
    failures: dict[str, Failure] = {}
    for table in tables:
        failure = _failure(table)
        if failure.name in failures:
            raise GalleryError(f"{path.name}: {failure.name} appears twice")
        failures[failure.name] = failure
    return failures


def find_failure(failures: dict[str, Failure], name: str) -> Failure:
    """The failure of this name.

    Raises:
        GalleryError: there is none; near names are offered.
    """
    if name in failures:
        return failures[name]
    near = difflib.get_close_matches(name, failures, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "--list shows all of them"
    raise GalleryError(f"the gallery has no failure {name!r}: {hint}")


def _failure(table: dict) -> Failure:
    name = str(table.get("name", ""))
    known = {field.name for field in fields(Failure)}
    needed = known - {"status", "limit", "messages", "needs", "note"}
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise GalleryError(f"catalog.toml: {name!r} is no name in snake_case")
    wrong = sorted(set(table) - known) or sorted(needed - set(table))
    if wrong:
        raise GalleryError(f"catalog.toml: {name}: unknown or missing: {wrong}")
    if table["symptom"] not in SYMPTOMS:
        raise GalleryError(f"catalog.toml: {name}: no symptom {table['symptom']!r}")
    messages = tuple(table.get("messages", ()))
    try:
        for pattern in (table["shows"], table["cured_shows"], *messages):
            re.compile(pattern)
    except (re.error, TypeError) as error:
        raise GalleryError(f"catalog.toml: {name}: {error}") from error
    return Failure(**{**table, "messages": messages})
