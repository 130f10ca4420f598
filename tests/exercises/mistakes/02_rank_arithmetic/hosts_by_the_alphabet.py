# wrong value: place_by_host(0 | first appearance
# [answer 3]
in_order = sorted(set(hosts), reverse=True)
return in_order.index(hosts[rank]), hosts[:rank].count(hosts[rank])
