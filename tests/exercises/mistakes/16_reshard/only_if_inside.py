# wrong value: is None, but they share some
# [answer 2]
both = zip(own, theirs, strict=True)
inside = all(c <= a and b <= d and a < b for (a, b), (c, d) in both)
return own if inside else None
