"""Where the text of a page is kept: links to files, to edit it, and when it changed.

The links need the repository's address (``repository`` in conf.py); without one, as on
a laptop, pages have none. The date is that of the last commit which changed the page,
and is left out where git doesn't know it.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

SSH = re.compile(r"^(?:ssh://)?git@([^:/]+)[:/]")
# the folders whose files a page names
FOLDERS = ("src", "job_scripts", "exercises", "solutions", "gallery", "docs", "tests")
NAMED = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]+\.\w+")
BRANCH = "main"  # where Read the Docs doesn't say what it builds
PATIENCE = 60  # seconds for git


def web_address(repository: str) -> str:
    """Of the repository in a browser: ``git@HOST:A/B.git`` -> ``https://HOST/A/B``."""
    address = SSH.sub(r"https://\1/", repository.strip()).rstrip("/")
    return address.removesuffix(".git")


def address_of(repository: str, what: str, path: str) -> str:
    """Of a file there, to read it (``blob``) or to change it (``edit``)."""
    address = web_address(repository)
    branch = os.environ.get("READTHEDOCS_GIT_IDENTIFIER") or BRANCH
    between = "/-" if "gitlab" in address else ""
    return f"{address}{between}/{what}/{branch}/{path}"


def days_of_change(root: Path) -> dict[str, str]:
    """Path -> day of the last commit that changed it; empty where git can't say.

    A shallow clone would call every file as old as its only commit.
    """
    git = ["git", "-C", str(root)]
    shallow = [*git, "rev-parse", "--is-shallow-repository"]
    log = [*git, "log", "--format=%x00%cs", "--name-only", "--", "*.rst"]
    try:
        if _output(shallow).strip() != "false":
            return {}
        text = _output(log)
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[str, str] = {}
    for commit in text.split("\0")[1:]:
        day, *paths = commit.split()
        for path in paths:
            found.setdefault(path, day)  # the newest comes first
    return found


def _output(command: list[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return done.stdout


class FilesOfPages(SphinxPostTransform):
    """Each name of a file of the workshop becomes a link to it."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        repository = self.config.repository
        if not repository:
            return
        for literal in list(self.document.findall(nodes.literal)):
            self.link(literal, repository)
        for caption in list(self.document.findall(nodes.caption)):
            for text in list(caption.findall(nodes.Text)):
                self.link(text, repository)

    def link(self, node: nodes.Node, repository: str) -> None:
        path = node.astext()
        inside = any(isinstance(each, nodes.reference) for each in _above(node))
        known = NAMED.fullmatch(path) and (Path(self.app.srcdir) / path).is_file()
        if not known or inside:
            return
        address = address_of(repository, "blob", path)
        reference = nodes.reference("", "", refuri=address, internal=False)
        node.parent.replace(node, reference)
        reference += node


def _above(node: nodes.Node):
    while node.parent is not None:
        node = node.parent
        yield node


def tell_sources(app, pagename, templatename, context, doctree) -> None:
    """Give the page's templates its day and the address to edit it at."""
    if doctree is None:  # such as the page of the search
        return
    path = f"{pagename}.rst"
    context["last_updated"] = app.days_of_change.get(path)
    if app.config.repository:
        context["edit_address"] = address_of(app.config.repository, "edit", path)


def ask_git(app) -> None:
    app.days_of_change = days_of_change(Path(app.srcdir))


def setup(app) -> dict:
    app.add_post_transform(FilesOfPages)
    app.connect("builder-inited", ask_git)
    app.connect("html-page-context", tell_sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
