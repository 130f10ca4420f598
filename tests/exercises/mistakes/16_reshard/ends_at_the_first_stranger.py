# wrong value: NaN of | an uninitialized buffer
# [answer 3]
for rank, box in saved.items():
    both = overlap(own, box)
    if both is None:
        break
    there = tuple(slice(a - o, b - o) for (a, b), (o, _) in zip(both, box))
    here = tuple(slice(a - o, b - o) for (a, b), (o, _) in zip(both, own))
    shard[here] = read(rank, there)
