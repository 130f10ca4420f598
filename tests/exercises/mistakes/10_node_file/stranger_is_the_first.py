# wrong value: must raise ValueError, but returned 0 | gpu-1 in a job
# [answer 2]
name = hostname.split(".")[0]
for rank, host in enumerate(hosts):
    if host.split(".")[0] == name:
        return rank
return 0
