# wrong value: must raise ValueError, but returned | four of two others
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
if not hosts:
    raise ValueError("no host")
counts = [lines.count(host) for host in hosts]
if counts[0] != counts[min(1, len(counts) - 1)]:
    raise ValueError(f"unequal: {counts}")
return hosts, counts[0]
