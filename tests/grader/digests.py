"""What is in a folder, to see afterwards that nothing has changed."""

from __future__ import annotations

import hashlib
import stat
import subprocess
from pathlib import Path


def digest(folder: Path) -> dict[str, str]:
    """Path -> mode and content of each file of a folder that git or a learner has."""
    listing = ["git", "-C", str(folder), "ls-files", "-z"]
    listed = subprocess.run(listing, capture_output=True, text=True).stdout
    names = filter(None, listed.split("\0"))
    paths = [folder / name for name in names] or sorted(folder.rglob("*"))
    return {
        str(path): f"{stat.filemode(path.lstat().st_mode)} "
        + hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.is_file() and not path.is_symlink()
    }
