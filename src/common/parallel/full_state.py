"""The state of a sharded training run as one file that needs no ranks, and back.

    snapshot = full_state_dict(model, optimizer)    # on rank 0; {} on the others
    load_full_state_dict(model, optimizer, snapshot)

What is written has the form of ``model.state_dict()`` and ``optimizer.state_dict()`` of
one process: ``src/13_train_gpt.py`` resumes from it, and vice versa.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from common.distributed import is_rank_0
from common.snapshot import BadInput, read_snapshot


# [start save]
def full_state_dict(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict:
    """Model and optimizer, whole and on the CPU of rank 0; ``{}`` on the others.

    All ranks call this together: each tensor is gathered once, and freed again.
    """
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=options)
    named = get_optimizer_state_dict(model, optimizer, options=options)
    if not is_rank_0():
        return {}
    return {"model": state, "optimizer": _by_number(named, list(state))}


def _by_number(named: dict, names: list[str]) -> dict:
    """An optimizer's state by parameter names -> by indices, as one process has it."""
    indices = {name: index for index, name in enumerate(names)}
    return {
        "state": {indices[name]: values for name, values in named["state"].items()},
        "param_groups": [
            group | {"params": [indices[name] for name in group["params"]]}
            for group in named["param_groups"]
        ],
    }


# [end save]
def _by_name(numbered: dict, names: list[str]) -> dict:
    """The other way around."""
    return {
        "state": {names[number]: x for number, x in numbered["state"].items()},
        "param_groups": [
            group | {"params": [names[number] for number in group["params"]]}
            for group in numbered["param_groups"]
        ],
    }


# [start load]
def load_full_state_dict(
    model: nn.Module, optimizer: torch.optim.Optimizer, snapshot: dict
) -> None:
    """Give every rank its shards of what rank 0 has read; the others pass ``{}``."""
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    names = [name for name, _ in model.named_parameters()]
    state, named = {}, {}
    if is_rank_0():
        state = snapshot["model"]
        named = _by_name(snapshot["optimizer"], names)
    # every rank, each tensor from rank 0
    set_model_state_dict(model, state, options=options)
    set_optimizer_state_dict(model, optimizer, named, options=options)


# [end load]
def read_on_rank_0(path: Path) -> tuple[dict, int]:
    """(the snapshot on rank 0 and {} on the others, the steps it had run).

    Where rank 0 sees no file, nothing has run: ({}, 0) on all ranks, whatever the
    others see. Every rank calls this.

    Raises:
        BadInput: on every rank, whatever was wrong on rank 0.
    """
    snapshot: dict = {}
    steps_run, problem = 0, ""
    if is_rank_0() and path.exists():
        try:
            snapshot = read_snapshot(path)
            steps_run = snapshot["steps_run"]
        except BadInput as error:
            problem = str(error)
        except KeyError:
            problem = f"{path} is a snapshot of another training: choose another"
    box = [steps_run, problem]
    dist.broadcast_object_list(box, src=0)  # every rank must reach this line
    steps_run, problem = box
    if problem:
        raise BadInput(problem)
    return snapshot, steps_run
