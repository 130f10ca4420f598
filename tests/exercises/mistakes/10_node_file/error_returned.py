# wrong value: must raise ValueError, but returned ValueError('the node file
# [answer 1]
counts: dict[str, int] = {}
for host in text.split():
    counts[host] = counts.get(host, 0) + 1
if not counts:
    return ValueError("the node file has no hosts")
if len(set(counts.values())) > 1:
    raise ValueError(f"unequal numbers of lines: {counts}")
return list(counts), counts[host]
