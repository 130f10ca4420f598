# wrong value: the reason, of rank 0
# [answer 3]
more = {}
for part in ("data", "compute"):
    more[part] = typical(times[slow], part) - typical(times[0], part)
return max(reversed(more), key=more.__getitem__)
