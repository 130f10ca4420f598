"""The learner's module as a check sees it: it notes what each function returned.

A check may fail with an exception of its own, such as a ``TypeError`` in ``len(x)``,
because a function of the learner returned what its annotation rules out. That is a
wrong value: :attr:`Handed.wrong` tells it from a fault of the check.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import re
import traceback
import types
import typing
from collections import Counter
from numbers import Integral, Number, Real
from typing import Any

import torch

from workshop.grader.engine.settings import left_gradients
from workshop.grader.expect import Mismatch

DTYPE = re.compile(r"dtype|Long|Int|Bool|Byte|Char|Short|floating").search
NUMBERS = {float: Real, int: Integral}


class Calls:
    """The check's calls of the learner's functions, in this rank.

    Attributes:
        entered: how many times it has called each of them so far.
        inside: the one that is under way, or "".
        ended_by: how the last one ended if it raised, as in "raised ValueError at line
            7", or "". The check may have expected that.
    """

    entered: typing.ClassVar[Counter[str]] = Counter()
    inside = ended_by = ""
    _open = 0

    @classmethod
    def begin(cls, name: str) -> None:
        if not cls._open:  # what the learner's code calls itself doesn't count
            cls.inside, cls.ended_by = name, ""
            cls.entered[name] += 1
        cls._open += 1

    @classmethod
    def end(cls, how: str = "") -> None:
        cls._open -= 1
        if not cls._open:
            cls.inside, cls.ended_by = "", how


class Handed:
    """A proxy of ``module``: the functions that a check takes from it are watched.

    Attributes:
        wrong: the last value that its function's annotation rules out, or None.
        whole: name and value, in words, of the last function that returned a tensor
            of whole numbers, or None.
    """

    def __init__(self, module: types.ModuleType):
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "wrong", None)
        object.__setattr__(self, "whole", None)
        for kind in list(vars(module).values()):
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                self._watch_methods(kind)

    def __getattr__(self, name: str) -> Any:
        try:
            value = getattr(self._module, name)
        except AttributeError:
            raise Mismatch("", f"your file defines no {name}") from None
        if not isinstance(value, types.FunctionType):
            return value
        return self._as_the_check_calls_it(value)

    def not_computable(self, said: str) -> Mismatch | None:
        """Why a check could not compute with whole numbers, if it got such a tensor."""
        if self.whole is None or not DTYPE(said):
            return None
        name, value = self.whole
        problem = f"returned a tensor {value}, with which the check cannot compute"
        return Mismatch(name, f"{problem}: {said}")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def _as_the_check_calls_it(self, function: types.FunctionType):
        """``function``, watched; arguments that it does not take are a wrong way."""
        watched = self._watched(function)

        @functools.wraps(function)
        def call(*args, **kwargs):
            try:
                inspect.signature(function).bind(*args, **kwargs)
            except TypeError as error:
                problem = f"does not take the arguments that the exercise says: {error}"
                raise Mismatch(function.__name__, problem) from None
            recording = torch.is_grad_enabled()
            value = watched(*args, **kwargs)
            if torch.is_grad_enabled() != recording:
                wrong = left_gradients()
                torch.set_grad_enabled(recording)
                raise wrong
            if breaks_its_promise(value, _hint(function)):
                raise _wrong_type(function, value, _hint(function))
            return value

        return call

    def _watch_methods(self, kind: type) -> None:
        for name, method in list(vars(kind).items()):
            if isinstance(method, types.FunctionType) and not name.startswith("__"):
                with contextlib.suppress(Exception):  # a class may refuse to be changed
                    setattr(kind, name, self._watched(method))

    def _watched(self, function: types.FunctionType):
        """``function``; what it returns is compared with its annotation, not kept."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            Calls.begin(function.__qualname__)
            try:
                value = function(*args, **kwargs)
            except BaseException as error:
                Calls.end(_how(error, function))
                raise
            Calls.end()
            object.__setattr__(self, "whole", _whole(function, value))
            hint = _hint(function)
            if not fits(value, hint):
                wrong = _wrong_type(function, value, hint)
                object.__setattr__(self, "wrong", wrong)
            return value

        return call


