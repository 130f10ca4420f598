"""Write what decides whether the capstone survives: its layout, its saves, its resume.

``src/20_capstone.py --code exercises/20_capstone.py`` trains with your code in place of
its own. The model has ``blocks``; each block has these layers::

    attention.query, attention.key, attention.value      [B, T, H] -> [B, T, H]
    attention.out                                        [B, T, H] -> [B, T, H]
    mlp.up, mlp.down                     [B, T, H] -> [B, T, 4H] -> [B, T, H]

* ``lay_out`` divides the model over a mesh with the axes ``data`` and ``tensor``.
* ``Saver.after_step`` saves every few steps, and when a signal asks for it.
* ``resume`` loads the newest checkpoint, whatever mesh saved it.

A folder named ``checkpoint-STEPS`` must be complete from the moment it has that name. A
node may be lost at any time, and the next start trusts the name.

    workshop check 20_capstone

The page is docs/lessons/20_capstone/2_code.rst.
"""

import shutil
import signal
from concurrent.futures import Future
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def lay_out(
    model: nn.Module,
    tensor_ranks: int,
    policy: MixedPrecisionPolicy,
    root_policy: MixedPrecisionPolicy,
    device: torch.device,
) -> DeviceMesh:
    """Divide ``model`` in place over all ranks; the mesh of axes data and tensor.

    Ranks with consecutive numbers are on one node, and a tensor group must not leave
    its node. Cut each block's six layers among ``tensor_ranks`` ranks. Then each block
    is a group of FSDP with ``policy``, and what is left is one with ``root_policy``.
    """
    # TODO 1 of 3: make the mesh, split the layers along its tensor axis, and shard
    # along its data axis. Choose the order with care.
    raise NotImplementedError("TODO 1 of 3")


class Saver:
    """Saves the run every ``every`` steps, and when a rank gets the signal SIGUSR2."""

    def __init__(self, folder: Path, every: int, model: nn.Module, optimizer):
        self.folder, self.every = folder, every
        self.model, self.optimizer = model, optimizer
        self.pending: tuple[int, Future] | None = None  # steps, and the save of them
        self.signaled = False  # on this rank
        # A save in the background has collectives, too: in the default group, they
        # would run between those of the steps, in another order on each rank.
        self.group = dist.new_group(backend="gloo")
        signal.signal(signal.SIGUSR2, self.note_signal)
        if dist.get_rank() == 0:
            for left_over in folder.glob("unfinished-*"):
                shutil.rmtree(left_over)

    def note_signal(self, _number, _frame) -> None:
        self.signaled = True  # a handler runs between any two lines: it saves nothing

    def unfinished(self, steps_run: int) -> Path:
        """The folder to write to: what is in it doesn't count yet."""
        return self.folder / f"unfinished-{steps_run}"

    def finish(self) -> None:
        """Wait for the pending save, if there is one; then the folder gets its name."""
        if self.pending is None:
            return
        steps_run, save = self.pending
        self.pending = None
        save.result()  # on rank 0, it is done when every rank has written its part
        if dist.get_rank() == 0:
            complete = self.folder / f"checkpoint-{steps_run}"
            self.unfinished(steps_run).rename(complete)

    def after_step(self, steps_run: int) -> None:
        """Save if it is due; every rank calls this after each step.

        It returns while the save is written in the background. Parameters and the
        state of the optimizer are saved by all ranks, each its shards. A signal to one
        rank makes all ranks save. A folder gets its final name at the first step after
        it's written, and at the latest before the next save begins.
        """
        # TODO 2 of 3: finish what is done, agree on whether to save, and begin the save
        # in ``unfinished(steps_run)``, through ``self.group``. Set ``self.pending``.
        raise NotImplementedError("TODO 2 of 3")


def resume(folder: Path, model: nn.Module, optimizer) -> int:
    """Load the newest ``checkpoint-STEPS`` of ``folder``; the steps it had run, or 0.

    ``model`` is divided already, perhaps over another mesh than the one that saved, and
    ``optimizer`` is new. Every rank calls this, and all load the same checkpoint.
    """
    # TODO 3 of 3: find the newest, load it into this mesh's shards, and put these into
    # the model and the optimizer.
    raise NotImplementedError("TODO 3 of 3")
