"""The drawings of ``docs/figures`` stand in the page itself, in the page's colors.

A drawing that stands in the page, and not in an ``<img>``, follows the light and the
dark theme: ``figures.css``, written here from ``docs/figures/readable.py``, gives each
color its dark partner. The files stay as they are drawn, for everything that is not a
web page. On a phone, where a drawing is small, a link below it opens the file.
"""

from __future__ import annotations

import posixpath
import re
import sys
from html import escape
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from sphinx.writers.html5 import HTML5Translator

FOLDER = Path(__file__).resolve().parent.parent / "figures"
sys.path.append(str(FOLDER))
import readable  # noqa: E402

OWN_WORDS = re.compile(r"<(title|desc) .*?</\1>\n", re.S)
NAMED_BY_THEM = 'aria-labelledby="title desc"'


def style_sheet() -> str:
    """One rule for what is filled with a color, one for what is outlined in it."""
    return "".join(
        f'.drawing [{what}="{light}"] {{ {what}: light-dark({light}, {dark}); }}\n'
        for light, dark in readable.DARK.items()
        for what in ("fill", "stroke")
    )


def inline(text: str, description: str) -> str:
    """The drawing as an element of a page, described by the page's ``:alt:``."""
    described = f'class="drawing" aria-label="{escape(description)}"'
    return OWN_WORDS.sub("", text).replace(NAMED_BY_THEM, described, 1).strip()


def visit_image(self: HTML5Translator, node: nodes.image) -> None:
    path = Path(self.builder.srcdir) / node["uri"]
    if path.parent != FOLDER or path.suffix != ".svg" or self.builder.name == "epub":
        return HTML5Translator.visit_image(self, node)
    file = quote(self.builder.images[node["uri"]])
    self.body += [
        inline(path.read_text(encoding="utf-8"), node.get("alt", "")),
        f'<a class="larger" href="{posixpath.join(self.builder.imgpath, file)}">',
        "Open the figure</a>",
    ]
    raise nodes.SkipNode


def add_style_sheet(app) -> None:
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "figures.css").write_text(style_sheet(), encoding="utf-8")
        app.add_css_file("figures.css", priority=300)


def setup(app) -> dict:
    visitors = (visit_image, HTML5Translator.depart_image)
    app.add_node(nodes.image, override=True, html=visitors)
    app.connect("builder-inited", add_style_sheet)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
