"""The site builds everywhere: warnings are errors, no torch, no network, no CDN."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_directives, sources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import inventories


def test_the_site_builds_without_warning_torch_or_network(site):
    for name in ("index.html", "404.html", "search.html", "searchindex.js"):
        assert (site / name).is_file(), name


def test_every_source_is_a_page_of_the_site(site):
    for source in sources():
        page = site / source.relative_to(ROOT).with_suffix(".html")
        assert page.is_file(), f"{source} was not built: does a toctree name it?"


def test_no_page_loads_anything_from_elsewhere(site):
    """Links may lead elsewhere, what a page needs must lie beside it."""
    loads = re.compile(r"""(?:src|srcset)=["'](https?:)?//|@import|url\((https?:)?//""")
    link = re.compile(r"""<link(?![^>]*rel="canonical")[^>]*href=["'](https?:)?//""")
    for path in [*site.rglob("*.html"), *site.rglob("workshop.css")]:
        text = path.read_text(encoding="utf-8")
        for pattern in (loads, link):
            match = pattern.search(text)
            assert not match, f"{path.name} loads {text[match.start() :][:100]}"


def test_no_path_of_the_building_machine_is_on_a_page(site):
    told = (ROOT / "docs" / "setup.rst").read_text(encoding="utf-8")
    if f"``{ROOT}``" in told:
        pytest.skip(f"the pages speak of {ROOT}, the clone's folder in the container")
    here = re.compile(rf"(?<![~/]){re.escape(str(ROOT))}(?![\w.-])")
    for path in site.rglob("*.html"):
        assert not here.search(path.read_text(encoding="utf-8")), path.name


def test_the_page_not_found_works_at_any_depth(site):
    text = (site / "404.html").read_text(encoding="utf-8")
    relative = re.findall(r'(?:href|src)="(?![/#]|https?:|mailto:)([^"]+)"', text)
    assert not relative, f"404.html has links that break in a folder: {relative}"


def test_pictures_have_alternative_text(site):
    for path in site.rglob("*.html"):
        for image in re.findall(r"<img [^>]*>", path.read_text(encoding="utf-8")):
            assert re.search(r'alt="[^"]+"', image), f"{path.name}: {image}"


def test_long_figures_are_described_in_full():
    for figure in all_directives("figure"):
        words = figure.options.get("alt", "").split()
        assert len(words) >= 8, f"{figure.place}: say in :alt: what the figure shows"


# Links into other documentation


def test_every_name_in_the_inventories_exists():
    check = [sys.executable, "docs/_ext/inventories.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("torch.all_reduce function", "write 'NAME KIND PAGE'"),
        ("torch.cat verb page.html", "KIND one of"),
        ("torch.cat function a.html\ntorch.cat function b.html", "listed twice"),
    ],
)
def test_a_bad_line_of_an_inventory_is_named(tmp_path, line, words):
    path = tmp_path / "torch.txt"
    path.write_text(line)
    with pytest.raises(ValueError, match=re.escape(words)):
        inventories.read(path)


def test_a_name_that_does_not_exist_is_found_missing(tmp_path):
    (tmp_path / "python.txt").write_text(
        "os.environ data library/os.html\nos.enviorn data library/os.html\n"
    )
    assert inventories.missing(tmp_path) == ["python.txt: os.enviorn"]


# Read the Docs


def test_read_the_docs_installs_what_the_extra_site_lists():
    listed = (ROOT / "docs" / "requirements.txt").read_text().splitlines()
    listed = {line for line in listed if line[:1].isalpha()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extra = {
        requirement.split(";")[0].strip()
        for requirement in project["project"]["optional-dependencies"]["site"]
    }
    assert listed == extra


def test_read_the_docs_needs_no_torch():
    assert "torch" not in {
        re.split(r"[<>=; ]", line)[0]
        for line in (ROOT / "docs" / "requirements.txt").read_text().splitlines()
    }


def test_our_fonts_stand_beside_their_licences():
    fonts = ROOT / "docs" / "_static" / "fonts"
    readme = (fonts / "README.txt").read_text()
    for font in fonts.glob("*.woff2"):
        assert font.stem in readme or font.stem.rsplit("-")[-2] + "-*" in readme
    assert "GUST" in (fonts / "GUST-FONT-LICENSE.txt").read_text()
    assert "SIL OPEN FONT LICENSE" in (fonts / "OFL-FONT-LICENSE.txt").read_text()
    assert "Changed:" in readme


def test_the_style_sheet_closes_what_it_opens():
    """A lost brace would silently drop every rule after it."""
    text = Path(ROOT / "docs/_static/css/workshop.css").read_text()
    assert text.count("{") == text.count("}")
