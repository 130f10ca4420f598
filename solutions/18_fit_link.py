"""Fit a link: time messages between two ranks, and find its two numbers.

A message of n bytes takes about alpha + beta n seconds. Measure messages of several
sizes, and find alpha, in seconds, and beta, in seconds per byte. With both, you can
predict the time of a message that you never measured.

Four things spoil such a measurement. A send returns before its bytes have arrived. The
clocks of two nodes differ, so never subtract what one shows from what the other shows.
The first message of a size also pays for connections and memory. And now and then
another program makes a message slow, but none makes one fast. So rank 0 times *round
trips* by its own clock, leaves out the first, and takes the *least* of the others.

The times differ a thousandfold from the smallest message to the largest. Minimize
errors in seconds, and only the largest count: alpha is lost in their noise. So make the
errors *relative*: choose alpha and beta such that the sum over all sizes of

    ((alpha + beta n - t) / t)^2

is smallest, where t is the measured time of a message of n bytes.

The check runs your code in ranks over a simulated link, and chooses alpha and beta.
The functions of ``time`` show simulated time, so a busy machine changes nothing.

    workshop check 18_fit_link

The page is docs/lessons/18_scaling/2_link.rst.
"""

import time

import torch
import torch.distributed as dist


def message_seconds(size: int, repeats: int) -> float:
    """The seconds of one message of ``size`` bytes, in one direction.

    Rank 0 sends the bytes to rank 1, which sends as many back. The first round trip
    doesn't count. Of the next ``repeats`` round trips the least counts. Every rank
    returns the number that rank 0 measured, even a rank that sends nothing.
    """
    rank = dist.get_rank()
    message = torch.zeros(size, dtype=torch.uint8)
    trips = []  # their seconds, by the clock of this rank
    # TODO 1 of 2: time round trips with time.perf_counter(); tell all ranks the result.
    # [start answer 1]
    for _ in range(1 + repeats):
        start = time.perf_counter()
        # rank 0 -> rank 1 -> rank 0: [size] each
        if rank == 0:
            dist.send(message, 1)
            dist.recv(message, 1)
        elif rank == 1:
            dist.recv(message, 0)
            dist.send(message, 0)
        trips.append(time.perf_counter() - start)
    least = torch.tensor([min(trips[1:]) / 2], dtype=torch.float64)
    # every rank: [1] -> [1], that of rank 0
    dist.broadcast(least, 0)
    return least.item()
    # [end answer 1]


def fit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """(alpha, beta) with the least sum of squared relative errors.

    ``seconds[k]`` is the time of a message of ``sizes[k]`` bytes. Compute in float64:
    these numbers are small.
    """
    # TODO 2 of 2: divide alpha + beta n = t by t, and its error becomes relative.
    # [start answer 2]
    t = torch.tensor(seconds, dtype=torch.float64)
    n = torch.tensor(sizes, dtype=torch.float64)
    rows = torch.stack([1 / t, n / t], dim=1)
    ones = torch.ones(len(sizes), 1, dtype=torch.float64)
    alpha, beta = torch.linalg.lstsq(rows, ones).solution.flatten().tolist()
    return alpha, beta
    # [end answer 2]


def fit_link(sizes: list[int], repeats: int) -> tuple[float, float]:
    """(alpha, beta) of the link from rank 0 to rank 1; equal on all ranks."""
    seconds = [message_seconds(size, repeats) for size in sizes]
    return fit(sizes, seconds)