def _how(error: BaseException, function: types.FunctionType) -> str:
    """The type of the error, and the innermost line of the learner that raised it."""
    file = function.__code__.co_filename
    steps = traceback.walk_tb(error.__traceback__)
    lines = [number for frame, number in steps if frame.f_code.co_filename == file]
    return f"raised {type(error).__name__} at line {lines[-1]}" if lines else ""


@functools.cache
def _hint(function: types.FunctionType) -> Any:
    """What ``function`` is to return by its annotation, Any if it does not say."""
    try:
        return typing.get_type_hints(function).get("return", Any)
    except Exception:  # a learner's annotation may name anything
        return Any


def _whole(function: types.FunctionType, value: Any) -> tuple[str, str] | None:
    if not torch.is_tensor(value) or value.is_floating_point() or value.is_complex():
        return None
    kind = str(value.dtype).removeprefix("torch.")
    return function.__name__, f"{kind} {list(value.shape)}"


def _wrong_type(function: types.FunctionType, value: Any, hint: Any) -> Mismatch:
    name = function.__name__
    if value is None:
        return Mismatch(name, "returned None: is a `return` missing?", "returns_none")
    expected = _named(hint).replace(f"{function.__module__}.", "")
    return Mismatch(name, f"returned {_kind(value)}, expected {expected}")


def _kind(value: Any) -> str:
    kind = type(value).__name__
    if not isinstance(value, (list, tuple, set)):
        return kind
    if isinstance(value, tuple) and 0 < len(value) < 5:
        return f"tuple ({', '.join(map(_kind, value))})"
    inside = sorted(set(map(_kind, value)))
    return f"{kind} of {', '.join(inside)}" if inside else f"empty {kind}"


def _named(hint: Any) -> str:
    plain = isinstance(hint, type) and not typing.get_args(hint)
    return hint.__name__ if plain else str(hint)


def breaks_its_promise(value: Any, hint: Any) -> bool:
    """Whether a tensor or generator is where ``hint`` says number, list or tuple.

    Or a number, list or array where it says tensor. Comparisons do not see that: a
    tensor equals the number that it holds.
    """
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return all(breaks_its_promise(value, a) for a in args if a is not type(None))
    if isinstance(value, (torch.Tensor, types.GeneratorType)):
        return origin in (int, float, list, tuple)
    if origin is torch.Tensor:
        is_array = type(value).__module__ == "numpy"
        return is_array or isinstance(value, (Number, list, tuple))
    if origin is dict and isinstance(value, dict) and len(args) == 2:
        return any(breaks_its_promise(item, args[1]) for item in value.values())
    if origin not in (list, tuple) or not isinstance(value, (list, tuple)) or not args:
        return False
    fixed = origin is tuple and args[-1] is not Ellipsis
    hints = args if fixed else itertools.repeat(args[0])
    return any(map(breaks_its_promise, value, hints))


def fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` is what the annotation ``hint`` says; True if in doubt."""
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, choice) for choice in args)
    if origin is None or origin is type(None):
        return value is None
    if origin is Any or not isinstance(origin, type):
        return True
    try:
        if not isinstance(value, NUMBERS.get(origin, origin)):
            return False
    except TypeError:  # a protocol, which may not be asked
        return True
    if origin is tuple and args and args[-1] is not Ellipsis:
        return len(value) == len(args) and all(map(fits, value, args))
    if origin is dict and args:
        return all(fits(k, args[0]) and fits(v, args[1]) for k, v in value.items())
    if args and isinstance(value, (list, tuple, set)):
        return all(fits(item, args[0]) for item in value)
    return True
