# wrong value: the node ranks of node07
# [answer 2]
hosts.sort()
names = [host.split(".")[0] for host in hosts]
if hostname.split(".")[0] not in names:
    raise ValueError(f"{hostname} is not there")
return names.index(hostname.split(".")[0])
