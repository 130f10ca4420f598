# wrong value: expected None
# [answer 2]
both = zip(own, theirs, strict=True)
common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in both)
return common if all(start <= stop for start, stop in common) else None
