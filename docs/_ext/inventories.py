"""Links into other documentation without the network: text lists become inventories.

``docs/_inventories/torch.txt`` and ``python.txt`` list the names which our pages may
link, one per line: name, kind, page. Sphinx wants them as ``objects.inv``; conf.py
calls :func:`write` at the start of each build. A name that is not listed fails the
build (``-n -W``), a listed name that does not exist fails ``--check``::

    python docs/_ext/inventories.py --check
"""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "_inventories"
KINDS = (
    "attribute",
    "class",
    "data",
    "exception",
    "function",
    "method",
    "module",
    "label",
    "envvar",
)
OUTSIDE_PYTHON = ("label", "envvar")


@dataclass(frozen=True)
class Entry:
    """One line of a list: what may be linked, and the page that explains it."""

    name: str
    kind: str
    page: str

    @property
    def line(self) -> str:
        """The entry in the inventory's own format."""
        domain = "std" if self.kind in OUTSIDE_PYTHON else "py"
        anchor = {
            "module": f"module-{self.name}",
            "envvar": f"envvar-{self.name}",
        }.get(self.kind, self.name)
        page = self.page if "#" in self.page else f"{self.page}#{anchor}"
        return f"{self.name} {domain}:{self.kind} 1 {page} -"


def read(path: Path) -> list[Entry]:
    """The entries of a list.

    Raises:
        ValueError: a line has not three words, an unknown kind, or is there twice.
    """
    entries: list[Entry] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or words[1] not in KINDS:
            raise ValueError(
                f"{path.name}, line {number}: write 'NAME KIND PAGE' "
                f"with KIND one of {', '.join(KINDS)}, not {line!r}"
            )
        entries.append(Entry(*words))
    names = [entry.name for entry in entries]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path.name}: {', '.join(twice)} is listed twice")
    return entries


def write(target: Path, folder: Path = FOLDER) -> dict[str, str]:
    """Write ``NAME.inv`` for each ``NAME.txt``; returns the path of each, by NAME."""
    target.mkdir(parents=True, exist_ok=True)
    written = {}
    for path in sorted(folder.glob("*.txt")):
        head = (
            "# Sphinx inventory version 2\n"
            f"# Project: {path.stem}\n# Version:\n"
            "# The remainder of this file is compressed using zlib.\n"
        )
        body = "".join(entry.line + "\n" for entry in read(path))
        inventory = target / f"{path.stem}.inv"
        # two builds at once must never read half a file
        draft = target / f"{path.stem}.{os.getpid()}.tmp"
        draft.write_bytes(head.encode() + zlib.compress(body.encode(), 9))
        draft.replace(inventory)
        written[path.stem] = str(inventory)
    return written


def find(name: str) -> object:
    """The Python object of a dotted name, its module imported as needed.

    Raises:
        AttributeError: no module of that name has such an attribute.
    """
    parts = name.split(".")
    found: object = importlib.import_module("builtins")
    cut = len(parts)
    while cut:
        try:
            found = importlib.import_module(".".join(parts[:cut]))
            break
        except ImportError:
            cut -= 1
    for part in parts[cut:]:
        found = getattr(found, part)
    return found


def missing(folder: Path = FOLDER) -> list[str]:
    """Every listed name that the installed torch or Python does not have."""
    gone = []
    for path in sorted(folder.glob("*.txt")):
        for entry in read(path):
            if entry.kind in OUTSIDE_PYTHON:
                continue
            try:
                find(entry.name)
            except AttributeError:
                gone.append(f"{path.name}: {entry.name}")
    return gone


def main() -> int:
    if sys.argv[1:] != ["--check"]:
        print("usage: python docs/_ext/inventories.py --check", file=sys.stderr)
        return 2
    gone = missing()
    for name in gone:
        print(f"{name} does not exist in what is installed here")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
