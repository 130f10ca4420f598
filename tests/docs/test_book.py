"""The book for e-readers has every figure, and the PDF says what it needs.

The PDF itself needs hundreds of MB of LaTeX and minutes, so that it is built only where
WORKSHOP_PDF=1 asks for it.
"""

import os
import re
import sys
import zipfile
from xml.etree import ElementTree

import pytest
import yaml

from tests.docs.pages import ROOT, all_directives, sources
from tools import book

needs_sphinx = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="the site needs Python 3.11 or newer"
)
PAGE = '<html><body><img alt="a" src="../_images/{}.svg" /></body></html>'


# What is missing


def epub_with(folder, *, shows: str, holds: str):
    path = folder / "small.epub"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("docs/page.xhtml", PAGE.format(shows))
        archive.writestr(f"_images/{holds}.svg", "<svg/>")
    return path


def test_figure_that_an_epub_lacks_is_named(tmp_path):
    small = epub_with(tmp_path, shows="ring", holds="ring")
    assert book.missing_in_epub(small, {"ring"}) == []
    assert book.missing_in_epub(small, {"ring", "tree"}) == ["tree"]
    small = epub_with(tmp_path, shows="ring", holds="tree")
    assert book.missing_in_epub(small, {"ring"}) == ["_images/ring.svg"]


def test_figure_that_the_pdf_lacks_is_named(tmp_path):
    draw = r"\noindent\sphinxincludegraphics[width=1in]{{ring}.pdf}"
    (tmp_path / f"{book.NAME}.tex").write_text(draw)
    assert book.missing_in_latex(tmp_path, {"ring"}) == ["ring.pdf"]
    (tmp_path / "ring.pdf").touch()
    assert book.missing_in_latex(tmp_path, {"ring"}) == []
    assert book.missing_in_latex(tmp_path, {"ring", "tree"}) == ["tree"]


def test_figures_of_the_pages_are_known():
    # a phone's drawing is in no book
    named = {figure.file.stem for figure in all_directives("figure", "image")}
    pages = [ROOT / "index.rst", *book.pages()]
    assert book.drawings(pages, boxed=True) == named - {"start_deadlock_narrow"}
    assert book.drawings(pages, boxed=False) < named


# Bad input


@needs_sphinx
def test_pdf_without_latex_is_one_sentence_with_the_cure(monkeypatch, capsys):
    monkeypatch.setattr(book.shutil, "which", lambda program: None)
    assert book.main(["pdf"]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("book: a PDF needs latexmk, xelatex, rsvg-convert, ")
    assert "sudo apt-get install" in sentence and "texlive-xetex" in sentence


@pytest.mark.parametrize("words", [[], ["html"], ["epub", "pdf"]])
def test_another_kind_of_book_is_refused(words, capsys):
    assert book.main(words) == 2
    assert capsys.readouterr().err == "usage: python tools/book.py epub|pdf\n"


# Read the Docs


def test_read_the_docs_makes_the_same_books():
    """With the packages that ``make pdf`` names, and the files that it writes."""
    build = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text("utf-8"))["build"]
    assert build["apt_packages"] == book.PACKAGES.split()
    folders = {"epub": "epub", "pdf": "latex"}
    for kind, commands in build["jobs"]["build"].items():
        made = f"_build/{folders[kind]}/{book.NAME}.{kind}"
        target = f'"$READTHEDOCS_OUTPUT/{kind}"'
        assert commands == [
            f"python tools/book.py {kind}",
            f"mkdir -p {target}",
            f"cp {made} {target}",
        ]


# The books

OPEN_BOX = re.compile(r"<details[^>]* open[^>]*>\s*<summary[^>]*>(.*?)</summary>")


@pytest.mark.nightly
@needs_sphinx
def test_epub_is_whole(tmp_path, capsys):
    """Every page is XML with every figure; answers are closed, and tabs are none."""
    assert book.epub(tmp_path) == 0, capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / f"{book.NAME}.epub") as archive:
        names = {name for name in archive.namelist() if name.endswith(".xhtml")}
        pages = {name: archive.read(name).decode("utf-8") for name in names}
    for source in sources():
        name = source.relative_to(ROOT).with_suffix(".xhtml").as_posix()
        assert (name in pages) == (name != "404.xhtml"), name
        assert name == "404.xhtml" or name in pages["nav.xhtml"]
    for name, text in pages.items():
        ElementTree.fromstring(text)
        assert not re.search(r"<input|<script", text), name
        for title in OPEN_BOX.findall(text):
            assert not title.startswith(("Answer", "Solution", "Hint")), name


@pytest.mark.full
@pytest.mark.skipif(
    os.environ.get("WORKSHOP_PDF") != "1",
    reason="LaTeX takes minutes: WORKSHOP_PDF=1 asks for it",
)
def test_pdf_is_built_without_answers(tmp_path, capsys):
    assert book.why_no_pdf() == ""
    assert book.pdf(tmp_path) == 0, capsys.readouterr().err
    log = (tmp_path / f"{book.NAME}.log").read_text(encoding="utf-8", errors="replace")
    assert int(re.search(r"Output written on .* \((\d+) pages?", log)[1]) > 150
    source = (tmp_path / f"{book.NAME}.tex").read_text(encoding="utf-8")
    assert "left out here: The file you edit; Hint 1" in source
    assert "{Solution}" not in source and "{Answer}" not in source
