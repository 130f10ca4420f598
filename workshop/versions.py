"""Which torch and Python the workshop needs, and which torch there is.

Neither torch nor anything else outside the standard library is imported here: what this
module finds missing can be told in a sentence.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

from workshop.errors import UserError

OLDEST_PYTHON = (3, 10)
OLDEST_TORCH, NEWEST_TRIED_TORCH = "2.8", "2.14"
# packages whose modules have other names
PACKAGES = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
INSTALL = (
    "run `make tour` once and use the `workshop` of .venv/bin, or install what is "
    "missing into your own environment: pip install -r requirements-light.txt"
)


def installed_torch() -> str | None:
    """The version of the torch that `import torch` would find, or None.

    It is read from torch/version.py: a module on a cluster may have no metadata, and
    metadata may belong to another torch than the first one on the path.
    """
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return "of unknown version"
    found = re.search(r"^__version__\s*(?::\s*\w+\s*)?=\s*['\"](.+?)['\"]", text, re.M)
    return found[1] if found else "of unknown version"


def release(version: str) -> tuple[int, ...]:
    """``(2, 8)`` of ``2.8.0+cu128``; () of what begins with no such numbers."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else ()


def is_older(version: str, needed: str) -> bool:
    """Whether ``version`` is below ``needed``; a version that is unknown is not."""
    known = release(version)
    return bool(known) and known < release(needed)


def problem_with_torch(needed: str = OLDEST_TORCH, what: str = "the grader") -> str:
    """Why ``what`` can't run with the torch that is here: a sentence, or ""."""
    version = installed_torch()
    if version is None:
        return (
            f"torch is not installed for {sys.executable}, and {what} needs "
            f"{needed} or newer: run `make tour` once and use .venv/bin, or activate "
            "the environment that has torch"
        )
    if is_older(version, needed):
        return (
            f"torch {version} is too old, {what} needs {needed} or newer: run "
            "`make tour` once and use .venv/bin, or activate an environment that has "
            "a newer torch"
        )
    return ""


def require_torch() -> None:
    """Refuse to run without a torch that the grader works with.

    Raises:
        UserError: torch is missing or too old; exit status 3.
    """
    if problem := problem_with_torch():
        raise UserError(problem, exit_status=3)


def missing_module(error: ImportError | str) -> str:
    """One sentence for a module that can't be imported: its package, and the cure."""
    found = re.search(r"No module named '(\w+)", str(error))
    if found is None:
        return f"the environment is broken ({error}): {INSTALL}"
    if found[1] == "torch":
        return problem_with_torch()
    package = PACKAGES.get(found[1], found[1])
    return f"the package {package} is missing for {sys.executable}: {INSTALL}"
