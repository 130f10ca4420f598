"""Measure the roofline of a device, and how close a linear layer gets to it.

    python src/instruments/18_roofline.py
    python src/instruments/18_roofline.py --width 8192

A batch of n rows goes through a layer of H x H weights. That takes 2 n H^2 operations,
and moves H^2 + 2 n H numbers of 4 bytes: with few rows, few operations per byte.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import (
    BadInput,
    Parser,
    choose_device,
    log,
    one_line_errors,
    positive_int,
)

FLOAT32 = 4  # bytes
ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def rate(work: int, action: Callable[[], object], repeats: int = 5) -> float:
    """Units of ``work`` per second: the median repeat, without the first."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        action()
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()  # launched isn't finished
        seconds.append(time.perf_counter() - start)
    return work / statistics.median(seconds[1:])


def three_matrices(device: torch.device, width: int) -> torch.Tensor:
    """[3, H, H] of ones; BadInput if there is no memory for them."""
    try:
        return torch.ones(3, width, width, device=device)
    except RuntimeError:  # of the CPU's allocator, or torch.OutOfMemoryError
        needed = 3 * FLOAT32 * width**2 / 1e9
        raise BadInput(
            f"--width {width} needs {needed:,.0f} GB, more than there is: choose less"
        ) from None


def bandwidth(device: torch.device, width: int) -> float:
    """Bytes per second that ``a + b`` reads and writes; a, b: [H, H]."""
    a, b, total = three_matrices(device, width)
    return rate(3 * FLOAT32 * width**2, lambda: torch.add(a, b, out=total))


def intensity(rows: int, width: int) -> float:
    """FLOP per byte of [rows, H] times [H, H]."""
    return 2 * rows * width**2 / (FLOAT32 * (width**2 + 2 * rows * width))


def linear(device: torch.device, rows: int, width: int, repeats: int = 5) -> float:
    """FLOP/s of [rows, H] times [H, H]."""
    x = torch.ones(rows, width, device=device)
    weight = torch.ones(width, width, device=device)
    return rate(2 * rows * width**2, lambda: x @ weight, repeats)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    width = "H: its weights must not fit into a cache (default: %(default)s)"
    parser.add_argument("--width", type=positive_int, default=4096, help=width)
    width = parser.parse_args().width
    device = choose_device()
    size = 512 if device.type == "cpu" else 8192  # in a cache; longer than its launch
    memory, peak = bandwidth(device, width), linear(device, size, size, 50)
    measured = {rows: linear(device, rows, width) for rows in ROWS}
    log(f"{device.type}: {peak / 1e9:.1f} GFLOP/s, {memory / 1e9:.1f} GB/s")
    log(f"memory is the limit below {peak / memory:.1f} FLOP per byte\n")
    log("rows   FLOP/byte   roof GFLOP/s   measured")
    for rows, reached in measured.items():
        per_byte = intensity(rows, width)
        roof = min(peak, per_byte * memory)
        log(f"{rows:4} {per_byte:11.2f} {roof / 1e9:14.1f} {reached / 1e9:10.1f}")


if __name__ == "__main__":
    main()
