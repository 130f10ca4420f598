# right: slices that leave out a bound, boxes as lists
# [answer 1]
sizes = [length // parts + (i < length % parts) for i in range(parts)]
return [sum(sizes[:index]), sum(sizes[: index + 1])]
# [answer 2]
common = [[max(a[0], b[0]), min(a[1], b[1])] for a, b in zip(own, theirs)]
return None if any(start >= stop for start, stop in common) else common
# [answer 3]
for rank in saved:
    if (both := overlap(own, saved[rank])) is None:
        continue
    theirs, place = [], []
    for (start, stop), (first, last), (offset, _) in zip(both, saved[rank], own):
        begin = None if start == first else start - first
        theirs.append(slice(begin, None if stop == last else stop - first))
        place.append(slice(start - offset, stop - offset))
    shard[tuple(place)] = read(rank, tuple(theirs))
