"""Choose the cuts: which device gets how many layers?

All devices wait for the slowest one. So layers, which must stay in their order, are cut
into parts such that the largest cost of a part is as small as can be. A cost may be
the time of a layer, or its memory; some layers cost nothing::

    split([3, 1, 1, 1, 4, 2], 3) -> [3, 2, 1]    # costs 5, 5 and 2: the largest is 5
    split([1, 1, 1, 5], 2)       -> [3, 1]       # not two and two

Every device gets at least one layer. There may be many layers: 60 among 8 devices can
be cut in more than 300 million ways.

    workshop check 12_balance

The page is docs/lessons/12_model_parallel.rst.
"""


def slowest(costs: list[float], sizes: list[int]) -> float:
    """The largest cost of a device, if the first gets ``sizes[0]`` layers, and so on.

    Raises:
        ValueError: the sizes are not all above 0, or are not those of all layers; the
            message names them.
    """
    # TODO 1 of 2: refuse sizes that do not fit, naming them; else add up.
    # [start answer 1]
    if min(sizes) < 1 or sum(sizes) != len(costs):
        raise ValueError(f"{sizes} is no split of {len(costs)} layers")
    ends = [sum(sizes[: device + 1]) for device in range(len(sizes))]
    return max(sum(costs[end - n : end]) for n, end in zip(sizes, ends, strict=True))
    # [end answer 1]


def split(costs: list[float], devices: int) -> list[int]:
    """How many layers each device gets, so that the slowest costs least.

    Raises:
        ValueError: there are fewer layers than devices, or no device.
    """
    # TODO 2 of 2: find the sizes; any of several that are equally good will do.
    # [start answer 2]
    if not 1 <= devices <= len(costs):
        raise ValueError(f"{len(costs)} layers cannot be split among {devices} devices")
    # how many layers -> the best that can be done with them on the devices so far
    best = {n: (sum(costs[:n]), [n]) for n in range(1, len(costs) + 1)}
    for _ in range(devices - 1):
        best = {
            n: min(
                (max(cost, sum(costs[fewer:n])), [*sizes, n - fewer])
                for fewer, (cost, sizes) in best.items()
                if fewer < n
            )
            for n in range(min(best) + 1, len(costs) + 1)
        }
    return best[len(costs)][1]
    # [end answer 2]
