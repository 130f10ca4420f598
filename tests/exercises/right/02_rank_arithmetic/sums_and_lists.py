# right: a sum of a slice, a list of all places, a loop over the hosts
# [answer 1]
return sum(processes_per_node[:node_rank]) + local_rank
# [answer 2]
places = [
    (node, local)
    for node, count in enumerate(processes_per_node)
    for local in range(count)
]
return places[rank]
# [answer 3]
seen = []
for host in hosts[: rank + 1]:
    if host not in seen:
        seen.append(host)
local_rank = sum(host == hosts[rank] for host in hosts[:rank])
return seen.index(hosts[rank]), local_rank
