# wrong value: saved, afterwards
# [answer 3]
while saved:
    rank, theirs = saved.popitem()
    common = overlap(own, theirs)
    if common:
        from_box, to_box = (
            tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, box))
            for box in (theirs, own)
        )
        shard[to_box] = read(rank, from_box)
