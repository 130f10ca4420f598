"""Count the bytes that each collective puts on the wire, as the kernel sees them.

    unshare -rn sh -c 'ip link set lo up &&
        torchrun --standalone --nproc-per-node=4 src/instruments/03_wire_bytes.py'

All ranks run on one machine and talk over its loopback device, whose counter this
script reads. ``unshare -rn`` gives them a loopback device of their own (Linux); in a
shared one the traffic of all other programs is counted as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import BadInput, Parser, one_line_errors
from common.process_group import join_partners, reduce_scatter_single

NUMEL = 720_000  # float32 elements: a multiple of most numbers of ranks
REPEATS = 5
COUNTERS = Path("/proc/net/dev")  # one line per network device of this namespace


def loopback() -> tuple[int, bool]:
    """(bytes sent over the loopback device so far, whether it's the only device)"""
    lines = COUNTERS.read_text(encoding="ascii").splitlines()[2:]
    devices = dict(line.split(":", 1) for line in lines)
    counters = {name.strip(): text.split() for name, text in devices.items()}
    return int(counters["lo"][8]), len(counters) == 1


def calls(device: torch.device) -> list[tuple[str, Callable, float]]:
    """Name, what to call on every rank, and the least possible total (in S)."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    whole = torch.zeros(NUMEL, device=device)  # S bytes
    piece = whole[: NUMEL // world_size].clone()
    pieces = [torch.zeros_like(piece) for _ in range(world_size)]
    more = torch.zeros_like(whole)
    at_root = pieces if rank == 0 else None
    others = world_size - 1
    return [
        ("broadcast", lambda: dist.broadcast(whole, src=0), others),
        ("scatter", lambda: dist.scatter(piece, at_root, src=0), others / world_size),
        ("gather", lambda: dist.gather(piece, at_root, dst=0), others / world_size),
        ("reduce", lambda: dist.reduce(whole, dst=0), others),
        ("all_gather", lambda: dist.all_gather(pieces, piece), others),
        ("reduce_scatter", lambda: reduce_scatter_single(piece, whole), others),
        ("all_to_all", lambda: dist.all_to_all_single(more, whole), others),
        ("all_reduce", lambda: dist.all_reduce(whole), 2 * others),
    ]


def bytes_of(call: Callable) -> int:
    """The bytes that all ranks together send during one call."""
    counts = []
    for _ in range(REPEATS):
        dist.barrier()
        before, _ = loopback()
        # Every rank: none may send before rank 0 has read the counter, and rank 0 may
        # read again only when all have finished. The two barriers count, too.
        dist.barrier()
        call()
        dist.barrier()
        counts.append(loopback()[0] - before)
    # TCP sends a segment again if the receiver was slow, so take the smallest count.
    return min(counts)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.parse_args()
    if not COUNTERS.exists():
        raise BadInput(f"there is no {COUNTERS}: this script needs Linux")
    device = join_partners("instruments/03_wire_bytes.py")
    if device.type != "cpu":
        raise BadInput(
            f"{device.type} devices do not talk over the loopback device: "
            "hide them, for example with CUDA_VISIBLE_DEVICES="
        )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        if not loopback()[1]:
            print("(other programs share this loopback device: see the docstring)")
        print(f"S = {4 * NUMEL:,} bytes, sent by all {world_size} ranks together")
        print(f"{'collective':<15} {'least possible':>15} {'counted':>10}")
    for name, call, least in calls(device):
        counted = bytes_of(call) / (4 * NUMEL)
        if rank == 0:
            print(f"{name:<15} {least:>13.2f} S {counted:>8.2f} S", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
