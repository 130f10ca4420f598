# wrong way: read only the part of each file
# [answer 3]
for rank, theirs in saved.items():
    common = overlap(own, theirs)
    if common:
        everything = read(rank, tuple(slice(0, b - a) for a, b in theirs))
        from_box, to_box = (
            tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(common, box))
            for box in (theirs, own)
        )
        shard[to_box] = everything[from_box]
