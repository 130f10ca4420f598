# wrong value: the error must name gpu-1
# [answer 2]
name = hostname.split(".")[0]
names = [host.split(".")[0] for host in hosts]
if name not in names:
    raise ValueError("this is not a host of the job")
return names.index(name)
