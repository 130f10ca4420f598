"""A file of checks: read and compiled once for all ranks, which cannot read it."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path


@functools.cache
def source(path: str) -> bytes:
    """Its text; tracebacks get their lines from here."""
    text = Path(path).read_bytes()
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[path] = (len(text), None, lines, path)
    return text


@functools.cache
def compiled(path: str) -> types.CodeType:
    """Its code, with pytest's explanations of plain ``assert``."""
    from _pytest.assertion.rewrite import rewrite_asserts

    tree = ast.parse(source(path), path)
    rewrite_asserts(tree, source(path))
    return compile(tree, path, "exec")


def load(path: str, function: str) -> Callable[..., None]:
    """The check of this name, from a module of its own."""
    module = types.ModuleType(Path(path).stem)
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compiled(path), module.__dict__)
    return getattr(module, function)
