"""Colors of code listings, light and dark, with a contrast of at least 4.5 to 1."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from pygments.style import Style
from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Token,
)
from sphinx.highlighting import PygmentsBridge

LONGEST_UNBROKEN = 40  # characters
# what a line, or one of a difference, says to shellcheck or to these pages
FOR_TOOLS = re.compile(
    r"^[+-]?[ \t]*# (?:shellcheck .*|\[(?:start|end) (?!answer)[^\]]+\])\n?", re.M
)
HEX = re.compile(r"#[0-9a-f]{6}", re.I)
# names, punctuation, operators and spaces have the ink that is around them
IN_INK = re.compile(r'<span class="[npow]">([^<]*)</span>')


def colors(ink, quiet, keyword, name, string, number, cut, added) -> dict:
    """The few kinds of words which a reader tells apart, everything else in ink."""
    return {
        Token: ink,
        Comment: quiet,
        Keyword: keyword,
        Keyword.Constant: number,
        Operator: ink,
        Operator.Word: keyword,
        Punctuation: ink,
        Name.Function: f"bold {name}",
        Name.Class: f"bold {name}",
        Name.Namespace: ink,
        Name.Decorator: number,
        Name.Builtin: name,
        Name.Exception: name,
        Name.Variable: name,
        Name.Attribute: ink,
        Number: number,
        String: string,
        String.Doc: string,
        String.Interpol: number,
        String.Escape: number,
        Generic.Prompt: f"bold {quiet}",
        Generic.Output: ink,
        Generic.Heading: f"bold {name}",
        Generic.Subheading: name,
        Generic.Deleted: cut,
        Generic.Inserted: added,
        Generic.Error: keyword,
        Generic.Traceback: ink,
    }


class Light(Style):
    background_color = "#f6f8fa"
    highlight_color = "#fdf3c4"
    styles = colors(
        ink="#1f2933",
        quiet="#57636f",
        keyword="#8a2466",
        name="#0b5c86",
        string="#1c6335",
        number="#8f4700",
        cut="#8c1d12 bg:#fde7e4",
        added="#0b5428 bg:#e0f5e6",
    )


class Dark(Style):
    background_color = "#0f141a"
    highlight_color = "#3a3413"
    styles = colors(
        ink="#dfe6ec",
        quiet="#9aa7b3",
        keyword="#f0a3cf",
        name="#86c5f4",
        string="#95d6a4",
        number="#f3bd85",
        cut="#ffb4a9 bg:#43191a",
        added="#95e0ab bg:#12351f",
    )


def colors_of(style: type[Style]) -> list[str]:
    """Each color of a style, in the order of its kinds of words."""
    words = [style.background_color, style.highlight_color, *style.styles.values()]
    return HEX.findall(" ".join(words))


class BothThemes(PygmentsBridge):
    """One style sheet for both themes, and no element for a word in plain ink.

    These would be a third of the bytes of a page with long listings.
    """

    def highlight_block(self, *arguments, **options) -> str:
        return IN_INK.sub(r"\1", super().highlight_block(*arguments, **options))

    def get_stylesheet(self, *arguments) -> str:
        pairs = zip(colors_of(Light), colors_of(Dark), strict=True)
        themed = {one: f"light-dark({one}, {other})" for one, other in pairs}
        text = super().get_stylesheet(*arguments)
        return HEX.sub(lambda hit: themed.get(hit[0].lower(), hit[0]), text)


def use_both_themes(app) -> None:
    """Let the pages follow the theme; a book stays light."""
    if app.builder.name in ("html", "dirhtml"):
        app.builder.highlighter = BothThemes("html", "listings.Light")


def shorten_paths(app, doctree: nodes.document) -> None:
    """Let a difference name its files as the repository does, not this machine."""
    for listing in doctree.findall(nodes.literal_block):
        if listing.get("language") != "udiff":
            continue
        root = f"{Path(app.srcdir)}/"
        text = re.sub(
            rf"^(---|\+\+\+) {re.escape(root)}", r"\1 ", listing.astext(), flags=re.M
        )
        listing.children = [nodes.Text(text)]
        listing.rawsource = text


def end_with_the_code(app, doctree: nodes.document) -> None:
    """Drop the empty lines that a listing has before the marker where it ends."""
    for listing in doctree.findall(nodes.literal_block):
        text = listing.astext()
        if text.endswith("\n\n"):
            listing.children = [nodes.Text(text.rstrip("\n") + "\n")]
            listing.rawsource = listing.astext()


def leave_out_what_tools_read(app, doctree: nodes.document) -> None:
    """Drop what a listing says to shellcheck, and the marks where pages cut it."""
    for listing in doctree.findall(nodes.literal_block):
        text = FOR_TOOLS.sub("", listing.astext())
        if text != listing.astext():
            listing.children = [nodes.Text(text)]
            listing.rawsource = text


def mark_long_code(app, doctree: nodes.document) -> None:
    """Short code in a sentence is not broken at its hyphens; long code has to be."""
    for code in doctree.findall(nodes.literal):
        if len(code.astext()) > LONGEST_UNBROKEN:
            code["classes"].append("long")


def setup(app) -> dict:
    app.connect("builder-inited", use_both_themes)
    app.connect("doctree-read", shorten_paths)
    app.connect("doctree-read", leave_out_what_tools_read)
    app.connect("doctree-read", mark_long_code)
    app.connect("doctree-read", end_with_the_code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
