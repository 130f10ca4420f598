# wrong value: NaN of 14 elements | an uninitialized buffer
# [answer 3]
for rank, box in saved.items():
    if (both := overlap(own, box)) is not None:
        there = tuple(slice(a - o, b - o) for (a, b), (o, _) in zip(both, box))
        here = tuple(slice(a - o, b - o) for (a, b), (o, _) in zip(both, own))
        shard[here] += read(rank, there)
