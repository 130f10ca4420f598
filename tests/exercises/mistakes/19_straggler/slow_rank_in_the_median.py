# wrong value: the reason of rank 0 | is 'compute', expected 'data'
# [answer 3]
more = {}
for part in ("data", "compute"):
    ranks = [typical(steps, part) for steps in times]
    more[part] = ranks[slow] - median(ranks)
return max(more, key=more.__getitem__)
