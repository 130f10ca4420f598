"""Look up every switch of docs/production/switches.toml in clones of the libraries.

    git clone https://github.com/huggingface/accelerate libraries/accelerate
    python tools/library_switches.py libraries

FOLDER has clones, named like the repositories. A library without a clone is named and
left out. The commit is that of the catalog, or with --newest the clone's own: what is
not found there has moved or has another name now. Exit status 1 if anything is missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
from switches import load_libraries  # noqa: E402  # pyright: ignore


def file_at(clone: Path, commit: str, name: str) -> str:
    """The text of a file of a repository; empty if the commit has no such file."""
    command = ["git", "-C", str(clone), "show", f"{commit}:{name}"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout


def missing(library: dict, clone: Path, commit: str) -> list[str]:
    """A sentence for each switch whose text isn't where the catalog says."""
    return [
        f"{library['name']}: {switch['file']} at {commit} has no {switch['text']!r}"
        for switch in library["switch"]
        if switch["text"] not in file_at(clone, commit, switch["file"])
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder of the clones")
    parser.add_argument("--newest", action="store_true", help="look at HEAD")
    args = parser.parse_args()
    found = 0
    for library in load_libraries():
        clone = args.folder / library["repository"].split("/")[1]
        if not clone.is_dir():
            print(f"{library['name']}: no clone at {clone}: not looked at")
            continue
        commit = "HEAD" if args.newest else library["commit"]
        wrong = missing(library, clone, commit)
        found += len(wrong)
        print("\n".join(wrong or [f"{library['name']}: all {len(library['switch'])}"]))
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
