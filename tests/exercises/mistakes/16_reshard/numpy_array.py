# wrong value: load_shard | returned ndarray, expected Tensor
# [answer 3]
for rank, box in saved.items():
    if common := overlap(own, box):
        there = tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, box))
        here = tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, own))
        shard[here] = read(rank, there)
return shard.numpy()
