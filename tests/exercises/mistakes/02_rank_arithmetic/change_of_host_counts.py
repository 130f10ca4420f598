# wrong value: place_by_host
# [answer 3]
changes = sum(a != b for a, b in zip(hosts[:rank], hosts[1 : rank + 1]))
return changes, hosts[:rank].count(hosts[rank])
