# wrong value: gpu-1 in | gpu-1 and gpu-10 are two hosts
# [answer 2]
name = hostname.split(".")[0]
for rank, host in enumerate(hosts):
    if host.startswith(name):
        return rank
raise ValueError(f"{hostname} is not there")
