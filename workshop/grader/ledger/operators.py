"""A listener in front of torch's operators that communicate, from any caller.

All of ``torch.distributed``, DDP's C++ and FSDP2 go through the operators of ``c10d``
and ``_c10d_functional``. In front of each stands a kernel in Python. It is registered
for BackendSelect, a key that every call passes, also one in inference mode; other
operators stay as fast as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed

NAMESPACES = ("c10d", "_c10d_functional")
_KEY = torch._C.DispatchKey.BackendSelect
_BELOW = torch._C._dispatch_keyset_full_after(_KEY)

# listener(operator, args, kwargs, go): go(*args, **kwargs) makes the call
Listener = Callable[[torch._ops.OpOverload, tuple, dict, Callable], Any]
# around(operator, go, args, kwargs), just around the call, below the listener
Around = Callable[[torch._ops.OpOverload, Callable, tuple, dict], Any]
_listener: Listener | None = None
_around: Around | None = None
_libraries: list[torch.library.Library] = []


def listen(listener: Listener | None) -> Listener | None:
    """From now on every call goes to ``listener``; returns the one before."""
    global _listener
    before, _listener = _listener, listener
    return before


def around(function: Around | None) -> Around | None:
    """From now on ``function`` makes each call; returns the one before."""
    global _around
    before, _around = _around, function
    return before


def _kernel(operator: torch._ops.OpOverload) -> Callable:
    def kernel(keyset, *args, **kwargs):
        go = partial(operator.redispatch, keyset & _BELOW)
        if _around is not None:
            go = partial(_make, _around, operator, go)
        if _listener is None:
            return go(*args, **kwargs)
        return _listener(operator, args, kwargs, go)

    return kernel


def _make(function: Around, operator, go: Callable, *args, **kwargs):
    return function(operator, go, args, kwargs)


def _stand_in_front() -> None:
    for namespace in NAMESPACES:
        library = torch.library.Library(namespace, "IMPL")
        _libraries.append(library)  # its kernels live as long as it does
        for full_name in torch._C._dispatch_get_all_op_names():
            space, _, name = full_name.partition("::")
            if space == namespace:
                packet, _, overload = name.partition(".")
                overloads = getattr(getattr(torch.ops, namespace), packet)
                operator = getattr(overloads, overload or "default")
                library.impl(name, _kernel(operator), _KEY.name, with_keyset=True)


_stand_in_front()
