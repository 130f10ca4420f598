"""Build the pages as one book: ``make epub`` or ``make pdf``.

    python tools/book.py epub    # _build/epub/distributed-pytorch.epub
    python tools/book.py pdf     # _build/latex/distributed-pytorch.pdf

The PDF needs LaTeX; without it one sentence says what installs it. A book that lacks a
figure is an error.

Exit status: 0 built, 1 it does not build or lacks a figure, 2 a program is missing.
"""

from __future__ import annotations

import datetime
import posixpath
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `python tools/book.py`
from tools import site_builder  # noqa: E402

NAME = "distributed-pytorch"
PROGRAMS = ("latexmk", "xelatex", "rsvg-convert")
PACKAGES = (
    "texlive-xetex texlive-latex-extra texlive-fonts-recommended latexmk "
    "fonts-dejavu librsvg2-bin"
)
IMAGE = re.compile(r"""<img\b[^>]*?\bsrc=["']([^"']+)""")
OF_SITE = re.compile(r"^\.\. only:: builder_html\n(?:\n| +.*\n)+", re.M)  # in no book
FIGURE = re.compile(r"^( *)\.\. (?:figure|image):: (\S+)", re.M)
GRAPHICS = re.compile(r"\\sphinxincludegraphics(?:\[[^\]]*\])?\{\{(.+?)\}(\.\w+)\}")


def why_no_pdf() -> str:
    """Which programs are missing, and the cure, as a sentence; empty if none."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if not missing:
        return ""
    return (
        f"a PDF needs {', '.join(missing)}, which this machine lacks: "
        f"sudo apt-get install --no-install-recommends {PACKAGES}"
    )


def sphinx(builder: str, target: Path) -> int:
    """Build all pages except that for a wrong address; a warning is an error."""
    build = ["-m", "sphinx", "-W", "-n", "--keep-going", "-q", "-b", builder]
    today = datetime.date.today().isoformat()
    options = ["-D", "exclude_patterns=404.rst", "-D", f"version={today}"]
    doctrees = ["-d", str(target.with_name(f"{target.name}-doctrees"))]
    command = [sys.executable, *build, *options, *doctrees, ".", str(target)]
    return subprocess.run(command, cwd=ROOT).returncode


# Figures


def drawings(pages: list[Path], *, boxed: bool) -> set[str]:
    """The names of their pictures without endings; ``boxed``: also those in boxes."""
    texts = (OF_SITE.sub("", page.read_text(encoding="utf-8")) for page in pages)
    named = map(FIGURE.findall, texts)
    found = {(Path(path).stem, indent) for paths in named for indent, path in paths}
    return {name for name, indent in found if boxed or not indent}


def pages() -> list[Path]:
    """The sources of the pages, the first page aside."""
    return sorted((ROOT / "docs").rglob("*.rst"))


def missing_in_epub(book: Path, wanted: set[str]) -> list[str]:
    """What a page of the book shows and the book lacks, and figures on no page."""
    with zipfile.ZipFile(book) as archive:
        inside, shown = set(archive.namelist()), set()
        for page in sorted(name for name in inside if name.endswith(".xhtml")):
            folder = posixpath.dirname(page)
            for path in IMAGE.findall(archive.read(page).decode("utf-8")):
                shown.add(posixpath.normpath(posixpath.join(folder, unquote(path))))
    absent = wanted - {posixpath.splitext(posixpath.basename(one))[0] for one in shown}
    return sorted((shown - inside) | absent)


def missing_in_latex(folder: Path, wanted: set[str]) -> list[str]:
    """The same for what LaTeX has to draw."""
    (source,) = folder.glob(f"{NAME}.tex")
    shown = GRAPHICS.findall(source.read_text(encoding="utf-8"))
    files = {f"{stem}{ending}" for stem, ending in shown}
    gone = {name for name in files if not (folder / name).is_file()}
    return sorted(gone | (wanted - {stem for stem, _ in shown}))


# The two books


def epub(target: Path) -> int:
    status = sphinx("epub", target)
    if status:
        return status
    book = target / f"{NAME}.epub"
    wanted = drawings([ROOT / "index.rst", *pages()], boxed=True)
    return finish(book, missing_in_epub(book, wanted))


def pdf(target: Path) -> int:
    if status := sphinx("latex", target):
        return status
    book = target / f"{NAME}.pdf"
    # the first page isn't in it, nor what is in the boxes with answers
    if gone := missing_in_latex(target, drawings(pages(), boxed=False)):
        return finish(book, gone)
    quietly = ["-interaction=nonstopmode", "-halt-on-error", "-silent"]
    command = ["latexmk", "-xelatex", *quietly, f"{NAME}.tex"]
    done = subprocess.run(command, cwd=target, capture_output=True, text=True)
    if done.returncode or not book.is_file():
        log = book.with_suffix(".log")
        print(f"book: LaTeX failed, see {log}:\n{done.stdout[-1500:]}", file=sys.stderr)
        return 1
    return finish(book, [])


def finish(book: Path, missing: list[str]) -> int:
    if missing:
        print(f"book: {book.name} lacks {', '.join(missing)}", file=sys.stderr)
        return 1
    print(f"The book is {book} ({book.stat().st_size / 1e6:.1f} MB)")
    return 0


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    kinds = {"epub": epub, "pdf": pdf}
    if len(words) != 1 or words[0] not in kinds:
        print("usage: python tools/book.py epub|pdf", file=sys.stderr)
        return 2
    sentence = site_builder.why_not() or (words[0] == "pdf" and why_no_pdf())
    if sentence:
        print(f"book: {sentence}", file=sys.stderr)
        return 2
    target = ROOT / "_build" / {"epub": "epub", "pdf": "latex"}[words[0]]
    shutil.rmtree(target, ignore_errors=True)  # what is left there would be in the book
    return kinds[words[0]](target)


if __name__ == "__main__":
    sys.exit(main())
