# wrong value: place_by_host
# [answer 3]
return len(set(hosts[:rank])), hosts[:rank].count(hosts[rank])
