"""Which lines of a file look at their own frame, and cannot get from it to others?

``inspect.currentframe().f_lineno`` in a message is no look at the caller's variables.
From any frame ``f_back`` leads there, and Python doesn't report it: so only a line that
reads harmless attributes at once, or of a name that is used for nothing else, is one.
"""

from __future__ import annotations

import ast

from grader.errors import NOT_PYTHON

HARMLESS = {"f_code", "f_lasti", "f_lineno", "f_locals"}
WORDS = {"int", "len", "print", "repr", "str"}  # what may be called in the same line


def lines_with_own_frames(source: str) -> set[int]:
    """The numbers of these lines."""
    if "_getframe" not in source and "currentframe" not in source:
        return set()
    try:
        tree = ast.parse(source)
    except NOT_PYTHON:
        return set()
    above = {
        child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
    }
    names: dict[str, list[ast.Name]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.setdefault(node.id, []).append(node)
    words = WORDS - {name for name in WORDS if _is_set(names.get(name, []))}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    own = {call for call in calls if _is_own(call) and _is_harmless(call, above, names)}
    plain = {
        call
        for call in calls
        if call in own or (isinstance(call.func, ast.Name) and call.func.id in words)
    }
    others = {line for call in calls if call not in plain for line in _lines(call)}
    return {line for call in own for line in _lines(call)} - others


def _is_own(call: ast.Call) -> bool:
    """``inspect.currentframe()`` or ``sys._getframe()``, without an argument."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name in ("currentframe", "_getframe") and not (call.args or call.keywords)


def _is_harmless(call: ast.Call, above: dict, names: dict) -> bool:
    user = above[call]
    if not isinstance(user, ast.Assign):
        return _reads(user)
    if len(user.targets) != 1 or not isinstance(user.targets[0], ast.Name):
        return False
    uses = names[user.targets[0].id]
    return all(_reads(above[use]) for use in uses if isinstance(use.ctx, ast.Load))


def _reads(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in HARMLESS


def _is_set(uses: list[ast.Name]) -> bool:
    return any(not isinstance(use.ctx, ast.Load) for use in uses)


def _lines(node: ast.Call) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
