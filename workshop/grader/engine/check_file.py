"""A file of checks: read and compiled once for all runs; ranks cannot read it."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path


def compiled(path: str) -> types.CodeType:
    """Its code, with pytest's explanations of plain ``assert``; tracebacks get lines.

    A rank gets what :func:`prepare` has compiled, whatever the path leads to there.
    """
    if path not in _compiled:
        _compiled[path] = _compile(path)
    return _compiled[path]


def prepare(path: str) -> None:
    """Compile it where ranks are forked from, again if it has changed since."""
    seen = os.stat(path)
    version = seen.st_mtime_ns, seen.st_size
    if _versions.get(path) != version:
        _compiled.pop(path, None)
        compiled(path)
        _versions[path] = version


_compiled: dict[str, types.CodeType] = {}
_versions: dict[str, tuple[int, int]] = {}  # time of change and bytes


def _compile(path: str) -> types.CodeType:
    from _pytest.assertion.rewrite import rewrite_asserts

    text = Path(path).read_bytes()
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[path] = (len(text), None, lines, path)
    tree = ast.parse(text, path)
    rewrite_asserts(tree, text)
    return compile(tree, path, "exec")


def load(path: str, function: str) -> Callable[..., None]:
    """The check of this name, from a module of its own."""
    module = types.ModuleType(Path(path).stem)
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compiled(path), module.__dict__)
    return getattr(module, function)
