"""``.. play:: ring-player``: a figure to play with, and the still one it stands for.

The content of the directive is a still figure or a small table. It's what readers see
without JavaScript, on paper, and in everything but HTML. In a browser the custom
element ``<ring-player>`` of ``docs/_static/js/ring-player.js`` takes its place. The
options become its attributes::

    .. play:: ring-player
       :ranks: 4

       .. figure:: ../figures/03_ring.svg

Only pages that use an element load its script, ``play.js`` and ``play.css``. A script
that needs another one says so in a line of its own: ``// Needs formulas.js``.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

SCRIPTS = Path(__file__).resolve().parent.parent / "_static" / "js"
NEEDS = re.compile(r"^// Needs (\S+\.js)$", re.M)


class play(nodes.container):
    """A still figure inside the element that takes its place."""


class AnyOption(dict):
    """Options are checked against the element's script, not against a list."""

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str):
        return directives.unchanged


def scripts(name: str) -> list[str]:
    """The scripts of an element in the order in which they have to run."""
    needed = NEEDS.findall((SCRIPTS / f"{name}.js").read_text(encoding="utf-8"))
    return ["play.js", *needed, f"{name}.js"]


class PlayDirective(SphinxDirective):
    """The element with the still figure in it."""

    required_arguments = 1
    has_content = True
    option_spec = AnyOption()

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        path = SCRIPTS / f"{name}.js"
        if "-" not in name or not path.is_file():
            raise self.error(f"there is no docs/_static/js/{name}.js")
        self.env.note_dependency(str(path))
        text = path.read_text(encoding="utf-8")
        for option in self.options:
            if f'"{option}"' not in text:
                raise self.error(f"{path.name} doesn't read the option {option!r}")
        element = play(name=name, options=dict(self.options))
        self.set_source_info(element)
        self.state.nested_parse(self.content, self.content_offset, element)
        return [element]


def visit_play(self: HTML5Translator, node: play) -> None:
    if self.builder.name == "epub":
        return self.visit_container(node)
    self.body.append(self.starttag(node, node["name"], CLASS="play", **node["options"]))
    self.body.append('<div class="still">\n')


def depart_play(self: HTML5Translator, node: play) -> None:
    if self.builder.name == "epub":
        return self.depart_container(node)
    self.body.append(f"</div>\n</{node['name']}>\n")


def add_scripts(app, pagename, templatename, context, doctree) -> None:
    """Called for each page: what's added here is added to this page alone."""
    names = [node["name"] for node in doctree.findall(play)] if doctree else []
    for script in dict.fromkeys(file for name in names for file in scripts(name)):
        app.add_js_file(f"js/{script}", loading_method="defer")
    if names:
        app.add_css_file("css/play.css")


def setup(app) -> dict:
    app.add_node(play, html=(visit_play, depart_play))
    app.add_directive("play", PlayDirective)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
