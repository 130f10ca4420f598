"""How far apart ranks are: the time of a tiny message there and back, by pairs."""

from __future__ import annotations

import itertools
import socket
import time

import torch
import torch.distributed as dist


def describe_links(device: torch.device) -> str:
    """Whose link is slow, and the shortest and longest round trip; all ranks."""
    if dist.get_backend() == "gloo":
        device = torch.device("cpu")  # gloo sends no tensor of a GPU
    trips = _round_trips(device)
    hosts = [""] * dist.get_world_size()
    dist.all_gather_object(hosts, socket.gethostname())  # every rank: a name
    far = [f"rank {rank} on {hosts[rank]}" for rank in _slow_links(trips)]
    shortest, longest = trips[trips > 0].min(), trips.max()
    whose = f"slow to {', '.join(far)}" if far else "all alike"
    return f"{whose}; round trips take {shortest:.1f} to {longest:.1f} ms"


def _round_trips(device: torch.device, repeats: int = 5) -> torch.Tensor:
    """[N, N] milliseconds there and back, pair after pair; all ranks call this."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    trips, note = torch.zeros(ranks, ranks, device=device), torch.ones(1, device=device)
    for low, high in itertools.combinations(range(ranks), 2):
        times = []
        own_repeats = repeats if rank in (low, high) else 0
        for _ in range(own_repeats):
            start = time.perf_counter()
            for sender in (low, high):  # 4 bytes there, 4 bytes back
                if rank == sender:
                    dist.send(note, low + high - rank)
                else:
                    dist.recv(note, sender)
            note.item()  # waits for an accelerator
            times.append(1000 * (time.perf_counter() - start))
        if rank == low:
            trips[low, high] = trips[high, low] = min(times)
    dist.all_reduce(trips)  # every rank: [N, N] -> [N, N], each number has one source
    return trips.cpu()


def _slow_links(trips: torch.Tensor) -> list[int]:
    """The ranks whose nearest rank is far away; trips: [N, N] in ms, 0 to oneself."""
    nearest = torch.where(trips > 0, trips, torch.inf).min(dim=1).values
    return torch.nonzero(nearest > 3 * nearest.min()).flatten().tolist()
