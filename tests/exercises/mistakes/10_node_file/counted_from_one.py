# wrong value: the node ranks of node07
# [answer 2]
name = hostname.split(".")[0]
for rank, host in enumerate(hosts, start=1):
    if host.split(".")[0] == name:
        return rank
raise ValueError(f"{hostname} is not there")
