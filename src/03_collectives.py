"""Show every collective as a table: what each rank holds before and after it.

    torchrun --standalone --nproc-per-node=4 src/03_collectives.py
    torchrun --standalone --nproc-per-node=4 src/03_collectives.py all_reduce barrier
    torchrun --standalone --nproc-per-node=3 src/03_collectives.py all_to_all

Rank r starts with 10r, 10r + 1, 10r + 2 and so on: the tens digit is the rank that a
number started on, the units digit its position there. A dot is memory that hasn't been
written yet. In the comments N is the number of ranks, S the bytes of the tensor named.
"""

import time

import torch
import torch.distributed as dist

from common.distributed import BadInput, Parser, one_line_errors
from common.process_group import join_partners, reduce_scatter_single

EMPTY = -1  # drawn as a dot
Held = tuple[torch.Tensor, torch.Tensor]  # what a rank holds before and after
LATE = 0.25  # seconds by which rank r reaches the barrier after rank r - 1


def own_values(device: torch.device) -> torch.Tensor:
    """[N]: 10r, 10r + 1, ... on rank r."""
    world_size = dist.get_world_size()
    return 10 * dist.get_rank() + torch.arange(world_size, device=device)


def empty(device: torch.device) -> torch.Tensor:
    """[N]: room for what a rank will receive."""
    return torch.full((dist.get_world_size(),), EMPTY, device=device)


def all_reduce(device: torch.device) -> Held:
    """every rank gets the sum over the ranks"""
    values = own_values(device)
    before = values.clone()
    # Every rank. values: [N] -> [N] in place; 03_ring_all_reduce.py counts the bytes.
    dist.all_reduce(values, op=dist.ReduceOp.SUM)
    return before, values


def broadcast(device: torch.device) -> Held:
    """rank 0's values replace those of all ranks"""
    values = own_values(device)
    before = values.clone()
    # Every rank must reach this line. values: [N] -> [N], S bytes to each of N-1.
    dist.broadcast(values, src=0)
    return before, values


def scatter(device: torch.device) -> Held:
    """rank 0 deals out its values, one piece to each rank"""
    values = own_values(device)
    piece = empty(device)[:1]
    # Only the source passes a list. The others pass None, and must call it, too.
    pieces = list(values.split(1)) if dist.get_rank() == 0 else None
    before = values if dist.get_rank() == 0 else piece.clone()
    # Every rank. pieces: N x [1] on rank 0 -> piece: [1], rank 0 sends (N-1)/N x S.
    dist.scatter(piece, pieces, src=0)
    return before, piece


def gather(device: torch.device) -> Held:
    """rank 0 collects one piece from each rank"""
    piece = own_values(device)[:1]
    # N separate tensors: a list of N times the same one would keep only the last.
    slots = list(empty(device).split(1)) if dist.get_rank() == 0 else None
    # Every rank. piece: [1] -> slots: N x [1] on rank 0, which receives (N-1) x S.
    dist.gather(piece, slots, dst=0)
    return piece, torch.cat(slots) if slots else piece


def reduce(device: torch.device) -> Held:
    """rank 0 gets the sum; what the others then hold is of no use"""
    values = own_values(device)
    before = values.clone()
    # Every rank. values: [N] -> [N], the sum on rank 0 only.
    dist.reduce(values, dst=0, op=dist.ReduceOp.SUM)
    return before, values


def reduce_scatter(device: torch.device) -> Held:
    """rank r gets the sum of all ranks' piece r"""
    values = own_values(device)
    piece = empty(device)[:1]
    # Every rank. values: [N] -> piece: [1], each rank sends (N-1)/N x S bytes.
    reduce_scatter_single(piece, values, op=dist.ReduceOp.SUM)
    return values, piece


def all_gather(device: torch.device) -> Held:
    """every rank collects one piece from each rank, in rank order"""
    piece = own_values(device)[:1]
    slots = list(empty(device).split(1))
    # Every rank. piece: [1] -> slots: N x [1], each rank sends (N-1) x S bytes.
    dist.all_gather(slots, piece)
    return piece, torch.cat(slots)


def all_to_all(device: torch.device) -> Held:
    """piece j of rank i becomes piece i of rank j: a transposed table"""
    values = own_values(device)
    received = empty(device)
    # Every rank. values: [N] -> received: [N], each rank sends (N-1)/N x S bytes.
    dist.all_to_all_single(received, values)
    return values, received


def send_recv(device: torch.device) -> Held:
    """rank 0 sends its values to the last rank; the others are not involved"""
    last = dist.get_world_size() - 1
    values = own_values(device) if dist.get_rank() == 0 else empty(device)
    before = values.clone()
    # Only the two ranks named may call: S bytes go from one to the other.
    if dist.get_rank() == 0:
        dist.send(values, dst=last)
    elif dist.get_rank() == last:
        dist.recv(values, src=0)
    return before, values


def barrier(device: torch.device) -> Held:
    """how many ranks had arrived when this one did, and when it continued"""
    dist.barrier()
    time.sleep(LATE * dist.get_rank())
    came = time.time()
    # Every rank. No data is sent: it returns once the last rank has called it.
    dist.barrier()
    went = time.time()
    arrivals = [0.0] * dist.get_world_size()
    dist.all_gather_object(arrivals, came)
    counts = [sum(other <= moment for other in arrivals) for moment in (came, went)]
    return torch.tensor(counts[:1]), torch.tensor(counts[1:])


ROOTED = (broadcast, scatter, gather, reduce)
EVERYWHERE = (all_reduce, all_gather, reduce_scatter, all_to_all)
COLLECTIVES = {f.__name__: f for f in (*ROOTED, *EVERYWHERE, barrier, send_recv)}


def cells(tensor: torch.Tensor) -> str:
    """The numbers of one rank as text, a dot for each that is still empty."""
    shown = ["." if value == EMPTY else str(value) for value in tensor.tolist()]
    return " ".join(f"{text:>3}" for text in shown)


def draw(name: str, device: torch.device) -> None:
    """Run one collective on every rank; rank 0 prints the table of all of them."""
    before, after = COLLECTIVES[name](device)
    row = (cells(before), cells(after))
    rows = [("", "")] * dist.get_world_size() if dist.get_rank() == 0 else None
    # Every rank sends its row to rank 0: printing from each rank would mix lines.
    dist.gather_object(row, rows, dst=0)
    if rows:
        width = max(len(text) for text in ("before", *(pair[0] for pair in rows)))
        print(f"\n{name}: {COLLECTIVES[name].__doc__}")
        print(f"  {'':6}   {'before':<{width}}   after")
        for rank, (left, right) in enumerate(rows):
            print(f"  rank {rank:<2}  {left:<{width}}   {right}", flush=True)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    known = ", ".join(COLLECTIVES)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {known}")
    names = parser.parse_args().names
    unknown = [name for name in names if name not in COLLECTIVES]
    if unknown:
        raise BadInput(f"{unknown[0]!r} is no collective: choose from {known}")
    device = join_partners("03_collectives.py")
    for name in names or COLLECTIVES:
        draw(name, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
