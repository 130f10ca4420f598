# wrong value: the list of hosts afterwards
# [answer 2]
for rank in range(len(hosts)):
    hosts[rank] = hosts[rank].split(".")[0]
name = hostname.split(".")[0]
if name not in hosts:
    raise ValueError(f"{hostname} is not there")
rank = hosts.index(name)
hosts.append(hosts[0])
return rank
