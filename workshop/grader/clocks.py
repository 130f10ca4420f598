"""A clock for checks of what learners time: calls and bytes advance it, nothing else.

How long a message really takes depends on what else the machine does, so no check may
judge it. Within :func:`simulated`, the functions of ``time`` read a clock of this rank
that stands still while Python runs. A message or a collective advances it by what a
:class:`Link` says, and so do ``time.sleep`` and :meth:`Clock.compute`. Ranks still wait
for each other: a message arrives no sooner than it was sent, and a collective ends on
all ranks at once, after the last of them has called it. For this, each rank sends the
time of its own call along with the call.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
import timeit
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from workshop.grader.ledger import operators
from workshop.grader.ledger.ledger import NAMES, POINT_TO_POINT
from workshop.grader.ledger.works import ASKS

SECONDS = "perf_counter", "monotonic", "time"
OF_THE_CPU = "process_time", "thread_time"
GET_FUTURE = "get_future"  # the one of ASKS that doesn't wait
_TAG = 1 << 20  # of the messages that carry times, on top of the learner's own tag
_sent_times: list[tuple] = []  # kept, or gloo would drop what it has to send
_TAKES_A_TIMER = timeit.Timer.__init__, timeit.timeit, timeit.repeat


@dataclass(frozen=True)
class Link:
    """What joins two ranks: a message of n bytes takes ``alpha + beta n`` seconds.

    Attributes:
        first: seconds more for the first call of each kind and size.
        slower: factors of the calls of each kind and size that follow, in turn.
    """

    alpha: float
    beta: float
    first: float = 0.0
    slower: tuple[float, ...] = (1.0,)

    def message(self, size: float) -> float:
        """Seconds of one message that nothing disturbs."""
        return self.alpha + self.beta * size

    def collective(self, op: str, size: int, ranks: int) -> float:
        """Seconds of a collective that nothing disturbs.

        Args:
            size: bytes that each rank passes in.
        """
        if op.startswith("all_reduce"):  # a ring
            return 2 * (ranks - 1) * self.message(size / ranks)
        if op.startswith(("all_gather", "reduce_scatter", "all_to_all")):
            part = size if op.startswith("all_gather") else size / ranks
            return (ranks - 1) * self.message(part)
        return math.ceil(math.log2(ranks)) * self.message(size)  # a tree

    def disturbed(self, seconds: float, before: int) -> float:
        """``seconds`` of a call, of whose kind and size there were ``before``."""
        if not before:
            return seconds + self.first
        return seconds * self.slower[(before - 1) % len(self.slower)]


class Clock:
    """The clock of this rank, and what its messages do to it.

    Attributes:
        now: seconds since the clock was made, at about the same time on all ranks.
        busy: those in which this rank computed.
    """

    def __init__(self, link: Link, offset: float = 0.0):
        self.link, self.offset = link, offset
        self.now = self.busy = 0.0
        self._port = 0.0  # when this rank has sent all that it began to send
        self._within = False
        self._before: Counter[tuple] = Counter()  # calls of each kind and size
        self._begun: dict[int, tuple[Any, Callable[[], float]]] = {}  # by id of a Work
        self._futures: dict[int, tuple[Any, Any]] = {}  # with their works, by id

    @property
    def is_sending(self) -> bool:
        """Whether a call has begun for which no line has waited yet."""
        return bool(self._begun)

    def compute(self, seconds: float) -> None:
        """This rank computes for so long."""
        self.busy += seconds
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        """This rank does nothing for so long."""
        self.now += seconds

    def called(self, operator, go: Callable, args: tuple, kwargs: dict) -> Any:
        """An operator that communicates is called: begin it, and note when it ends."""
        op = NAMES.get(operator._schema.name.partition("::")[2])
        if op is None or self._within:
            return go(*args, **kwargs)
        names = [argument.name for argument in operator._schema.arguments]
        values = dict(zip(names, args, strict=False)) | kwargs
        with self._own_calls():
            end = self._begin(op, values)
            result = go(*args, **kwargs)
        last = result[-1] if isinstance(result, (tuple, list)) and result else result
        if isinstance(last, torch.ScriptObject):
            work = dist.Work.unbox(last)
            self._begun[id(work)] = work, end
        else:
            self._end(end)
        return result

    def waited(self, work: Any) -> None:
        """Somebody waited for a Work: its call has ended."""
        _, end = self._begun.pop(id(work), (None, None))
        if end is not None:
            self._end(end)

    def promised(self, future: Any, work: Any) -> None:
        """Somebody asked a Work for its future, which doesn't wait yet."""
        self._futures[id(future)] = future, work

    def waited_for(self, future: Any) -> None:
        """Somebody waited for a future: the call of its Work has ended."""
        _, work = self._futures.pop(id(future), (None, None))
        self.waited(work)

    def _end(self, end: Callable[[], float]) -> None:
        with self._own_calls():
            self.now = max(self.now, end())

    @contextlib.contextmanager
    def _own_calls(self) -> Iterator[None]:
        """What this clock calls itself takes no time, and is no row of a ledger."""
        self._within, listener = True, operators.listen(None)
        try:
            yield
        finally:
            self._within = False
            operators.listen(listener)

    # -- when calls end -----------------------------------------------------------
    def _begin(self, op: str, values: dict[str, Any]) -> Callable[[], float]:
        if "group_name" in values:
            name = values["group_name"]
            group = dist.distributed_c10d._resolve_process_group(name)
        else:
            group = dist.ProcessGroup.unbox(values["process_group"])
        if op not in POINT_TO_POINT:
            return self._begin_collective(op, values, group)
        tag = _TAG + values.get("tag", 0)
        if op == "send":
            return self._begin_send(values, group, tag)
        return functools.partial(self._received, values.get("src"), group, tag)

    def _begin_send(self, values: dict[str, Any], group, tag: int):
        size = _bytes(values["tensors"])
        undisturbed = self.link.message(size)
        seconds = undisturbed
        kind = "send", size
        first = not self._before[kind]
        if first or group.rank() == 0:  # one direction alone is disturbed
            seconds = self.link.disturbed(undisturbed, self._before[kind])
        self._before[kind] += 1
        returns = self.now + self.link.alpha  # when the bytes are on their way
        self._port = max(self.now, self._port) + seconds
        arrives = _time(self._port)
        _sent_times.append((group.send([arrives], values["dst"], tag), arrives))
        return lambda: returns

    def _received(self, source: int | None, group, tag: int) -> float:
        arrives = _time(0.0)
        if source is None:
            group.recv_anysource([arrives], tag).wait()
        else:
            group.recv([arrives], source, tag).wait()
        return float(arrives)

    def _begin_collective(self, op: str, values: dict[str, Any], group):
        ranks, size = group.size(), _bytes(_sent(op, values))
        seconds = self.link.collective(op, size, ranks)
        if op != "barrier":
            kind = op, size
            seconds = self.link.disturbed(seconds, self._before[kind])
            self._before[kind] += 1
        calls = [_time(0.0) for _ in range(ranks)]
        everyone = group.allgather([calls], [_time(self.now)])

        def end() -> float:
            everyone.wait()
            return max(map(float, calls)) + seconds

        return end


