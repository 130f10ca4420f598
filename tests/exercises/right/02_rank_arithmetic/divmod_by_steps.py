# right: counted down, counted by a dict
# [answer 1]
return sum(n for i, n in enumerate(processes_per_node) if i < node_rank) + local_rank
# [answer 2]
node_rank, counts = 0, iter(processes_per_node)
count = next(counts)
while rank - count >= 0:
    rank, node_rank, count = rank - count, node_rank + 1, next(counts)
return node_rank, rank
# [answer 3]
first = {}
for host in hosts:
    first.setdefault(host, len(first))
return first[hosts[rank]], len([h for h in hosts[:rank] if h == hosts[rank]])
