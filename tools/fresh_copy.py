"""Copies of the working tree, as a learner's clone would be, to run commands in."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_COPIED = (".git", ".venv", "_build", ".workshop", "__pycache__")
KNOWN_ANSWERS = "/answers.md"  # long, and no command that a page shows reads them


@contextmanager
def fresh_copy() -> Iterator[Path]:
    """A copy of the working tree, as a clone would be; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="transcript-") as folder:
        tree = Path(folder).resolve() / "workshop"
        (tree.parent / "tmp").mkdir()
        (tree.parent / "home").mkdir()
        copy_tree(tree)
        yield tree


def copy_tree(tree: Path) -> None:
    """Copy the working tree to this folder, without the checks' known answers."""
    for name in tree_files():
        if not name.endswith(KNOWN_ANSWERS):
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)


def tree_files() -> list[str]:
    """The files that a clone of the working tree as it is now would have."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode == 0:
        names = sorted(set(filter(None, listing.stdout.split("\0"))))
    else:  # a downloaded archive has no history
        names = [
            str(path.relative_to(ROOT))
            for path in sorted(ROOT.rglob("*"))
            if not set(path.relative_to(ROOT).parts) & set(NOT_COPIED)
        ]
    return [name for name in names if (ROOT / name).is_file()]
