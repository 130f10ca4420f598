# exception: KeyError | line
# [answer 3]
for rank in range(len(saved)):
    common = overlap(own, saved[rank])
    if common:
        from_box, to_box = (
            tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, box))
            for box in (saved[rank], own)
        )
        shard[to_box] = read(rank, from_box)
