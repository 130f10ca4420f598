# wrong value: place_by_host | n1
# [answer 3]
in_order = list(dict.fromkeys(hosts))
local_rank = sum(host.startswith(hosts[rank]) for host in hosts[:rank])
return in_order.index(hosts[rank]), local_rank
