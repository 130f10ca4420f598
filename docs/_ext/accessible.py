"""What the theme and Sphinx leave out for readers with a keyboard or a screen reader.

The rest is in ``docs/_templates/layout.html`` (skip link), ``_static/css`` (contrast,
focus) and ``_static/js/keyboard.js``. Checked by axe on every page, see tests/docs.
"""

from __future__ import annotations

from docutils import nodes

# Sphinx writes captions of the table of contents as headings without a level.
CAPTION = ('role="heading"', 'role="heading" aria-level="2"')


def level_captions(app, pagename, templatename, context, doctree) -> None:
    """Give the captions in the sidebar and in the page a heading level."""
    toctree = context.get("toctree")

    def toctree_with_levels(**options) -> str:
        return (toctree(**options) or "").replace(*CAPTION)

    if callable(toctree):
        context["toctree"] = toctree_with_levels
    if "body" in context:
        context["body"] = context["body"].replace(*CAPTION)


def require_alternative_text(app, doctree: nodes.document) -> None:
    """A picture without ``:alt:`` is a warning, which fails the build."""
    from sphinx.util import logging

    log = logging.getLogger(__name__)
    for image in doctree.findall(nodes.image):
        if not image.get("alt", "").strip():
            log.warning(
                "the picture %s has no :alt: text", image["uri"], location=image
            )


def setup(app) -> dict:
    app.connect("html-page-context", level_captions)
    app.connect("doctree-read", require_alternative_text)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
