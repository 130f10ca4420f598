"""Make docs/_static/social.png, the picture that goes with a shared link to the site.

    python tools/social_image.py

It shows the name of the workshop above the first page's figure, 1,200 x 630 pixels, as
Open Graph asks for. Chromium draws it: Debian's package, or CHROMIUM=PATH.

Exit status: 0 made, 1 Chromium made none, 2 there is no Chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURE = ROOT / "docs" / "figures" / "start_deadlock.svg"
PICTURE = ROOT / "docs" / "_static" / "social.png"
WIDTH, HEIGHT = 1200, 630  # px
MADE = 60  # seconds within which it is drawn
PAGE = """<!doctype html><meta charset="utf-8">
<style>
  body {{ margin: 0; background: #1d4f91; color: #fff; font-family: sans-serif }}
  main {{ width: {width}px; height: {height}px; display: flex; align-items: center }}
  header {{ width: 360px; padding: 0 24px 0 40px }}
  h1 {{ margin: 0; font-size: 50px }}
  p {{ font-size: 28px; line-height: 1.4 }}
  div {{ background: #fbfcfd; border-radius: 14px; padding: 20px 12px }}
  svg {{ width: 724px; height: 387px; display: block }}
  .appears {{ animation: none !important }}
</style>
<main>
  <header>
    <h1>Distributed PyTorch</h1>
    <p>From one device to many nodes, starting on a laptop</p>
  </header>
  <div>{figure}</div>
</main>
"""


def chromium() -> str | None:
    """The program, from CHROMIUM or the PATH."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser")
    found = [shutil.which(name) for name in names if name]
    return next(filter(None, found), None)


def main() -> int:
    program = chromium()
    if program is None:
        print(
            "social_image: there is no chromium: apt-get install chromium",
            file=sys.stderr,
        )
        return 2
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        figure = FIGURE.read_text(encoding="utf-8")
        page.write_text(PAGE.format(width=WIDTH, height=HEIGHT, figure=figure), "utf-8")
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--screenshot={PICTURE}",
            page.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, timeout=MADE)
    if done.returncode:
        print(f"social_image: chromium: exit status {done.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
