"""Drop from the theme's style sheets what no page can use, after the site is built.

Three quarters of them style icons, forms and cards that this site does not have. A rule
stays if every class in its selector is a word of some page or script: a class that is
written nowhere cannot be set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SHEETS = ("css/theme.css", "sphinx-design.min.css")
WORD = re.compile(r"[A-Za-z_][\w-]*")
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
NOT = re.compile(r":not\([^)]*\)")
BETWEEN_SELECTORS = re.compile(r",(?![^(]*\))")


def rules(css: str) -> Iterator[tuple[str, str]]:
    """What stands before each pair of outer braces, and what is within."""
    start, opening = 0, css.find("{")
    while opening >= 0:
        depth, end = 1, opening + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(css[end], 0)
            end += 1
        yield css[start:opening].strip(), css[opening + 1 : end - 1]
        start, opening = end, css.find("{", end)


def lean(css: str, words: set[str]) -> str:
    """The rules that ``words``, in pages and scripts, can make use of."""
    kept = []
    for prelude, body in rules(COMMENT.sub("", css)):
        if prelude.startswith(("@media", "@supports")):
            body = lean(body, words)
        elif not prelude.startswith("@"):
            prelude = ",".join(
                selector
                for selector in BETWEEN_SELECTORS.split(prelude)
                if words.issuperset(CLASS.findall(NOT.sub("", selector)))
            )
        if prelude and body:
            kept.append(f"{prelude}{{{body}}}")
    return "\n".join(kept)


def make_lean(app, exception) -> None:
    if exception or app.builder.name not in ("html", "dirhtml"):
        return
    static = Path(app.outdir) / "_static"
    pages = [*Path(app.outdir).rglob("*.html"), *static.rglob("*.js")]
    words: set[str] = set()
    for path in pages:
        words.update(WORD.findall(path.read_text(encoding="utf-8")))
    for name in SHEETS:
        sheet = static / name
        sheet.write_text(lean(sheet.read_text("utf-8"), words), encoding="utf-8")


def setup(app) -> dict:
    app.connect("build-finished", make_lean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
