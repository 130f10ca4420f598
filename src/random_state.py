"""The random numbers of a process, to go on with them after an interruption."""

from __future__ import annotations

import torch


def get_random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """The state of the random numbers of this process and of its device."""
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":  # dropout draws on the device it runs on
        state["device"] = torch.get_device_module(device).get_rng_state(device)
    return state


def set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    """Go on with the random numbers where :func:`get_random_state` was called."""
    torch.set_rng_state(state["cpu"])
    if "device" in state and device.type != "cpu":
        torch.get_device_module(device).set_rng_state(state["device"], device)
