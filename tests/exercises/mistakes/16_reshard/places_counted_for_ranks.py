# wrong value: the ranks that saved are
# [answer 3]
for rank, theirs in enumerate(saved.values()):
    common = overlap(own, theirs)
    if common:
        from_box, to_box = (
            tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, box))
            for box in (theirs, own)
        )
        shard[to_box] = read(rank, from_box)
