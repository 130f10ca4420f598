# wrong value: place_by_host(0 | item 1 | is 1, expected 0
# [answer 3]
in_order = list(dict.fromkeys(hosts))
return in_order.index(hosts[rank]), hosts[: rank + 1].count(hosts[rank])
