"""Measure a recipe for one GPU, one line at a time: tokens per second and memory.

    python src/instruments/17_recipe.py
    python src/instruments/17_recipe.py --lines bf16 compile --steps 30
    python src/instruments/17_recipe.py --width 2048 --blocks 24 --batch-size 8

It trains a byte GPT without any line, then with the first, then with the first two,
and so on. Each time it starts a new process, as some lines count only from its start.
What means nothing on this machine is skipped, and it says why.
"""

import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.byte_gpt import BYTES, ByteGPT, next_byte_loss, sizes_of
from common.cost.measure import Activations
from common.distributed import (
    BadInput,
    Parser,
    choose_device,
    log,
    one_line_errors,
    output_file,
    positive_int,
    write_json,
)

LINES = {
    "tf32": "multiply float32 with the 10 bits of TF32",
    "bf16": "multiply in bfloat16, by autocast",
    "fused": "one kernel updates all parameters",
    "checkpoint": "save the input of each block, recompute the rest in backward",
    "compile": "compile each block",
    "allocator": "let the allocator's segments grow, instead of adding new ones",
    "numa": "run on the cores whose memory is next to the GPU",
}
HEADING = "with        tokens/s  change  spread  saved MB  peak GB  held GB     loss"
WARM_UP = 3  # steps: memory is allocated, kernels are compiled and chosen
LIMIT_S = 3600  # of one process; compiling takes minutes on a busy machine
TF32_SINCE = (8, 0)  # the capability of an A100; bfloat16 since then, too
NODES = Path("/sys/devices/system/node")
# On the CPU, a table of a minute; on a GPU, enough work to keep it busy
ON_CPU = {"width": 96, "heads": 4, "blocks": 4, "context": 64, "batch_size": 16}
ON_GPU = {"width": 1024, "heads": 16, "blocks": 12, "context": 1024, "batch_size": 16}


@dataclass(frozen=True)
class Config:
    """The command line."""

    lines: list[str]  # of LINES, in this order
    steps: int  # for a row
    width: int
    heads: int
    blocks: int
    context: int
    batch_size: int
    json: Path | None  # file for all rows
    once: bool  # only the row with all lines, as JSON


@dataclass(frozen=True)
class Row:
    """What a process with some of the lines has measured."""

    device: str
    skipped: str = ""  # why its last line was not measured
    tokens_per_s: float = 0.0
    spread: float = 0.0  # half of all steps differ by less than this, relatively
    saved_mb: float = 0.0  # by forward for backward; 0: not counted
    peak_gb: float = 0.0  # in use at once: of the GPU; on the CPU, of the process
    held_gb: float = 0.0  # by the allocator, in use or not; 0 on the CPU
    loss: float = 0.0  # of the last step


def why_not(line: str, device: torch.device) -> str:
    """Why a line can't be measured here; "" if it can."""
    if line == "compile":
        return why_not_compile(device)
    if device.type != "cuda":
        return {
            "tf32": "TF32 is a format of NVIDIA's GPUs",
            "allocator": "only a GPU has a caching allocator",
            "numa": "no GPU that a core could be near",
        }.get(line, "")
    if line in ("tf32", "bf16") and torch.cuda.get_device_capability() < TF32_SINCE:
        return f"{torch.cuda.get_device_name()} only emulates it"
    if line == "numa" and len(list(NODES.glob("node[0-9]*"))) < 2:
        return "all memory of this machine is equally near"
    return ""


def why_not_compile(device: torch.device) -> str:
    """What torch.compile lacks to write code for the device."""
    if device.type == "cpu" and not shutil.which(os.environ.get("CXX", "g++")):
        return "it needs a C++ compiler: install g++"
    if device.type == "cuda" and not importlib.util.find_spec("triton"):
        return "it needs the package triton"
    return ""


# [start numa]
def cores_near(device: torch.device) -> set[int]:
    """The cores of the NUMA node that the GPU is attached to."""
    gpu = torch.cuda.get_device_properties(device)
    place = f"{gpu.pci_domain_id:04x}:{gpu.pci_bus_id:02x}:{gpu.pci_device_id:02x}.0"
    node = int(Path(f"/sys/bus/pci/devices/{place}/numa_node").read_text())
    listed = (NODES / f"node{max(node, 0)}" / "cpulist").read_text()
    return cores_of(listed)


