# wrong value: the hosts with empty lines
# [answer 1]
lines = text.rstrip("\n").split("\n")
if not text.strip():
    raise ValueError("no host")
hosts = list(dict.fromkeys(lines))
counts = [lines.count(host) for host in hosts]
if len(set(counts)) > 1:
    raise ValueError(f"unequal: {counts}")
return hosts, counts[0]