@contextlib.contextmanager
def simulated(exercise, link: Link, offset: float = 0.0) -> Iterator[Clock]:
    """Until the end, the time of this rank is that of the clock that it gives.

    Args:
        exercise: the learner's module, which may have imported functions of ``time``.
        offset: what this rank's clock shows at the beginning: those of two nodes
            differ, and what one shows says nothing about the other.
    """
    clock = Clock(link, offset)
    with contextlib.ExitStack() as stack:
        _replace_time(stack, exercise, clock)
        for name in ("is_completed", *ASKS):
            if hasattr(dist.Work, name):
                method = getattr(dist.Work, name)
                that = _that_promises if name == GET_FUTURE else _that_ends
                _set(stack, dist.Work, name, that(method, clock))
        future_wait = _of_a_future(torch._C.Future.wait, clock)
        _set(stack, torch._C.Future, "wait", future_wait)
        around = operators.around(clock.called)
        stack.callback(operators.around, around)
        yield clock


def _replace_time(stack: contextlib.ExitStack, exercise, clock: Clock) -> None:
    """The functions of ``time``, wherever the learner's file may have them from."""
    fakes: dict[int, Callable] = {}
    for names, read in (
        (SECONDS, lambda: clock.offset + clock.now),
        (OF_THE_CPU, lambda: clock.busy),
    ):
        for name in names:
            whole = f"{name}_ns"
            fakes[id(getattr(time, name))] = _here(getattr(time, name), read)
            real = getattr(time, whole)
            fakes[id(real)] = _here(real, functools.partial(_nanoseconds, read))
    fakes[id(time.sleep)] = _here(time.sleep, clock.sleep)
    for place in (time, timeit, exercise._module):
        for name, value in list(vars(place).items()):
            if id(value) in fakes:
                _set(stack, place, name, fakes[id(value)])
    for function in _TAKES_A_TIMER:
        defaults = [
            fakes.get(id(value), value) for value in function.__defaults__ or ()
        ]
        _set(stack, function, "__defaults__", tuple(defaults))


def _here(real: Callable, fake: Callable) -> Callable:
    """``fake`` in this thread; the grader watches in another one, by real time."""
    thread = threading.get_ident()

    @functools.wraps(real)
    def function(*args):
        if threading.get_ident() != thread:
            return real(*args)
        return fake(*args)

    return function


def _nanoseconds(read: Callable[[], float]) -> int:
    return round(read() * 1e9)


def _that_ends(method: Callable, clock: Clock) -> Callable:
    @functools.wraps(method)
    def asked(work, *args, **kwargs):
        result = method(work, *args, **kwargs)
        if result is not False:  # is_completed of one that goes on
            clock.waited(work)
        return result

    return asked


def _that_promises(method: Callable, clock: Clock) -> Callable:
    @functools.wraps(method)
    def asked(work, *args, **kwargs):
        future = method(work, *args, **kwargs)
        clock.promised(future, work)
        return future

    return asked


def _of_a_future(method: Callable, clock: Clock) -> Callable:
    @functools.wraps(method)
    def asked(future, *args, **kwargs):
        result = method(future, *args, **kwargs)
        clock.waited_for(future)
        return result

    return asked


def _set(stack: contextlib.ExitStack, place: Any, name: str, value: Any) -> None:
    stack.callback(setattr, place, name, getattr(place, name))
    setattr(place, name, value)


def _time(seconds: float) -> torch.Tensor:
    return torch.tensor([seconds], dtype=torch.float64)


def _sent(op: str, values: dict[str, Any]) -> Any:
    """The tensors that this rank passes in."""
    if op in ("barrier", "monitored_barrier"):
        return []
    names = "input", "input_tensors", "input_tensor", "inputs", "tensors", "tensor"
    return next((values[name] for name in names if name in values), [])


def _bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes, value))
    return 0
