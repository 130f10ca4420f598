# wrong value: the overlap of
# [answer 2]
both = zip(own, theirs, strict=True)
common = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in both)
return common if all(start < stop for start, stop in common) else None
