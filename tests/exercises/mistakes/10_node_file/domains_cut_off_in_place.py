# wrong value: the list of hosts afterwards
# [answer 2]
for index in range(len(hosts)):
    hosts[index] = hosts[index].split(".")[0]
if hostname.split(".")[0] not in hosts:
    raise ValueError(f"{hostname} is not in {hosts}")
return hosts.index(hostname.split(".")[0])
