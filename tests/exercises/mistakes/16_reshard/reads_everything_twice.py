# wrong way: numbers were read
# [answer 3]
for rank, theirs in saved.items():
    common = overlap(own, theirs)
    if common:
        from_box, to_box = (
            tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, box))
            for box in (theirs, own)
        )
        if read(rank, from_box).numel():
            shard[to_box] = read(rank, from_box)
