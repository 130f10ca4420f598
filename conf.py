"""Sphinx configuration: the root of the site is index.rst beside this file.

The build needs neither torch nor the network: ``make site`` writes ``_build/html``.
"""

import os
import sys
from pathlib import Path
from urllib.parse import urlparse

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "docs" / "_ext"), str(HERE)]

import inventories  # noqa: E402

project = "Distributed PyTorch"
author = "the authors of the workshop"
copyright = "2026, the authors of the workshop"
language = "en"

extensions = [
    "sphinx.ext.intersphinx",
    "notfound.extension",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxext.opengraph",
    # our own, in docs/_ext
    "accessible",
    "addresses",
    "book",
    "course",
    "definitions",
    "differences",
    "exercise",
    "gallery",
    "inline_figures",
    "knowledge",
    "lean_styles",
    "lesson_numbers",
    "lesson_parts",
    "listings",
    "mathml",
    "mistakes",
    "narrow_tables",
    "play",
    "sources",
    "switches",
    "transcript",
]

# Everything else in the folder (README.md, .venv, src) is no page.
include_patterns = ["index.rst", "404.rst", "docs/**.rst"]
exclude_patterns = [".*", "_build", "build", "tests"]  # or it searches all of .venv
root_doc = "index"
nitpicky = True
numfig = True
numfig_secnum_depth = 0
highlight_language = "python"

# Links into other documentation, from local lists: no network, unknown names fail.
_inventory = inventories.write(HERE / "_build" / "inventories")
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", _inventory["python"]),
    "torch": ("https://docs.pytorch.org/docs/stable", _inventory["torch"]),
}
intersphinx_disabled_reftypes = ["std:doc"]

# The one place for the repository's address. Read the Docs knows it; set the other
# variable where you build the site yourself. Without it, the first page has no address
# to clone from, and says so.
repository = os.environ.get("WORKSHOP_REPOSITORY") or os.environ.get(
    "READTHEDOCS_GIT_CLONE_URL", ""
)
# Where the site stands: canonical links, og:url, the sitemap and the page for a wrong
# address.
_address = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
_address = _address and _address.rstrip("/") + "/"

html_theme = "sphinx_rtd_theme"
html_theme_options = {
    "collapse_navigation": True,
    "navigation_depth": 3,
    # js/contents.js lets the menu follow the reader
    "sticky_navigation": False,
    # the links at both ends would share their access keys
    "prev_next_buttons_location": "bottom",
    "style_external_links": False,
}
html_title = project
html_baseurl = _address
html_static_path = ["docs/_static"]
html_css_files = ["css/workshop.css"]
html_js_files = [
    "js/colors.js",
    "js/contents.js",
    "js/definitions.js",
    "js/keyboard.js",
]
templates_path = ["docs/_templates"]
html_favicon = "docs/_static/mark.svg"
html_math_renderer = "mathml"
html_permalinks_icon = "#"
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_use_index = False
pygments_style = "listings.Light"

# The copy button takes the commands of a console block, never prompts or output.
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.output) > div.highlight > pre"

# The page for a wrong address is shown at any depth, so its links need the prefix.
notfound_urls_prefix = urlparse(_address).path or "/"

ogp_site_url = _address
# what a shared link shows: `python tools/social_image.py` makes it
ogp_image = _address and f"{_address}_static/social.png"
ogp_image_alt = "Four ranks in a ring, and the sentence: from one device to many nodes"
ogp_social_cards = {"enable": False}
ogp_enable_meta_description = True

# The book, `make epub` and `make pdf` (tools/book.py).
epub_basename = "distributed-pytorch"
epub_title = project
epub_author = author
epub_tocscope = "includehidden"
epub_tocdepth = 2
epub_show_urls = "no"
# a reader has fonts of its own
epub_exclude_files = [
    path.relative_to(HERE / "docs").as_posix()
    for path in (HERE / "docs" / "_static" / "fonts").iterdir()
]
epub_exclude_files.append("_static/social.png")
latex_engine = "xelatex"
latex_documents = [
    (root_doc, "distributed-pytorch.tex", project, author, "manual", True)
]
latex_use_xindy = False
latex_domain_indices = False
latex_show_urls = "footnote"
latex_elements = {
    "papersize": "a4paper",
    "extraclassoptions": "oneside,openany",
    "printindex": "",
    # lessons carry their own numbers
    "fncychap": "",
    "preamble": r"\setcounter{secnumdepth}{-1}",
    # they have all the signs that the pages and transcripts use
    "fontpkg": r"""
\setmainfont{DejaVu Serif}
\setsansfont{DejaVu Sans}
\setmonofont{DejaVu Sans Mono}[Scale=0.85]
""",
}
