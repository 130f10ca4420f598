# wrong value: slices count from its own beginning
# [answer 3]
for rank, theirs in saved.items():
    common = overlap(own, theirs)
    if common:
        to_box = tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, own))
        shard[to_box] = read(rank, tuple(slice(a, b) for a, b in common))
