"""Did the learner's file replace a function that the checks rely on?"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import inspect
import itertools
import json
import math
import operator
import os
import pathlib
import random
import re
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.distributed as dist

from grader import expect
from grader.engine.handed import left, left_gradients
from grader.engine.ledger import TORCH

_GUARDED = {
    "builtins": builtins,
    "contextlib": contextlib,
    "functools": functools,
    "itertools": itertools,
    "inspect": inspect,
    "operator": operator,
    "os": os,
    "os.path": os.path,
    "time": time,
    "copy": copy,
    "json": json,
    "math": math,
    "pathlib.Path": pathlib.Path,
    "pytest": pytest,
    "random": random,
    "random.Random": random.Random,
    "re": re,
    "statistics": statistics,
    "threading": threading,
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.autograd": torch.autograd,
    "torch.distributed": dist,
    "torch.testing": torch.testing,
}
_ALLOWED = {"__warningregistry__", "_", "__builtins__"}


_before: dict[tuple[str, str], Any] = {}


def take() -> None:
    """Remember what a check relies on; the server does this before it forks."""
    _GUARDED.update(_parts_of_the_grader())
    for place, module in _GUARDED.items():
        _before["sys.modules", place] = sys.modules.get(place)
        for name in dir(module):
            value = vars(module).get(name)
            inherited = name not in vars(module)  # by a class: not to be hidden
            does = callable(value) or type(value) in (property, classmethod)
            if (does or inherited) and name not in _ALLOWED:
                _before[place, name] = value


def _parts_of_the_grader() -> dict[str, Any]:
    """Its modules, and their classes."""
    names = [name for name in sys.modules if f"{name}.".startswith("grader.")]
    modules = {name: sys.modules[name] for name in names}
    kinds = {
        f"{name}.{kind.__qualname__}": kind
        for name, module in modules.items()
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == name
    }
    return modules | kinds


def accept(place: str, name: str) -> None:
    """What stands there now is the grader's own."""
    _before[place, name] = _namespace(place)[name]


def watch(share: int, shares: int) -> Callable[[], list[str]]:
    """What tells the names, of one of so many shares, that stand for another thing.

    Looking at a function copies the page of memory that it is on: so each rank of a
    check looks at one share. What torch itself puts in a function's place, as
    ``torch._dynamo`` does when it is imported, is no tampering. Kept as a variable of
    a running frame, this can be relied on: all that it uses is its own.
    """
    before, modules = tuple(_before.items())[share::shares], sys.modules
    guarded, torch_folder = dict(_GUARDED), TORCH
    names_of, of = vars, getattr

    def changed() -> list[str]:
        found = []
        for (place, name), value in before:
            in_modules = place == "sys.modules"
            now = (modules if in_modules else names_of(guarded[place])).get(name)
            code = of(now, "__code__", None)
            of_torch = code is not None and code.co_filename.startswith(torch_folder)
            if now is not value and not of_torch:
                found.append(place + (f"[{name!r}]" if in_modules else f".{name}"))
        return found

    return changed


def watch_module(names: dict[str, Any]) -> Callable[[], list[str]]:
    """The same for the functions and classes of a file of checks."""
    before = tuple((name, value) for name, value in names.items() if callable(value))
    return lambda: [name for name, value in before if names.get(name) is not value]


def of_settings() -> expect.Mismatch | None:
    """What to say if torch's settings are no longer those that a check relies on."""
    if not torch.is_grad_enabled():
        return left_gradients()
    if (device := torch.get_default_device()).type != "cpu":
        return left(
            f"the default device at {device}", f'with torch.device("{device}"):'
        )
    return None


def _namespace(place: str) -> Mapping[str, Any]:
    return sys.modules if place == "sys.modules" else vars(_GUARDED[place])
