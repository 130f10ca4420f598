# wrong value: the hosts
# [answer 1]
lines = [line.split(".")[0] for line in text.split()]
hosts = list(dict.fromkeys(lines))
counts = [lines.count(host) for host in hosts]
if len(set(counts)) != 1:
    raise ValueError(f"unequal: {counts}")
return hosts, counts[0]
