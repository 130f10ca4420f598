# right: whole tables of ranks and places, looked up
# [answer 1]
ranks = {}
for node, count in enumerate(processes_per_node):
    for local in range(count):
        ranks[node, local] = len(ranks)
return ranks[node_rank, local_rank]
# [answer 2]
for node_rank, count in enumerate(processes_per_node):
    if rank in range(count):
        break
    rank = rank - count
return (node_rank, rank)
# [answer 3]
by_host = {}
for other, host in enumerate(hosts):
    by_host.setdefault(host, []).append(other)
for node_rank, ranks in enumerate(by_host.values()):
    if rank in ranks:
        return node_rank, ranks.index(rank)
