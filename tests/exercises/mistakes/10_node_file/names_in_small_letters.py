# wrong value: the hosts | GPU-10.Lab
# [answer 1]
lines = text.lower().split()
hosts = list(dict.fromkeys(lines))
if not hosts:
    raise ValueError("no host")
counts = {host: lines.count(host) for host in hosts}
if len(set(counts.values())) > 1:
    raise ValueError(f"unequal: {counts}")
return hosts, counts[hosts[0]]
