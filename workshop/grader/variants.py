"""Which wrong rule gives the values that a learner's function gave.

A check has its own version of the function, with keyword arguments for what learners
get wrong: each has the right value as its default. If all values that were found are
those of this version with one or two arguments changed, the verdict can say which.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Changes = Mapping[str, Any]  # of keyword arguments
MOST = 2  # mistakes that are looked for at the same time


def cause(
    found: Sequence[Any],
    cases: Sequence[tuple],
    function: Callable[..., Any],
    mistakes: Mapping[str, Changes],
    most: int = MOST,
) -> str:
    """The words of the fewest mistakes that explain everything that was found.

    Args:
        found: what the learner's function gave, for each case.
        cases: the arguments of ``function``.
        mistakes: for the words of a mistake, which begin a clause after "as if", the
            arguments that make it.
        most: how many at once. Take 1 where only few values are possible, for two
            mistakes explain many of these by chance.

    Returns:
        The words, joined by "and as if"; "" if no ``most`` mistakes explain all
        values, or if the values are right.
    """
    for count in range(most + 1):
        for words in itertools.combinations(mistakes, count):
            options = _together([mistakes[one] for one in words])
            if options is None:
                continue
            if _explains(found, cases, function, options):
                return ", and as if ".join(words)
    return ""


def cause_in(
    asked: Callable[..., Any],
    cases: Sequence[tuple],
    function: Callable[..., Any],
    mistakes: Mapping[str, Changes],
    most: int = MOST,
) -> str:
    """As :func:`cause`, of a learner's function ``asked`` that is called here.

    It gets copies, since it may change what it is given. If it fails for a case, no
    rule explains all its values: "".
    """
    try:
        found = [asked(*copy.deepcopy(case)) for case in cases]
    except Exception:  # the check will meet it again, and report it
        return ""
    return cause(found, cases, function, mistakes, most)


def _together(changes: Sequence[Changes]) -> dict[str, Any] | None:
    """All of these changes; None if two of them change the same argument."""
    merged: dict[str, Any] = {}
    for change in changes:
        if merged.keys() & change.keys():
            return None
        merged |= change
    return merged


def _explains(found, cases, function, options: dict[str, Any]) -> bool:
    for value, case in zip(found, cases, strict=True):
        try:
            if not _equal(value, function(*case, **options)):
                return False
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return False
    return True


def _equal(value: Any, other: Any) -> bool:
    are_real = isinstance(value, (int, float)) and isinstance(other, (int, float))
    if are_real and float in (type(value), type(other)):
        return abs(value - other) <= 1e-9 * max(abs(value), abs(other))
    return type(value) is type(other) and value == other
