"""Read a loader that the learner's code made, whatever it yields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from workshop.grader import expect

_is_tensor = torch.is_tensor


def batches(loader: Any, parts: int, what: str) -> Iterator[Any]:
    """Each batch of ``loader``: a list of ``parts`` tensors, whose tensor dim 0 is B.

    Raises:
        Mismatch: it yields something else, or a ``DataLoader`` cannot be read.
    """
    reading = iter(loader)
    while True:
        try:
            batch = next(reading)
        except StopIteration:
            return
        except TypeError as error:
            if not isinstance(loader, DataLoader):
                raise  # of a line of the learner's
            raise expect.Mismatch(what, f"cannot be read, {error}") from None
        many = isinstance(batch, (list, tuple)) and len(batch) == parts
        if not many or not all(_is_tensor(part) and part.dim() for part in batch):
            shown = f"{batch!r}"[:80]
            wanted = f"batches of a dataset whose items have {parts} parts"
            raise expect.Mismatch(what, f"yields {shown}, expected {wanted}")
        yield batch
