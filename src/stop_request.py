"""Stop a training when it is asked to, at the same step on all ranks.

    stop = StopRequest(signal.SIGUSR1)
    if stop.agreed(device):  # in every step, on every rank
        ...save and leave

A signal reaches the ranks at different steps, or only one of them. A rank that stopped
on its own would leave the others waiting for its gradients for ever, so the ranks ask
each other.
"""

from __future__ import annotations

import signal

import torch
import torch.distributed as dist


class StopRequest:
    """Whether one of the signals has come, to this rank or to another one."""

    def __init__(self, *signals: signal.Signals):
        self.asked = False
        for number in signals:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        # nothing else: the step under way, and its collectives, must end as ever
        self.asked = True

    def agreed(self, device: torch.device) -> bool:
        """True on all ranks as soon as one was asked; all must call it together."""
        asked = torch.tensor([int(self.asked)], device=device)
        # every rank must reach this line; [1] -> [1], 8 bytes, waits for the device
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        return bool(asked.item())
