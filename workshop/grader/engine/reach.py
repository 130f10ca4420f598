"""The one rule on the text of an answer: it doesn't reach into the grader.

It tells a learner who tries that this isn't the exercise. It is no protection: code
that wants to cheat can hide these names. What protects the machine is ``isolation.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from workshop.errors import NOT_PYTHON

_INSIDE = re.compile(
    r"^workshop\.(cluster|grader|system)(\.\w+)*$"  # a room, or what is in it
    r"|^\w*\._getframe$"  # the frames, hence the variables, of callers
    r"|/proc/[^/\s]+/mem\b"  # the memory of a process
)


def reaches_in(source: str) -> tuple[str, int] | None:
    """(what it names, in which line) if it names a part of the grader, or None.

    A text that is no Python, such as a job script, names none.
    """
    try:
        tree = ast.parse(source)
    except NOT_PYTHON:
        return None
    for node in ast.walk(tree):
        for name in _names(node):
            found = _INSIDE.search(name)
            if found:
                return found[0], getattr(node, "lineno", 1)
    return None


def _names(node: ast.AST) -> Iterator[str]:
    """What an import or an attribute names, as in ``sys._getframe``; or a string."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield f"{node.module}.{alias.name}"
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield f"{node.value.id}.{node.attr}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(_part(value) for value in node.values)


def _part(value: ast.expr) -> str:
    """A piece of an f-string: what it fills in is ``*``."""
    return str(value.value) if isinstance(value, ast.Constant) else "*"
