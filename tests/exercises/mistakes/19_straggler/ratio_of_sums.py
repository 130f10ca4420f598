# wrong value: the reason
# [answer 3]
more = {}
for part in ("data", "compute"):
    own = sum(step[part] for step in times[slow])
    more[part] = own - sum(step[part] for step in times[slow - 1])
return max(more, key=more.__getitem__)