def cores_of(listed: str) -> set[int]:
    """The cores that Linux lists as ``0-3,8``."""
    cores: set[int] = set()
    for part in listed.strip().split(","):
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


# [end numa]
# [start build]
def build(
    lines: set[str], config: Config, device: torch.device
) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The same model in every process, with some of the lines switched on."""
    if "tf32" in lines:
        torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    model = ByteGPT(sizes_of(config)).to(device)
    for block in model.blocks:
        if "checkpoint" in lines:  # before compile, which then sees it
            block.forward = recompute_in_backward(block.forward)
        if "compile" in lines:
            block.compile()
    fused = True if "fused" in lines else None  # None: PyTorch's choice
    return model, torch.optim.AdamW(model.parameters(), 1e-3, fused=fused)


def recompute_in_backward(forward: Callable) -> Callable:
    """The same function, of which only the input is kept for backward.

    A function of our own: torch.compile skips PyTorch's.
    """

    def keep_input(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(forward, x, use_reentrant=False)

    return keep_input


# [end build]
# [start measure]
def synchronize(device: torch.device) -> None:
    """Wait for what was launched; the CPU has done it already."""
    if device.type != "cpu":
        torch.accelerator.synchronize()


def measure(lines: set[str], config: Config, device: torch.device) -> Row:
    """Train, and time each step after the warm-up, from idle device to idle device."""
    model, optimizer = build(lines, config, device)
    generator = torch.Generator().manual_seed(1)
    shape = config.batch_size, config.context + 1
    tokens = torch.randint(BYTES, shape, generator=generator).to(device)

    def forward() -> torch.Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled="bf16" in lines):
            scores = model(tokens[:, :-1])
        return next_byte_loss(scores.float(), tokens[:, 1:])

    loss, seconds = train(forward, optimizer, config.steps, device)
    usual = statistics.median(seconds)
    low, _, high = statistics.quantiles(seconds, n=4)
    peak, held = memory_gb(device)
    saved = 0.0
    if "compile" not in lines:  # compiled code doesn't say what it saves
        saved = saved_mb(model, forward)
    return Row(
        device=str(device),
        tokens_per_s=config.batch_size * config.context / usual,
        spread=(high - low) / usual,
        saved_mb=saved,
        peak_gb=peak,
        held_gb=held,
        loss=loss,
    )


def train(
    forward: Callable[[], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    steps: int,
    device: torch.device,
) -> tuple[float, list[float]]:
    """The last loss, and the seconds of each step after the warm-up."""
    loss, seconds = torch.zeros(()), []
    for _ in range(WARM_UP + steps):
        synchronize(device)
        start = time.perf_counter()
        loss = forward()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return loss.item(), seconds[WARM_UP:]


def saved_mb(model: nn.Module, forward: Callable[[], torch.Tensor]) -> float:
    """What one forward pass saves for backward."""
    with Activations(model) as kept:
        forward()
    return kept.peak_bytes / 1e6


# [end measure]
def memory_gb(device: torch.device) -> tuple[float, float]:
    """(in use at most, held by the allocator at most), since the process began."""
    if device.type == "cpu":
        unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB on Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9, 0.0
    module = torch.get_device_module(device)
    in_use, held = module.max_memory_allocated(), module.max_memory_reserved()
    return in_use / 1e9, held / 1e9


def measure_here(config: Config) -> Row:
    """What this process measures with all of its lines; the last one may be skipped."""
    device = choose_device()
    *_, last = ["", *config.lines]
    reason = why_not(last, device)
    if reason:
        return Row(str(device), reason)
    if "numa" in config.lines:
        os.sched_setaffinity(0, cores_near(device))
    try:
        return measure(set(config.lines), config, device)
    except torch.OutOfMemoryError:
        return Row(str(device), "out of memory: choose a smaller --batch-size")


# [start process]
def in_new_process(lines: list[str], config: Config) -> Row:
    """Start this program again for one row; it prints the row as JSON."""
    words = [sys.executable, __file__, "--once", f"--steps={config.steps}"]
    for name in ON_CPU:
        words.append(f"--{name.replace('_', '-')}={getattr(config, name)}")
    env = dict(os.environ)
    if "allocator" in lines:  # read when the GPU's first memory is allocated
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    done = subprocess.run(
        [*words, "--lines", *lines],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_S,
    )
    if done.returncode:
        tried = " ".join(lines) or "no line"
        raise BadInput(f"the run with {tried} failed, see above: leave it out")
    return Row(**json.loads(done.stdout.splitlines()[-1]))


# [end process]
def show(name: str, row: Row, before: Row | None) -> str:
    """A line of the table; "-" for what was not measured."""
    if row.skipped:
        return f"{name:<11} skipped: {row.skipped}"
    change, saved, held = "-", "-", "-"
    if before:
        change = f"{row.tokens_per_s / before.tokens_per_s:.2f}"
    if row.saved_mb:
        saved = f"{row.saved_mb:,.2f}"
    if row.held_gb:
        held = f"{row.held_gb:.2f}"
    speed = f"{row.tokens_per_s:>9,.0f}{change:>8}{row.spread:>8.0%}"
    memory = f"{saved:>10}{row.peak_gb:>9.2f}{held:>9}"
    return f"{name:<11}{speed}{memory}{row.loss:>9.4f}"


def skipped_on_cpu(name: str) -> Row | None:
    """A row for which no process has to start. This one never touches a GPU."""
    cpu = torch.device("cpu")
    reason = why_not(name, cpu)
    if torch.cuda.is_available() or not reason:
        return None
    return Row(str(cpu), reason)


def measure_all(config: Config) -> dict[str, Row]:
    """Print a row for each line with those before it; returns all rows."""
    log(HEADING)
    rows: dict[str, Row] = {}
    used: list[str] = []
    before: Row | None = None
    for name in ["nothing", *config.lines]:
        tried = [*used, name] if name in LINES else []
        row = skipped_on_cpu(name) or in_new_process(tried, config)
        rows[name] = row
        log(show(name, row, before))
        if not row.skipped:
            used, before = tried, row
    return rows


def parse_arguments() -> Config:
    parser = Parser(__doc__)
    add = parser.add_argument
    known = "; ".join(f"{name}: {words}" for name, words in LINES.items())
    add(
        "--lines",
        nargs="*",
        metavar="LINE",
        choices=LINES,
        default=list(LINES),
        help=f"in this order, of: {known} (default: all)",
    )
    add("--steps", type=positive_int, default=10, help="for a row (default: 10)")
    for name in ON_CPU:
        words = f"of the model (default: {ON_GPU[name]} on a GPU, else {ON_CPU[name]})"
        add(f"--{name.replace('_', '-')}", type=positive_int, help=words)
    add("--json", type=output_file, metavar="FILE", help="write all rows there")
    add("--once", action="store_true", help="only the row with all lines, as JSON")
    config = Config(**with_usual_sizes(vars(parser.parse_args())))
    if config.steps < 2:
        raise BadInput("--steps 1 shows no spread: choose 2 or more")
    if len(set(config.lines)) < len(config.lines):
        raise BadInput(f"--lines {' '.join(config.lines)}: name each line once")
    sizes_of(config)  # refuses a width that the heads don't divide
    return config


def with_usual_sizes(given: dict[str, Any]) -> dict[str, Any]:
    """The options, with the model that fits this machine where no size is given."""
    usual = ON_GPU if torch.cuda.is_available() else ON_CPU
    missing = {name: size for name, size in usual.items() if given[name] is None}
    return given | missing


@one_line_errors
def main() -> None:
    config = parse_arguments()
    if config.once:
        print(json.dumps(asdict(measure_here(config))))
        return
    rows = measure_all(config)
    write_json(config.json, {name: asdict(row) for name, row in rows.items()})
    measured = [row for row in rows.values() if not row.skipped]
    if len(measured) > 1:
        together = measured[-1].tokens_per_s / measured[0].tokens_per_s
        log(f"All of them together, on {measured[0].device}: {together:.2f} times")


if __name__ == "__main__":
    main()
