# wrong value: place_by_host | distribution=cyclic
# [answer 3]
in_order = list(dict.fromkeys(hosts))
return in_order.index(hosts[rank]), rank - hosts.index(hosts[rank])
