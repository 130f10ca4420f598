# wrong value: the reason of rank 0 | is 'data', expected 'compute'
# [answer 3]
more = {}
for part in ("data", "compute"):
    others = [typical(times[r], part) for r in range(len(times)) if r != slow]
    more[part] = typical(times[slow], part) / median(others)
return max(more, key=more.__getitem__)
