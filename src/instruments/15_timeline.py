"""Watch one step of FSDP: when each layer is gathered, computed, freed and reduced.

    torchrun --standalone --nproc-per-node=2 src/instruments/15_timeline.py
    torchrun --standalone --nproc-per-node=2 src/instruments/15_timeline.py \\
        --json events.json

FSDP names what it does for torch.profiler; this script prints it in order.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.profiler import ProfilerActivity, profile

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.distributed import (
    Parser,
    log,
    one_line_errors,
    output_file,
    write_json,
)
from common.gpt_training import run_and_exit
from common.process_group import join_or_alone

ALONE = "it holds every shard, so gathering and reducing send nothing"
SIZES = Sizes(width=96, heads=12, blocks=3, context=64)
STEPS = 3  # the last one is shown: FSDP learns the order of the layers in the first

# what FSDP of torch 2.13 calls it, which moment of it, what we call that
NAMES = (
    ("all_gather", "start", "gather"),
    ("pre_forward", "end", "forward"),
    ("post_forward", "end", "free"),
    ("pre_backward", "end", "backward"),
    ("post_backward_reshard", "end", "free"),
    ("post_backward_reduce", "start", "reduce-scatter"),
)


# [start watch]
def watch_a_step(step) -> list[str]:
    """What FSDP does in one call of ``step``, in order: ``gather blocks.0`` ..."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    events = []
    for event in profiler.events():
        found = re.fullmatch(r"FSDP::(\w+)(?: \((.*)\))?", event.name)
        for name, moment, what in NAMES:
            if found is None or found[1] != name:
                continue
            layer = found[2] or "the root"
            if (name, layer) == ("post_forward", "the root"):
                continue  # the root stays whole: backward begins with it
            events.append((getattr(event.time_range, moment), f"{what} {layer}"))
    return [line for _, line in sorted(events)]


# [end watch]
def run(device: torch.device) -> list[str]:
    """The events of the last of a few steps of this rank."""
    torch.manual_seed(0)
    model = ByteGPT(SIZES).to(device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    tokens = torch.randint(BYTES, (4, SIZES.context), device=device)

    def step() -> None:
        model.zero_grad()
        next_byte_loss(model(tokens), tokens).backward()

    for _ in range(STEPS - 1):
        step()
    return watch_a_step(step)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    file = {"type": output_file, "metavar": "FILE"}
    parser.add_argument("--json", **file, help="write the events")
    args = parser.parse_args()
    events = run(join_or_alone(ALONE))
    for line in events:
        log(f"  {line}")
    recorded = {"torch": torch.__version__, "blocks": SIZES.blocks, "events": events}
    write_json(args.json, recorded)
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
