"""What pages say of their own addresses; all of it follows from ``html_baseurl``.

``og:url`` is the canonical address, and is left out where the site has none yet. So is
``sitemap.xml``, which tells search engines the pages and the day of their last change.
The page for a wrong address is shown at any depth, so the links which 404.rst itself
holds get the prefix that sphinx-notfound-page gives to the menu, style sheets and
pictures.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
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


def write_sitemap(app, exception) -> None:
    """Name every page but the one for a wrong address; ``sources`` knows the days."""
    address = app.config.html_baseurl
    if exception or not address or app.builder.name != "html":
        return
    pages = app.env.found_docs - {app.config.notfound_pagename}
    sitemap = ElementTree.Element("urlset", xmlns=SITEMAP)
    for page in sorted(pages):
        url = ElementTree.SubElement(sitemap, "url")
        target = app.builder.get_target_uri(page)
        ElementTree.SubElement(url, "loc").text = f"{address}{target}"
        day = app.days_of_change.get(f"{page}.rst")
        if day:
            ElementTree.SubElement(url, "lastmod").text = day
    tree = ElementTree.ElementTree(sitemap)
    ElementTree.indent(tree)
    path = Path(app.outdir, "sitemap.xml")
    tree.write(path, encoding="utf-8", xml_declaration=True)


def setup(app) -> dict:
    app.connect("html-page-context", make_links_absolute)
    # after sphinxext-opengraph
    app.connect("html-page-context", tell_canonical_address, priority=900)
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
