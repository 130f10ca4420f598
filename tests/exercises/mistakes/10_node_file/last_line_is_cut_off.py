# wrong value: the hosts without a last end
# [answer 1]
lines = [line for line in text.split("\n")[:-1] if line]
hosts = list(dict.fromkeys(lines))
counts = [lines.count(host) for host in hosts]
if len(set(counts)) != 1:
    raise ValueError(f"unequal: {counts}")
return hosts, counts[0]
