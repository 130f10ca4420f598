"""Mistakes that an exception of the learner's code gives away."""

from __future__ import annotations

import re

from workshop.grader.verdicts.classics.classic import (
    COLLECTIVES,
    Classic,
    Table,
    first_seen,
)

_RESULT = re.compile(
    r"([=(,+*/-]|return)\s*(torch\.distributed|dist)\."
    r"(all_reduce|reduce|broadcast|all_gather|gather|scatter|reduce_scatter|all_to_all"
    r"|send|barrier)\w*\("
)


_RESULT_OF_RECV = re.compile(r"([=(,+*/-]|return)\s*(torch\.distributed|dist)\.recv\(")
_A_FUNCTION = re.compile(  # what Python and torch call one that they can't use
    r"('|(not|got) )(function|method|builtin_function_or_method)('|$)"
)


def _no_gradient(kind: str, text: str, line: str) -> bool:
    """Whether a .grad is None in this line, and not, say, ``self.works``."""
    if ".grad" not in line or "NoneType" not in text:
        return False
    wanted = re.search(r"has no attribute '(\w+)'", text)
    owner = wanted and re.search(rf"\.(\w+)\.{wanted[1]}\b", line)
    return owner is None or owner[1] == "grad"


_BROKEN_FILE = re.compile(
    r"PytorchStreamReader failed|invalid load key|pickle data was truncated"
    r"|Ran out of input|Unsupported operand \d|unpickling stack underflow"
)


