# wrong value: place_by_host(0 | item 1 | is 3, expected 0
# [answer 3]
in_order = list(dict.fromkeys(hosts))
return in_order.index(hosts[rank]), hosts.count(hosts[rank])
