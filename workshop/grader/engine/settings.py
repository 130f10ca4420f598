"""Settings of torch that hold for all later code: does an answer leave one changed?"""

from __future__ import annotations

import torch

from workshop.grader.expect import Mismatch


def left_gradients() -> Mismatch:
    """What to say if gradients are not switched as they were before a call."""
    if torch.is_grad_enabled():  # who wrote that perhaps wanted them off before
        restores = "with torch.no_grad():` or `with torch.enable_grad():"
        return _left("gradients switched on", restores)
    return _left("gradients switched off", "with torch.no_grad():")


def left_changed() -> Mismatch | None:
    """What to say of a setting that a check could not work with."""
    if not torch.is_grad_enabled():
        return left_gradients()
    device = torch.get_default_device()
    if device.type != "cpu":
        return _left(
            f"the default device at {device}", f'with torch.device("{device}"):'
        )
    return None


def default_dtype() -> str:
    """``float32``, unless the learner's code has chosen another for all later code."""
    return str(torch.get_default_dtype()).removeprefix("torch.")


def _left(what: str, cure: str) -> Mismatch:
    why = "which affects all later code"
    return Mismatch("", f"your code left {what}, {why}: write `{cure}` instead")
