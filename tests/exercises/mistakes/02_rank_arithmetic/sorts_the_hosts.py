# wrong value: place_by_host
# [answer 3]
mine = hosts[rank]
local_rank = hosts[:rank].count(mine)
hosts.sort()
return list(dict.fromkeys(hosts)).index(mine), local_rank
