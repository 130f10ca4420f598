"""knowledge.js: what the search of lesson 19 and the site's search look a line up in.

It's made of workshop/diagnose and gallery/catalog.toml, as words.py there describes.
Only the pages that search load it.
"""

from __future__ import annotations

import json
from pathlib import Path

from play import play

from workshop.diagnose.words import knowledge

FILE = "js/knowledge.js"
SEARCH = "failure-search"
BEFORE_OTHERS = 400  # Sphinx loads files of a lower number first
AFTER_OTHERS = 900


def write(app) -> None:
    """Into the folder of the built site, like other static files."""
    if app.builder.format != "html" or app.builder.name == "epub":
        return
    target = Path(app.outdir) / "_static" / FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    found = knowledge(Path(app.srcdir))
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    target.write_text(f"const knowledge = {data};\n", encoding="utf-8")


def add_scripts(app, pagename, templatename, context, doctree) -> None:
    """Called for each page: what's added here is added to this page alone."""
    nodes = doctree.findall(play) if doctree else []
    if pagename == "search":
        app.add_js_file(FILE, loading_method="defer", priority=BEFORE_OTHERS)
        for name in ("known-lines.js", "search-cards.js"):
            app.add_js_file(f"js/{name}", loading_method="defer", priority=AFTER_OTHERS)
    elif any(node["name"] == SEARCH for node in nodes):
        app.add_js_file(FILE, loading_method="defer", priority=BEFORE_OTHERS)


def setup(app) -> dict:
    app.connect("builder-inited", write)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
