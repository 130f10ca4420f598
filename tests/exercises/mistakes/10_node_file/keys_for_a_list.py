# wrong value: the hosts | dict_keys
# [answer 1]
counts: dict[str, int] = {}
for host in text.split():
    counts[host] = counts.get(host, 0) + 1
if len(set(counts.values())) != 1:
    raise ValueError(f"unequal: {counts}")
return counts.keys(), min(counts.values())
