"""Choose the cuts: how many layers does each device get?

Every device waits for the slowest one. So you cut the layers, which keep their order,
into parts whose largest cost is as small as possible. A cost can be the time of a
layer or its memory. It needn't be a whole number, and some layers cost nothing::

    split([3, 1, 1, 1, 4, 2], 3) -> [3, 2, 1]    # costs 5, 5 and 2: the largest is 5
    split([1, 1, 1, 5], 2)       -> [3, 1]       # not two and two

Every device gets at least one layer. There may be many layers: you can cut 60 layers
for 8 devices in more than 300 million ways. Don't change the lists that you are given.

    workshop check 12_balance

The page is docs/lessons/12_model_parallel/3_cut.rst.
"""


def slowest(costs: list[float], sizes: list[int]) -> float:
    """The largest cost of a device if the first gets ``sizes[0]`` layers, and so on.

    Raises:
        ValueError: a size is not above 0, or the sizes don't add up to the number of
            layers; the message names the sizes.
    """
    # TODO 1 of 2: refuse sizes that don't fit, and name them; otherwise add up.
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
    # TODO 2 of 2: find the sizes; if several are equally good, any of them will do.
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
