"""Figures are drawn by committed scripts, and the drawing helper refuses bad ones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html import unescape
from pathlib import Path

import pytest

from tests.docs.pages import FIGURES, ROOT, all_directives
from tools.figures import scripts as figure_scripts

sys.path.append(str(FIGURES))
import readable
from readable import DrawingError
from svg import Drawing


def drawing(width=200, height=100) -> Drawing:
    return Drawing(width, height, "A title", "A description of what is shown.")


@pytest.mark.parametrize("extension", ["docs/_ext/inline_figures.py", "conf.py"])
def test_to_build_the_site_draws_no_figure(extension):
    """Some scripts here have the name of a package: an import must find that."""
    code = f"""
import runpy
from importlib.machinery import PathFinder
runpy.run_path({str(ROOT / extension)!r})
print(PathFinder.find_spec("workshop").origin)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert Path(done.stdout.strip()) == ROOT / "workshop" / "__init__.py"


def test_every_figure_is_drawn_again_byte_for_byte(tmp_path):
    """In a copy of the tree, as some figures are drawn from recorded numbers."""
    tree = tmp_path / "tree"
    for name in ("docs", "src"):
        shutil.copytree(
            ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for path in (tree / "docs" / "figures").glob("*.svg"):
        path.unlink()
    for script in figure_scripts():
        done = subprocess.run(
            [sys.executable, script.name],
            cwd=tree / "docs" / "figures",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{script.name}: {done.stderr}"
    for old in FIGURES.glob("*.svg"):
        new = tree / "docs" / "figures" / old.name
        assert new.is_file(), f"no script draws {old.name}"
        same = new.read_bytes() == old.read_bytes()
        assert same, f"{old.name} is drawn differently now: run make figures"


def test_every_figure_has_its_script_and_a_page():
    scripts = {script.stem for script in figure_scripts()}
    shown = {d.file for d in all_directives("figure", "image")}
    for figure in FIGURES.glob("*.svg"):
        stem = figure.stem
        owners = [name for name in scripts if stem == name or stem.startswith(name)]
        assert owners, f"no script docs/figures/{stem}.py draws {figure.name}"
        assert figure in shown, f"no page shows docs/figures/{figure.name}"


def test_figures_name_and_describe_themselves():
    for figure in FIGURES.glob("*.svg"):
        root = ElementTree.parse(figure).getroot()
        space = "{http://www.w3.org/2000/svg}"
        assert root.get("viewBox"), figure.name
        assert len(root.findtext(f"{space}desc", "").split()) >= 8, figure.name
        assert root.findtext(f"{space}title"), figure.name


# The helper


def test_the_same_drawing_gives_the_same_bytes(tmp_path):
    def draw(name):
        d = drawing(300, 200)
        d.box(20, 20, 100, 40, "rank 0", fill="blue")
        d.arrow(120, 40, 200, 41.3333, "send", bend=7)
        d.legend(20, 190, [("blue", "rank 0")])
        return d.save(tmp_path / name).read_bytes()

    assert draw("one.py") == draw("two.svg")


def test_text_is_escaped():
    d = drawing()
    d.text(10, 50, "a < b & c")
    assert "a &lt; b &amp; c" in d.svg()
    ElementTree.fromstring(d.svg())


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", readable.PALETTE)
def test_the_palette_can_be_read(name, theme):
    """Ink on each fill, and each outline as a text on paper and on its fill."""
    colors = (readable.INK, readable.PAPER, *readable.PALETTE[name])
    if theme == "dark":
        colors = [readable.DARK[color] for color in colors]
    ink, paper, fill, outline = colors
    assert readable.contrast(ink, fill) >= 4.5
    assert readable.contrast(outline, paper) >= 4.5
    assert readable.contrast(outline, fill) >= 4.5


def test_contrast_of_black_on_white_is_21():
    assert round(readable.contrast("#000000", "#ffffff"), 1) == 21


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda d: d.text(10, 50, "pale", color="#c0c8d0"), "contrast"),
        (lambda d: d.text(10, 50, "tiny", size=7), "too small"),
        (lambda d: d.text(150, 50, "a text too long for here"), "leaves the canvas"),
        (lambda d: d.box(10, 10, 60, 40, "a long label here"), "widen it"),
        (lambda d: d.box(10, 10, 180, 20, "two\nlines"), "higher than its box"),
        (lambda d: d.box(150, 10, 100, 20), "leaves the canvas"),
        (lambda d: d.arrow(10, 10, 12, 10), "shorter than its head"),
        (lambda d: d.box(10, 10, 60, 40, fill="pink"), "#rrggbb"),
        (lambda d: Drawing(10, 10, "", "x"), "needs a title"),
    ],
)
def test_what_a_reader_could_not_make_out_is_refused(draw, words):
    with pytest.raises(DrawingError, match=words):
        draw(drawing())


# The picture of the first page

PICTURES = pytest.mark.parametrize("name", ["start_deadlock", "start_deadlock_narrow"])


@PICTURES
def test_the_moving_picture_has_every_word_of_the_recorded_verdict(name):
    text = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    shown = unescape(" ".join(re.findall(r"<text [^>]*>([^<]*)</text>", text)))
    recorded = ROOT / "docs" / "transcripts" / "using_check_deadlock.txt"
    *lines, _status, _footer = recorded.read_text(encoding="utf-8").splitlines()
    # a long path is broken after a slash
    assert "".join("".join(lines).split()) in "".join(shown.split())
    assert sum("waits in" in line for line in lines) == 4


@PICTURES
def test_the_moving_picture_stops_soon_and_is_still_where_motion_is_not_wanted(name):
    text = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    delays = [float(delay) for delay in re.findall(r"animation-delay: ([\d.]+)s", text)]
    assert len(delays) > 8 and max(delays) + 0.35 <= 2
    faint = re.search(r"from \{ opacity: ([\d.]+) \}", text)
    assert faint and float(faint[1]) >= 0.4, "all of it can be read from the beginning"
    assert "infinite" not in text
    still = re.search(r"@media \(prefers-reduced-motion: reduce\).*", text)[0]
    assert ".appears { animation: none }" in still


# The size of each letter in css px, the picture being as wide as its column.
LETTERS = """() => [...document.querySelectorAll(".drawing")]
  .filter((one) => one.checkVisibility()).map((one) => {
    const scale = one.getBoundingClientRect().width / one.viewBox.baseVal.width;
    return [...one.querySelectorAll("text")].map((text) =>
      scale * text.getAttribute("font-size"));
  })"""


@pytest.mark.nightly
@pytest.mark.parametrize("screen", ["page", "phone"])
def test_the_moving_picture_can_be_read_on_a_phone_too(request, screen):
    browsed = request.getfixturevalue(screen)
    browsed.goto("index.html")
    [sizes] = browsed.evaluate(LETTERS)  # the other picture is hidden
    assert len(sizes) > 20 and min(sizes) >= 11
