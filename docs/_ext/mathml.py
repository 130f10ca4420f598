"""Formulas as MathML: drawn by the browser itself, without JavaScript.

docutils converts the TeX; a formula it cannot convert is a warning with its place,
so the build (``-W``) stops there.
"""

from __future__ import annotations

import re
from html import escape, unescape

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

# an EPUB is XML, which has no other names than these
NAMED_BY_HTML = re.compile(r"&(?!amp;|lt;|gt;|quot;)\w+;")
LOG = logging.getLogger(__name__)


def to_mathml(node: nodes.Element, tex: str, *, block: bool) -> str:
    """The formula as a ``<math>`` element, or its TeX as code after a warning."""
    try:
        found = latex2mathml.tex2mathml(tex, as_block=block)
    except MathError as error:
        LOG.warning("cannot convert the formula %r: %s", tex, error, location=node)
        return f"<code>{escape(tex)}</code>"
    return NAMED_BY_HTML.sub(lambda name: unescape(name[0]), found)


def visit_math(self, node: nodes.math) -> None:
    self.body.append(to_mathml(node, node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(self, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    tex = node.astext()
    if "\\\\" in tex and "\\begin{" not in tex:
        tex = f"\\begin{{aligned}}{tex}\\end{{aligned}}"
    self.body.append(to_mathml(node, tex, block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app) -> dict:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
