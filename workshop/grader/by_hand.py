"""For exercises that ask to write by hand what a class of torch does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from workshop.grader import expect
from workshop.grader.ledger.ledger import Ledger


@contextmanager
def by_hand(ledger: Ledger, *kinds: type) -> Iterator[None]:
    """Fail with verdict *wrong way* if the learner's code makes one of ``kinds``.

    Args:
        ledger: of this rank, as the check got it: it knows the learner's file.
    """
    made: list[str] = []
    originals = [kind.__init__ for kind in kinds]
    for kind in kinds:
        kind.__init__ = _noted(kind, ledger.exercise_path, made)
    try:
        yield
    finally:
        for kind, original in zip(kinds, originals, strict=True):
            kind.__init__ = original
    expect.right_way(
        not made,
        f"{', '.join(dict.fromkeys(made))} of torch does the work: the exercise is to "
        "write by hand what it does",
    )


def _noted(kind: type, path: str, made: list[str]):
    original = kind.__init__

    def init(self, *args, **kwargs):
        if _is_called_from(path):
            made.append(kind.__name__)
        original(self, *args, **kwargs)

    return init


def _is_called_from(path: str) -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == path:
            return True
        frame = frame.f_back
    return False
