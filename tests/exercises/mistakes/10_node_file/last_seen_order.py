# wrong value: need not follow each other | the hosts | another order
# [answer 1]
lines = text.split()
if not lines:
    raise ValueError("no host")
hosts = []
for host in lines:
    if host in hosts:
        hosts.remove(host)
    hosts.append(host)
counts = {host: lines.count(host) for host in hosts}
if len(set(counts.values())) > 1:
    raise ValueError(f"unequal: {counts}")
return hosts, lines.count(hosts[0])
