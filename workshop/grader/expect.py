"""What checks say: each function raises :class:`Mismatch` with a diagnosis.

A check is run in every rank, so each function compares *this* rank's value; the
grader gathers the failures of all ranks into one message. Values are compared
with ``torch`` functions taken when the grader was imported, before the learner's
file could replace them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import torch
import torch.distributed as dist

from workshop.grader.verdicts.classics.values import of_none, of_shapes, of_values

_allclose, _equal, _sort = torch.allclose, torch.equal, torch.sort
_is_initialized, _get_world_size = dist.is_initialized, dist.get_world_size
_all_gather_object = dist.all_gather_object

_IN_C = type(int.__eq__)
# what differs between ranks in one and the same message: addresses, gloo's prefix
NOISE = re.compile(r" (object )?at 0x[0-9a-f]+|\[(rank\d+\]:\[\w\d+|enforce)[^\]]*\] *")
passed = 0  # comparisons that were right so far, in this rank
_averages = True  # whether a value may be a mean over the ranks


def _pass() -> None:
    global passed
    passed += 1


def nothing_is_averaged() -> None:
    """For the head of a file of checks: no value resembles a wrongly divided mean."""
    global _averages
    _averages = False


class Mismatch(AssertionError):
    """A value or a way that is not what the exercise asks for.

    ``what`` is the thing compared, ``problem`` one sentence about this rank,
    ``suspicion`` the key of a classic mistake in ``CLASSICS`` or "", ``way``
    true if the values are right but the way is not.
    """

    def __init__(self, what: str, problem: str, suspicion: str = "", way: bool = False):
        message = f"{what}: {problem}" if what else problem
        super().__init__(message)
        self.what, self.problem = what, problem
        self.suspicion, self.way = suspicion, way


def that(condition: Any, sentence: str, *, cause: str = "") -> None:
    """Fail with ``sentence`` unless ``condition`` is true.

    ``cause`` is a clause of :func:`workshop.grader.variants.cause`, or "".
    """
    if not condition:
        raise Mismatch("", f"{sentence}{as_if(cause)}")
    _pass()


def as_if(cause: str) -> str:
    """The line that a clause of :mod:`workshop.grader.variants` becomes."""
    return f"\n    it is as if {cause}" if cause else ""


def right_way(condition: Any, sentence: str) -> None:
    """Fail with verdict *wrong way*: the values were right, the way is not."""
    if not condition:
        raise Mismatch("", sentence, way=True)
    _pass()


def close(
    actual: Any,
    expected: Any,
    what: str,
    *,
    atol: float = 1e-10,
    rtol: float = 1e-10,
    local: Any = None,
    mistaken: dict[str, Any] | None = None,
    cause: str = "",
) -> None:
    """Compare a tensor or number with the expected one and say how it differs.

    Args:
        what: the name of the value, as in "the gradient of the weight".
        local: this rank's value before any communication, if there is one; a
            result equal to it was never communicated.
        mistaken: the values of classic mistakes by their names, as in ``{"the mean
            of the ranks' means": 2.5}``; a result equal to one is called that.
        cause: a clause of :func:`workshop.grader.variants.cause`, or "".
    """
    try:
        _close_to(actual, expected, what, atol, rtol, local, mistaken or {})
    except Mismatch as wrong:
        if not cause:
            raise
        raise Mismatch(wrong.what, f"{wrong.problem}{as_if(cause)}") from None


def _close_to(actual, expected, what: str, atol, rtol, local, mistaken) -> None:
    if actual is None:
        raise Mismatch(what, *of_none(what))
    a, e = _tensor(actual, what), _exact(expected)
    if a.shape != e.shape:
        shapes = f"has shape {_shape(a)}, expected {_shape(e)}"
        raise Mismatch(what, shapes, of_shapes(a.shape, e.shape, _world()))
    if torch.is_tensor(expected) and a.dtype != e.dtype:
        raise Mismatch(what, f"has dtype {_dtype(a)}, expected {_dtype(e)}")
    a, e = _as_it_is_now(a), e.detach()
    wide = torch.complex128 if a.is_complex() or e.is_complex() else torch.float64
    a, e = a.to(wide), e.to(wide)
    if _allclose(a, e, atol=atol, rtol=rtol):
        return _pass()
    for name, value in mistaken.items():
        other = _exact(value).detach().to(wide)
        if other.shape == a.shape and _allclose(a, other, atol=atol, rtol=rtol):
            raise Mismatch(what, f"is {name}; {_first(a, e, atol, rtol)}")
    own = None if local is None else _exact(local).detach().to(wide)
    problem, guess = _difference(a, e, own, atol, rtol)
    if guess == "zero" and not torch.is_tensor(actual):
        problem, guess = _first(a, e, atol, rtol), ""  # who writes into a number?
    raise Mismatch(what, problem, guess)


def gradient(
    tensor: torch.Tensor, expected: Any, name: str, *, why: str = "", **options: Any
) -> None:
    """Compare ``tensor.grad`` as :func:`close` does; ``name`` is that of the tensor.

    ``why`` is what it may come from if there is no gradient at all.
    """
    if tensor.grad is None:
        raise Mismatch("", f"{name} got no gradient{why and f': {why}'}")
    close(tensor.grad, expected, f"the gradient of {name}", **options)


def unchanged(actual: torch.Tensor, before: torch.Tensor, what: str) -> None:
    """Expect a tensor that the learner's code was given to be what it was before."""
    if actual.shape != before.shape or not _equal(actual.detach(), before.detach()):
        raise Mismatch(what, "changed: work on a copy, the caller still needs it")
    _pass()


def own_memory(tensor: torch.Tensor, other: torch.Tensor, name: str) -> None:
    """Expect ``tensor`` to be a copy, not a view of ``other``, nor ``other`` itself."""
    if tensor.untyped_storage().data_ptr() == other.untyped_storage().data_ptr():
        shares = "shares its memory with the whole layer, so training one changes the"
        raise Mismatch("", f"{name} {shares} other: clone it")
    _pass()


def still_training(module: torch.nn.Module, name: str) -> None:
    """Expect a module that came in training mode to be left in it."""
    if not all(part.training for part in module.modules()):
        told = f"{name} left in evaluation mode: the caller continues training"
        raise Mismatch("", told)
    _pass()


def equal(actual: Any, expected: Any, what: str, *, cause: str = "") -> None:
    """Compare exactly: tensors bit for bit, anything else with ``==``.

    ``cause`` is a clause of :func:`workshop.grader.variants.cause`, or "".
    """
    if not cause:
        return _equal_to(actual, expected, what)
    try:
        _equal_to(actual, expected, what)
    except Mismatch as wrong:
        problem = f"{wrong.problem}{as_if(cause)}"
        raise Mismatch(wrong.what, problem, wrong.suspicion) from None


def _equal_to(actual: Any, expected: Any, what: str) -> None:
    if actual is None and expected is not None:
        raise Mismatch(what, *of_none(what, expected))
    if torch.is_tensor(expected):
        a = _tensor(actual, what)
        if a.shape != expected.shape or a.dtype != expected.dtype:
            seen = f"{_dtype(a)}{_shape(a)}"
            raise Mismatch(
                what, f"is {seen}, expected {_dtype(expected)}{_shape(expected)}"
            )
        now = _as_it_is_now(a)
        if not _equal(now, expected.detach()):
            wide = now.double(), expected.detach().double()
            problem, guess = _difference(*wide, None, 0.0, 0.0)
            raise Mismatch(what, problem, guess)
        return _pass()
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _equal_dicts(actual, expected, what)
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        return _equal_lists(actual, expected, what)
    if torch.is_tensor(actual) and isinstance(expected, (int, float, str)):
        kind = type(expected).__name__
        raise Mismatch(what, f"is a tensor, expected the {kind} {_short(expected)}")
    if not _same(actual, expected):
        raise Mismatch(what, f"is {_short(actual)}, expected {_short(expected)}")
    return _pass()


def number(actual: Any, expected: int, what: str) -> None:
    """Expect the whole number ``expected``, as an ``int``: no float, no tensor."""
    equal(actual, expected, what)
    if not isinstance(actual, Integral):
        kind = type(actual).__name__
        raise Mismatch(what, f"is {_short(actual)}, a {kind}: expected an int")


def told(launches: Sequence[Any], option: str, wanted: str) -> None:
    """Expect each of a job's launches to have got ``option`` with this value."""
    for launch in launches:
        where = f"{launch.program} on {launch.host}"
        found = launch.nodes if option == "--nnodes" else launch.option(option)
        that(found is not None, f"{where} didn't get {option}")
        equal(found, wanted, f"{option} of {where}")


def raises(
    error: type[BaseException],
    function: Callable[..., Any],
    *args: Any,
    words: Sequence[str] = (),
    what: str = "bad input",
    **kwargs: Any,
) -> None:
    """Expect ``function(*args)`` to raise ``error`` with each of ``words`` in it."""
    try:
        returned = function(*args, **kwargs)
    except NotImplementedError:
        raise
    except error as caught:
        if missing := [word for word in words if word not in str(caught)]:
            names = f"the error must name {', '.join(missing)}"
            raise Mismatch(what, f"{names}; it says {_short(caught)}") from None
        return _pass()
    except (AssertionError, ValueError) as other:  # meant as a refusal
        found = f"raised {type(other).__name__}: {_short(other)}"
    else:
        shown = " ".join(NOISE.sub("", repr(returned)).split())  # tensors have lines
        found = f"returned {shown[:160]}"
    raise Mismatch(what, f"must raise {error.__name__}, but {found}")


def same_on_all_ranks(value: torch.Tensor, what: str) -> None:
    """Expect every rank to hold the same bits as rank 0 (a collective check)."""
    everyone: list[Any] = [None] * _get_world_size()
    _all_gather_object(everyone, value.detach())
    if not _equal(value.detach(), everyone[0]):
        raise Mismatch(what, "differs from what rank 0 holds", "ranks_differ")
    _pass()


# -- how values differ ---------------------------------------------------------
def _difference(a, e, own, atol: float, rtol: float) -> tuple[str, str]:
    """(one sentence, key of the suspicion) for two tensors of the same shape."""
    if bool(torch.isnan(a).any()) and not bool(torch.isnan(e).any()):
        return f"holds {int(torch.isnan(a).sum())} NaN of {a.numel()} elements", "nan"
    if bool(torch.isinf(a).any()) and bool(torch.isfinite(e).all()):
        count, of = int(torch.isinf(a).sum()), a.numel()
        one = _first(a, e, atol, rtol)
        many = f"holds {count} infinite of {of} elements"
        problem = many if of > 1 else one
        return problem, "infinite"
    if _equal(a, e):  # they were whole numbers
        return "went through a float: a whole number's last digits are lost", ""
    wrong = ~torch.isclose(a, e, atol=atol, rtol=rtol)
    first = _first(a, e, atol, rtol)
    scale = _scale(a, e)
    problem, guess = of_values(a, e, own, wrong, scale, _world(), _averages)
    return (f"{problem}; {first}" if problem else first), guess


def _first(a, e, atol: float, rtol: float) -> str:
    """``got 3, expected 4 at [0, 2] (5 of 6 elements differ)``."""
    wrong = ~torch.isclose(a, e, atol=atol, rtol=rtol)
    index = tuple(int(i) for i in wrong.nonzero()[0]) if a.dim() else ()
    place = f" at {list(index)}" if a.dim() else ""
    first = _two_numbers(a[index].item(), e[index].item()) + place
    if a.dim() and a.numel() > 1:
        first += f" ({int(wrong.sum())} of {a.numel()} elements differ)"
    return first


def _scale(a: torch.Tensor, e: torch.Tensor) -> float | None:
    """k with a = k e everywhere, if there is one."""
    norm = 0.0 if a.is_complex() else float((e * e).sum())
    if norm == 0.0 or not bool(torch.isfinite(a).all()):
        return None
    k = float((a * e).sum()) / norm
    size = float(e.abs().max())
    return k if _allclose(a, k * e, rtol=1e-6, atol=1e-9 * size) else None


def _equal_dicts(actual: dict, expected: dict, what: str) -> None:
    if missing := [key for key in expected if key not in actual]:
        raise Mismatch(what, f"lacks {_short(missing)}")
    if extra := [key for key in actual if key not in expected]:
        raise Mismatch(what, f"has {_short(extra)}, which should not be there")
    for key, value in expected.items():
        equal(actual[key], value, f"{what}, {key!r}")


def _equal_lists(actual: Sequence, expected: Sequence, what: str) -> None:
    if len(actual) != len(expected):
        plural = "s" * (len(actual) != 1)
        items = f"has {len(actual)} item{plural}, expected {len(expected)}"
        shown = f"{_short(actual, 80)}, expected {_short(expected, 80)}"
        raise Mismatch(what, f"{items}: is {shown}")
    if not any(map(torch.is_tensor, [*actual, *expected])) and sorted(
        map(repr, actual)
    ) == sorted(map(repr, expected)):
        if all(map(_same, actual, expected)):
            return _pass()
        problem = f"is {_short(actual)}, expected {_short(expected)}"
        raise Mismatch(what, f"has the right items in another order: {problem}")
    for index, (a, e) in enumerate(zip(actual, expected, strict=True)):
        equal(a, e, f"{what}, item {index}")


def _same(actual: Any, expected: Any) -> bool:
    """``==`` as the expected value sees it; False where that gives no answer.

    A class that is written in Python has no say in what it is equal to.
    """
    of_expected: Any = type(expected).__eq__
    of_actual: Any = type(actual).__eq__
    try:
        answer = of_expected(expected, actual)
        if answer is NotImplemented and type(of_actual) is _IN_C:
            answer = of_actual(actual, expected)  # as of NumPy's numbers
        return answer is not NotImplemented and bool(answer)
    except (TypeError, ValueError, RuntimeError):
        return False


def _tensor(value: Any, what: str) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        full: Callable[[], torch.Tensor] | None = getattr(value, "full_tensor", None)
        value = value if full is None else full()  # a DTensor holds only its shard
        if value.is_sparse or value.device.type != "cpu":
            kind = "sparse tensor" if value.is_sparse else f"tensor on {value.device}"
            raise Mismatch(what, f"is a {kind}, expected a dense one on the CPU")
        return value
    try:
        return _exact(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise Mismatch(
            what, f"is a {type(value).__name__}, expected a tensor or a number"
        ) from None


def _as_it_is_now(tensor: torch.Tensor) -> torch.Tensor:
    """A copy: a collective that wasn't awaited may still write into the tensor."""
    return tensor.detach().clone()


def _exact(value: Any) -> torch.Tensor:
    """As a tensor; Python's numbers keep 64 bits, for 32 are not good to 1e-10."""
    tensor = torch.as_tensor(value)
    if isinstance(value, torch.Tensor) or not tensor.is_floating_point():
        return tensor
    return torch.as_tensor(value, dtype=torch.float64)


def _world() -> int:
    return _get_world_size() if _is_initialized() else 1


def _shape(tensor: torch.Tensor) -> str:
    return str(list(tensor.shape))


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _two_numbers(a: complex, e: complex) -> str:
    got, expected = f"{a:.6g}", f"{e:.6g}"
    if got == expected:  # six digits don't tell them apart
        got, expected = str(a), str(e)
    return f"got {got}, expected {expected}"


def _short(value: Any, length: int = 160) -> str:
    text = str(value) if isinstance(value, BaseException) else repr(value)
    text = NOISE.sub("", text)
    return text if len(text) <= length else text[: length - 3] + "..."
