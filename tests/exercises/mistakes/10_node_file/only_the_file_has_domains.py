# exception: ValueError | the reverse
# [answer 2]
names = [host.split(".")[0] for host in hosts]
if hostname not in names:
    raise ValueError(f"{hostname} is not there")
return names.index(hostname)
