# exception: gpu-2 is not in ['gpu-2.hpc.example.org'
# [answer 2]
names = [host.rstrip(".cluster") for host in hosts]
if hostname.rstrip(".cluster") in names:
    return names.index(hostname.rstrip(".cluster"))
raise ValueError(f"{hostname} is not in {hosts}")
