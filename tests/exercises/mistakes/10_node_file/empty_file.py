# exception: IndexError | a file without hosts is refused
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
counts = [lines.count(host) for host in hosts]
if len(set(counts)) > 1:
    raise ValueError(f"unequal: {counts}")
return hosts, counts[0]
