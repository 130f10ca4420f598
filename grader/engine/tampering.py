"""Did the learner's file replace a function that the checks rely on?"""

from __future__ import annotations

import builtins
import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

from grader import expect
from grader.engine.ledger import TORCH
from grader.verdicts.classics import values

_GUARDED = {
    "builtins": builtins,
    "os": os,
    "time": time,
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.autograd": torch.autograd,
    "torch.distributed": dist,
    "torch.testing": torch.testing,
    "grader.expect": expect,
    "grader.verdicts.classics.values": values,
}
_ALLOWED = {"__warningregistry__", "_", "__builtins__"}


def fingerprint() -> dict[str, Any]:
    """Every public function that a check relies on, by its name."""
    marks: dict[str, Any] = {
        f"{place}.{name}": value
        for place, module in _GUARDED.items()
        for name, value in vars(module).items()
        if callable(value) and name not in _ALLOWED
    }
    for place in _GUARDED:
        if place in sys.modules:
            marks[f"sys.modules[{place!r}]"] = sys.modules[place]
    return marks


def changed(before: dict[str, Any]) -> list[str]:
    """The names that stand for another thing than before.

    What torch itself puts in their place, as ``torch._dynamo`` does when it is
    imported, is no tampering.
    """
    if not before:
        return []
    after = fingerprint()
    return sorted(
        name
        for name, value in before.items()
        if after.get(name) is not value and not _made_by_torch(after.get(name))
    )[:5]


def _made_by_torch(value: Any) -> bool:
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.startswith(TORCH)
