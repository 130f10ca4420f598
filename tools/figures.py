"""Draw the figures of the pages again (``make figures``).

Each ``docs/figures/NAME.py`` writes ``docs/figures/NAME.svg`` beside itself; the
helpers ``svg.py`` and ``readable.py`` are not figures. Exit status 1 if one cannot be
drawn.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "figures"
HELPERS = {"readable.py", "svg.py"}


def scripts() -> list[Path]:
    """The scripts that draw, in the order of their names."""
    return [path for path in sorted(FOLDER.glob("*.py")) if path.name not in HELPERS]


def main() -> int:
    failures = 0
    for script in scripts():
        done = subprocess.run(
            [sys.executable, str(script)], cwd=FOLDER, capture_output=True, text=True
        )
        written = script.with_suffix(".svg").is_file()
        if done.returncode == 0 and written:
            print(f"{script.stem}.svg")
            continue
        failures += 1
        lines = done.stderr.strip().splitlines() or ["it wrote no .svg"]
        print(f"{script.name} failed: {lines[-1]}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
