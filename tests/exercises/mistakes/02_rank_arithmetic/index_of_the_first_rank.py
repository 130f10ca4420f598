# wrong value: place_by_host(3 | item 0 | is 3, expected 1
# [answer 3]
return hosts.index(hosts[rank]), hosts[:rank].count(hosts[rank])
