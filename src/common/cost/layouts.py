"""One step of a byte GPT, divided among the ranks in each way that formulas predict.

for name, layout in layouts(ranks=4, batch=16).items():
    step = make_step(layout, device)  # every rank; then step() trains one step
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate
from torch.distributed.tensor import parallel as tp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.testing._internal.distributed import fake_pg  # noqa: F401  # adds "fake"

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.formulas import Layout, Model

SIZES = Sizes()
GPT = Model(SIZES.blocks, SIZES.width, SIZES.heads, SIZES.context, BYTES)
ONCE = tp.PrepareModuleInput(
    input_layouts=Replicate(), desired_input_layouts=Replicate()
)  # an all-reduce in backward; each Rowwise makes one in forward
COLUMNS = "attention.query", "attention.key", "attention.value", "mlp.up"
ROWS = "attention.out", "mlp.down"
PLAN: dict[str, tp.ParallelStyle] = {"attention": ONCE, "mlp": ONCE}
for _name in COLUMNS:
    PLAN[_name] = tp.ColwiseParallel()
for _name in ROWS:
    PLAN[_name] = tp.RowwiseParallel()


def layouts(ranks: int, batch: int) -> dict[str, Layout]:
    """The methods for this many ranks, which divide the ``batch`` of all of them."""
    each = batch // ranks
    found = {"DDP": Layout(data=ranks, micro_batch=each)}
    found["FSDP"] = Layout(data=ranks, stage=3, micro_batch=each)
    if SIZES.heads % ranks == 0:
        found["TP"] = Layout(tensor=ranks, micro_batch=batch)
    if SIZES.blocks % ranks == 0:
        found["PP"] = Layout(pipeline=ranks, micro_batch=each, micro_batches=ranks)
    if ranks > 2 and ranks % 2 == 0:
        found["FSDP x TP"] = Layout(2, 1, ranks // 2, stage=3, micro_batch=2 * each)
    return found


def make_step(
    layout: Layout, device: torch.device, silent: bool = False
) -> Callable[[], None]:
    """A training step of this rank; all ranks of the layout call it.

    ``silent``: FSDP and tensor parallel do everything except send.
    """
    torch.manual_seed(0)
    model: nn.Module = ByteGPT(SIZES).to(device)
    shape = 2, layout.micro_batch * layout.micro_batches, SIZES.context
    inputs, targets = torch.randint(BYTES, shape, device=device)
    if layout.pipeline > 1:
        model, run = _stage(model, layout, inputs, targets)
    else:
        model = _divide(model, layout, device, silent)

        def run() -> object:
            return next_byte_loss(model(inputs), targets).backward()

    # the blocks' DTensors beside the others' tensors, which a GPU's foreach refuses
    mixed = layout.tensor > 1 and layout.data == 1
    foreach = False if mixed else None
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, foreach=foreach)

    def step() -> None:
        optimizer.zero_grad()
        run()
        optimizer.step()

    return step


def _divide(
    model: ByteGPT, layout: Layout, device: torch.device, silent: bool
) -> nn.Module:
    if layout.stage < 3 and layout.tensor == 1:
        return DDP(model) if layout.data > 1 else model
    data, tensor = _meshes(device.type, silent, layout.data, layout.tensor)
    if layout.tensor > 1:
        for block in model.blocks:
            tp.parallelize_module(block, tensor, PLAN, src_data_rank=None)  # no scatter
    if layout.data > 1:
        for layer in [*model.blocks, model]:
            fully_shard(layer, mesh=data)
    return model


@cache  # each new mesh would make new process groups
def _meshes(device: str, silent: bool, *sizes: int) -> tuple[DeviceMesh, DeviceMesh]:
    # of one name, DTensor takes two meshes for one, and sends in the silent one, too
    names = ("silent data", "silent tensor") if silent else ("data", "tensor")
    fake = dict.fromkeys(names, "fake") if silent else None
    mesh = init_device_mesh(device, sizes, mesh_dim_names=names, backend_override=fake)
    return mesh[names[0]], mesh[names[1]]


def _stage(
    model: ByteGPT, layout: Layout, inputs: torch.Tensor, targets: torch.Tensor
) -> tuple[nn.Module, Callable[[], object]]:
    """This rank's layers, and what runs all micro-batches through all stages."""
    rank, stages = dist.get_rank(), layout.pipeline
    number, (embed, *blocks, head) = len(model.blocks) // stages, model.layers()
    own = blocks[rank * number : (rank + 1) * number]
    first, last = rank == 0, rank == stages - 1
    module = nn.Sequential(*[embed] * first, *own, *[head] * last)
    stage = PipelineStage(module, rank, stages, inputs.device)
    schedule = Schedule1F1B(stage, layout.micro_batches, loss_fn=next_byte_loss)
    given, target = [inputs] * first, targets if last else None
    return module, lambda: schedule.step(*given, target=target, return_outputs=False)
