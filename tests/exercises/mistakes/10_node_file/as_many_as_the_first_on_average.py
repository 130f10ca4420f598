# wrong value: two lines of node11, one line of node07 and three of node03
# [answer 1]
counts = {}
for host in text.split():
    counts[host] = counts.get(host, 0) + 1
if not counts:
    raise ValueError("no host")
first = counts[next(iter(counts))]
if sum(counts.values()) != first * len(counts):
    raise ValueError(f"{counts}")
return list(counts), first
