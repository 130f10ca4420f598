"""What pages say of their own addresses; all of it follows from ``html_baseurl``.

``og:url`` is the canonical address, and is left out where the site has none yet. The
page for a wrong address is shown at any depth, so the links which 404.rst itself holds
get the prefix that sphinx-notfound-page gives to the menu, style sheets and pictures.
"""

from __future__ import annotations

import re

RELATIVE = re.compile(r'href="(?![a-z]+:|/|#)')
OG_URL = re.compile(r'<meta property="og:url" content="[^"]*" />\n?')


def make_links_absolute(app, pagename, templatename, context, doctree) -> None:
    if pagename == app.config.notfound_pagename and "body" in context:
        prefix = app.config.notfound_urls_prefix
        context["body"] = RELATIVE.sub(f'href="{prefix}', context["body"])


def tell_canonical_address(app, pagename, templatename, context, doctree) -> None:
    address = context.get("pageurl")
    tag = f'<meta property="og:url" content="{address}" />\n' if address else ""
    context["metatags"] = OG_URL.sub(tag, context.get("metatags", ""))


def setup(app) -> dict:
    app.connect("html-page-context", make_links_absolute)
    # after sphinxext-opengraph
    app.connect("html-page-context", tell_canonical_address, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
