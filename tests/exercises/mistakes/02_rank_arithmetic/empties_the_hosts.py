# wrong value: changed its list
# [answer 3]
mine, seen = hosts[rank], []
while rank >= 0:
    seen.append(hosts.pop(0))
    rank -= 1
return list(dict.fromkeys(seen)).index(mine), seen.count(mine) - 1
