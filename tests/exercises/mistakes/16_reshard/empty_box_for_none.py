# wrong value: expected None
# [answer 2]
both = zip(own, theirs, strict=True)
return tuple((max(a, c), max(max(a, c), min(b, d))) for (a, b), (c, d) in both)
