# wrong value: the first host of the file comes first | the hosts
# [answer 1]
lines = text.split()
hosts = sorted(set(lines))
if not hosts:
    raise ValueError("no host")
counts = [lines.count(host) for host in hosts]
if len(set(counts)) > 1:
    raise ValueError(f"unequal: {counts}")
return hosts, counts[0]
