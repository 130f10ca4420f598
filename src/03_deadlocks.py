"""Six deadlocks, each ended by a time-out, and one that names the missing ranks.

    torchrun --standalone --nproc-per-node=4 src/03_deadlocks.py all_send
    torchrun --standalone --nproc-per-node=4 src/03_deadlocks.py only_rank_0 --timeout 2
    TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun --standalone --nproc-per-node=4 \\
        src/03_deadlocks.py another_order

By default a rank gives up after half an hour with gloo, and after ten minutes with
NCCL. Here it waits 4 seconds. Each rank prints what you would find in its log. The
messages are gloo's, also where there are GPUs: with NCCL a rank doesn't wait in Python.
"""

import os
import re
import sys
import textwrap
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from common.distributed import BadInput, Parser, log, one_line_errors, positive_int
from common.process_group import join_partners


def another_order(values: Tensor, group: dist.ProcessGroup) -> None:
    """the same two collectives, in a different order on one rank"""
    if dist.get_rank() == 0:
        dist.broadcast(values, src=1, group=group)
        dist.all_reduce(values, group=group)
    else:
        dist.all_reduce(values, group=group)
        dist.broadcast(values, src=1, group=group)


def only_rank_0(values: Tensor, group: dist.ProcessGroup) -> None:
    """a collective that only one rank reaches"""
    if dist.get_rank() == 0:
        dist.all_reduce(values, group=group)


def monitored(values: Tensor, group: dist.ProcessGroup) -> None:
    """the same, behind a barrier that names the missing ranks (gloo only)"""
    if dist.get_rank() == 0:
        limit = timedelta(seconds=2)
        dist.monitored_barrier(group, limit, wait_all_ranks=True)
        dist.all_reduce(values, group=group)


def all_send(values: Tensor, group: dist.ProcessGroup) -> None:
    """every rank sends first, so none receives"""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    dist.send(values, (rank + 1) % world_size, group=group)
    dist.recv(values, (rank - 1) % world_size, group=group)


def all_receive(values: Tensor, group: dist.ProcessGroup) -> None:
    """every rank receives first, and none has sent"""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(values)
    dist.recv(received, (rank - 1) % world_size, group=group)
    dist.send(values, (rank + 1) % world_size, group=group)


def unequal_iterations(values: Tensor, group: dist.ProcessGroup) -> None:
    """rank 0 has one batch more than the others"""
    batches = 3 if dist.get_rank() == 0 else 2
    for _ in range(batches):
        dist.all_reduce(values, group=group)


def left_early(values: Tensor, group: dist.ProcessGroup) -> None:
    """rank 1 leaves early, without an error"""
    if dist.get_rank() == 1:
        sys.exit(0)
    dist.all_reduce(values, group=group)


CASES = {
    function.__name__: function
    for function in (
        only_rank_0,
        monitored,
        another_order,
        all_send,
        all_receive,
        unequal_iterations,
        left_early,
    )
}


def what_this_rank_sees(case: str, values: Tensor, group: dist.ProcessGroup) -> str:
    """Run one case; the line that this rank prints about it."""
    start = time.monotonic()
    try:
        CASES[case](values, group)
        seen = "continued"
    except RuntimeError as error:
        # without the place in gloo's own source, and without its advice
        reason = re.sub(r"^\[[^]]*\.cc:\d+\] ", "", str(error)).partition(". This is")
        seen = f"{type(error).__name__}: {reason[0]}"
    waited = f"rank {dist.get_rank()} after {time.monotonic() - start:.0f} s"
    return textwrap.fill(f"{waited}: {seen}", 88, subsequent_indent="    ")


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("case", metavar="CASE", help=f"one of {', '.join(CASES)}")
    parser.add_argument(
        "--timeout",
        type=positive_int,
        default=4,
        metavar="SECONDS",
        help="how long a rank waits before it gives up (default: %(default)s)",
    )
    args = parser.parse_args()
    if args.case not in CASES:
        raise BadInput(f"{args.case!r} is no case: choose from {', '.join(CASES)}")
    join_partners("03_deadlocks.py all_send")
    # A group of all ranks, with a shorter time-out than the default group.
    limit = timedelta(seconds=args.timeout)
    group = dist.new_group(timeout=limit, backend="gloo")
    assert isinstance(group, dist.ProcessGroup)  # every rank is a member
    dist.barrier()  # no rank leaves while another is still connecting
    seen = what_this_rank_sees(args.case, torch.ones(3), group)
    log(seen, every_rank=True)
    # A rank that continued now has other work. If it left instead, the others would
    # see a closed connection, not a time-out.
    time.sleep(args.timeout + 1)
    os._exit(0)  # after a time-out the group cannot be closed in an orderly way


if __name__ == "__main__":
    main()
