"""Let the links in the text of 404.html work at any depth of address.

sphinx-notfound-page does so for the menu, style sheets and pictures; the links which
404.rst itself holds stay relative without this.
"""

from __future__ import annotations

import re

RELATIVE = re.compile(r'href="(?![a-z]+:|/|#)')


def make_links_absolute(app, pagename, templatename, context, doctree) -> None:
    if pagename == app.config.notfound_pagename and "body" in context:
        prefix = app.config.notfound_urls_prefix
        context["body"] = RELATIVE.sub(f'href="{prefix}', context["body"])


def setup(app) -> dict:
    app.connect("html-page-context", make_links_absolute)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
