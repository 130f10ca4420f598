# wrong value: gpu-1 in
# [answer 2]
for rank, host in enumerate(hosts):
    if hostname.split(".")[0] in host:
        return rank
raise ValueError(f"{hostname} is not there")
