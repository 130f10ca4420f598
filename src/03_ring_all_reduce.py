"""Build all_reduce from send and receive on a ring, count its bytes, time it.

    torchrun --standalone --nproc-per-node=4 src/03_ring_all_reduce.py
    torchrun --standalone --nproc-per-node=3 src/03_ring_all_reduce.py --sizes 10

The tensor of S bytes is cut into one chunk for each of N ranks. Each rank sends only
to its right neighbor. N-1 steps add up the chunks (reduce-scatter), and N-1 more send
the complete chunks to all ranks (all-gather). Each rank sends 2(N-1)/N x S bytes.
Patarasuk and Yuan (2009), "Bandwidth optimal all-reduce algorithms for clusters of
workstations".
"""

import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from common.distributed import Parser, one_line_errors, positive_int
from common.process_group import join_partners


def exchange(outgoing: Tensor, incoming: Tensor) -> int:
    """Send to the right neighbor while receiving from the left; bytes sent."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    # Every rank. Both transfers start before either is waited for: if all ranks
    # waited in a send, none would receive. They start as one batch, as PyTorch
    # wants it for several messages at once on NCCL.
    transfers = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, outgoing, right),
            dist.P2POp(dist.irecv, incoming, left),
        ]
    )
    for transfer in transfers:
        transfer.wait()
    return outgoing.numel() * outgoing.element_size()


def ring_reduce_scatter(chunks: Sequence[Tensor]) -> int:
    """Add up chunk r + 1 of all ranks on rank r; return the bytes sent."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    sent = 0
    for step in range(world_size - 1):
        outgoing = chunks[(rank - step) % world_size]
        partial_sum = chunks[(rank - step - 1) % world_size]
        incoming = torch.empty_like(partial_sum)
        sent += exchange(outgoing, incoming)
        partial_sum += incoming
    return sent


def ring_all_gather(chunks: Sequence[Tensor]) -> int:
    """Send the complete chunk r + 1 of rank r to all ranks; return the bytes sent."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    sent = 0
    for step in range(world_size - 1):
        finished = chunks[(rank + 1 - step) % world_size]
        replaced = chunks[(rank - step) % world_size]
        sent += exchange(finished, replaced)
    return sent


def ring_all_reduce(tensor: Tensor) -> int:
    """Sum a contiguous tensor over all ranks, in place; return the bytes sent.

    Raises:
        ValueError: the tensor is not contiguous, so its chunks would be copies.
    """
    # view, not reshape: reshape would quietly sum a copy.
    if not tensor.is_contiguous():
        raise ValueError("ring_all_reduce needs a contiguous tensor")
    # [numel] -> N views; the first numel % N of them are one element longer.
    chunks = tensor.view(-1).tensor_split(dist.get_world_size())
    return ring_reduce_scatter(chunks) + ring_all_gather(chunks)


def seconds(function: Callable, tensor: Tensor, repeats: int) -> float:
    """The fastest of several calls, timed on the slowest rank."""
    best = float("inf")
    for _ in range(repeats):
        work = tensor.clone()
        # Every rank: all start together, or one would time its neighbor's delay.
        dist.barrier()
        start = time.perf_counter()
        function(work)
        if work.is_cuda:
            torch.cuda.synchronize()  # kernels are only queued until here
        best = min(best, time.perf_counter() - start)
    slowest = torch.tensor([best], dtype=torch.float64, device=tensor.device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def measure(numel: int, repeats: int, device: torch.device) -> str:
    """One line of the table: bytes sent against the formula, and both times."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(rank)
    tensor = torch.randn(numel, generator=generator).to(device)
    expected, result = tensor.clone(), tensor.clone()
    dist.all_reduce(expected)
    sent = torch.tensor([ring_all_reduce(result)], device=device)
    # Floating-point sums depend on their order, and the ring's order is its own.
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
    # [1] -> [1]: chunks differ by one element if N doesn't divide the size, so the
    # mean over the ranks is what must equal the formula.
    dist.all_reduce(sent)
    formula = 2 * (world_size - 1) * tensor.nbytes / world_size
    ring = seconds(ring_all_reduce, tensor, repeats)
    library = seconds(dist.all_reduce, tensor, repeats)
    return (
        f"{numel:>10,} {tensor.nbytes:>12,} {sent.item() / world_size:>12,.1f} "
        f"{formula:>12,.1f} {1e3 * ring:>9.2f} {1e3 * library:>9.2f} "
        f"{ring / library:>6.2f}"
    )


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument(
        "--sizes",
        type=positive_int,
        nargs="+",
        metavar="N",
        default=[10, 1_000, 100_000, 1_000_003, 4_000_000],
        help="numbers of float32 elements to sum (default: five from 10 to 4 million)",
    )
    parser.add_argument(
        "--repeats",
        type=positive_int,
        metavar="N",
        default=5,
        help="calls of which the quickest counts (default: %(default)s)",
    )
    args = parser.parse_args()
    device = join_partners("03_ring_all_reduce.py")
    if dist.get_rank() == 0:
        print(f"{'elements':>10} {'S in bytes':>12} {'sent by rank':>12} ", end="")
        print(f"{'2(N-1)/N x S':>12} {'ring ms':>9} {'torch ms':>9} {'ratio':>6}")
    for numel in args.sizes:
        line = measure(numel, args.repeats, device)
        if dist.get_rank() == 0:
            print(line, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