# seen(kind, message, line): of the exception, and the learner's line that raised it
IN_EXCEPTIONS: Table = {
    "keyboard": Classic(
        "a rank has no keyboard: don't read input in a distributed program, and remove "
        "any `breakpoint()`",
        seen=lambda kind, text, line: (
            kind == "BdbQuit"
            or "reading from stdin" in text
            or (kind == "EOFError" and "Ran out of input" not in text)  # of a pickle
        ),
    ),
    "group_rank": Classic(
        "a group rank was passed where a global rank is expected, or vice versa",
        COLLECTIVES,
        lambda kind, text, line: "is not part of group" in text,
    ),
    "no_gpu": Classic(
        "checks run on the CPU, with gloo: use `cpu`, not `cuda`",
        seen=lambda kind, text, line: (
            "'_cuda_" in text
            or "compiled with CUDA enabled" in text
            or "Found no NVIDIA driver" in text
        ),
    ),
    "broken_file": Classic(
        "the file that was read isn't whole: did several ranks write one file at the "
        "same time, or was it read before it was complete?",
        "docs/lessons/06_checkpoints/2_replace.rst",
        lambda kind, text, line: _BROKEN_FILE.search(text),
    ),
    "weights_only": Classic(
        "the file holds an object that isn't a tensor, number, string, list or dict: "
        "save its state, such as `generator.get_state()` or `model.state_dict()`",
        "docs/lessons/01_one_device/2_stop_and_resume.rst",
        lambda kind, text, line: "Weights only load failed" in text,
    ),
    "own_partner": Classic(
        "a rank can't receive from itself: pass the rank of its partner",
        COLLECTIVES,
        lambda kind, text, line: "Pair is not connected" in text,
    ),
    "init_twice": Classic(
        "the process group exists already: call `init_process_group` once",
        "docs/lessons/02_ranks/3_rendezvous.rst",
        lambda kind, text, line: "default process group twice" in text,
    ),
    "no_group": Classic(
        "this process is in no group here: collectives and `get_rank()` work only "
        "between `init_process_group` and `destroy_process_group`",
        "docs/lessons/02_ranks/3_rendezvous.rst",
        lambda kind, text, line: "group has not been initialized" in text,
    ),
    "no_rendezvous": Classic(
        "init_method is an address such as `file:///path` or `tcp://host:port`, and "
        "`init_process_group` takes the backend first, then init_method",
        "docs/lessons/02_ranks/3_rendezvous.rst",
        lambda kind, text, line: "No rendezvous handler for" in text,
    ),
    "class_not_called": Classic(
        "a class stands where one of its objects belongs: write parentheses after it, "
        "as in `with torch.no_grad():`",
        seen=lambda kind, text, line: (
            line.startswith("with ") and ("'type' object" in text or "enter__" in text)
        ),
    ),
    "leaf_in_place": Classic(
        "autograd forbids changing a parameter in place: do it under "
        "`with torch.no_grad():`, or change its `.data`",
        seen=lambda kind, text, line: "a leaf Variable that requires grad" in text,
    ),
    "no_reduction": Classic(
        "`op=` takes a reduction of torch.distributed, such as `dist.ReduceOp.MAX`",
        COLLECTIVES,
        lambda kind, text, line: "incompatible function" in text and "ReduceOp" in text,
    ),
    "ddp_alone": Classic(
        "DDP compares the ranks' models when you wrap them: every rank must do that, "
        "with parameters of the same shapes in the same order",
        "docs/lessons/05_ddp_spawn/2_wrap.rst",
        lambda kind, text, line: "DDP expects same model across all ranks" in text,
        "unequal_parameters",
    ),
    "gather_list": Classic(
        "only the root gives a list to scatter and gather",
        COLLECTIVES,
        lambda kind, text, line: "gather_list" in text or "scatter_list" in text,
    ),
    "into_no_gradient": Classic(
        "`.grad` of a tensor is None until backward() has run through it or a tensor "
        "is put there: make one, as by `torch.empty_like`, for a collective to fill",
        seen=lambda kind, text, line: (
            ".grad" in line and "NoneType" in text and "`output`" in text
        ),
    ),
    "no_gradient": Classic(
        "`.grad` of a tensor is None until backward() has run through this very "
        "tensor, not through that of another micro-batch, and stays None for an unused "
        "or frozen parameter, or if it did not require a gradient: call "
        "`requires_grad_()` on a received tensor itself, before anything is computed "
        "with it",
        seen=_no_gradient,
    ),
    "called_too_soon": Classic(
        "`submit(f(x))` calls f at once and submits what it returned: pass the "
        "function and its arguments, `submit(f, x)`",
        seen=lambda kind, text, line: (
            "'Tensor' object is not callable" in text and ".result(" in line
        ),
    ),
    "tuple_for_a_list": Classic(
        "this call puts what it receives into the list that it is given: pass a list, "
        "`[x]`, not a tuple, `(x,)`",
        COLLECTIVES,
        lambda kind, text, line: (
            "'tuple' object does not support item assignment" in text
            and "_object" in line
        ),
    ),
    "tuple_entry": Classic(
        "`entries[i] = x` and `entries[i] += x` assign an entry, which a tuple doesn't "
        "allow: make a new tuple or a list. If the entry is a tensor, you can change "
        "the tensor itself, `entries[i].copy_(x)`, `entries[i].add_(x)`",
        seen=lambda kind, text, line: (
            "'tuple' object does not support item assignment" in text and "=" in line
        ),
    ),
    "not_called": Classic(
        "a function is used here as if it were its result: call it, with `()`",
        seen=lambda kind, text, line: (
            kind in ("TypeError", "AttributeError")
            and "'function' object has no attribute" not in text  # one to put it on
            and bool(_A_FUNCTION.search(text))
        ),
    ),
    "root_first": Classic(
        "fully_shard goes from the inside out, the blocks first and the model last: "
        "the group of a module takes all parameters in it that have no group yet",
        seen=lambda kind, text, line: (
            "fully_shard" in line
            and (
                "overlapping meshes" in text
                or ("Invariant encountered" in text and "mesh" in line)
            )
        ),
    ),
    "no_axis_to_shard": Classic(
        "these parameters are DTensors already. If parallelize_module made them, pass "
        'fully_shard the data axis of the same mesh, as `mesh=mesh["data"]`. If '
        "fully_shard did, it goes from the inside out, the blocks first and the model "
        "last",
        seen=lambda kind, text, line: (
            "fully_shard" in line
            and "Invariant encountered" in text
            and "mesh" not in line
        ),
    ),
    "split_after_sharding": Classic(
        "parallelize_module takes plain parameters, and fully_shard has made DTensors "
        "of these: split a block first, then shard it",
        seen=lambda kind, text, line: (
            "parallelize_module" in line
            and "Cannot distribute a DTensor with device mesh" in text
        ),
    ),
    "shard_of_another_mesh": Classic(
        "the checkpoint holds whole tensors in pieces, and these are shards of one "
        "rank: load into the DTensors of get_state_dict, and each rank reads its part",
        seen=lambda kind, text, line: (
            "load(" in line and "Size mismatch between saved" in text
        ),
    ),
    "changed_in_place": Classic(
        "something that backward() needs was changed after the forward pass: call "
        "`optimizer.step()`, and change tensors in place, only after backward()",
        seen=lambda kind, text, line: "modified by an inplace operation" in text,
    ),
    "graph_twice": Classic(
        "backward() went through one graph twice: call it once for each loss, and "
        "don't add a loss to one on which it has been called",
        seen=lambda kind, text, line: "through the graph a second time" in text,
    ),
    "no_graph": Classic(
        "backward() starts at a tensor that has no graph: was it computed under "
        "`no_grad`, detached, or received from another rank?",
        seen=lambda kind, text, line: "does not require grad and does not" in text,
    ),
    "none_result": Classic(
        "collectives change their tensor in place and return None",
        COLLECTIVES,
        lambda kind, text, line: (
            "'NoneType' object" in text
            or re.search(r"but got (<class ')?NoneType", text)
            or ("NoneType" in text and "unsupported operand" in text)
        ),
    ),
}


# seen(line): the learner's line in which the process was killed
IN_CRASHES: Table = {
    "state_is_a_view": Classic(
        "`set_rng_state` crashes with a view of another tensor, such as `states[rank]` "
        "of a stacked one: give it a `.clone()`",
        seen=lambda line: "set_rng_state(" in line or ".set_state(" in line,
    ),
}


def of_crash(line: str) -> str:
    """The key of the mistake for a line of the learner that killed the process."""
    return first_seen(IN_CRASHES, line)[0]


def of_exception(kind: str, message: str, line: str = "") -> str:
    """The key of the mistake for an exception of the learner's code, or ""."""
    return first_seen(IN_EXCEPTIONS, kind, message, line)[0]


def receives(source: str) -> bool:
    """Whether a program can have received a tensor at all."""
    return "torch.distributed" in source


def takes_a_result(source: str) -> bool:
    """Whether a program uses what a collective returns, which is None."""
    return any(
        "async_op" not in line and _RESULT.search(line) for line in source.splitlines()
    )


def takes_a_sender(source: str, told: str) -> bool:
    """Whether a program uses what recv returns, and a message blames an int for it."""
    is_told = re.search(r"\bint\b", told.partition(", expected")[0])
    return bool(is_told and _RESULT_OF_RECV.search(source))
