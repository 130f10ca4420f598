# right: groups of sorted lines for the counts, the order by index
# [answer 1]
lines = text.split()
counts = {lines.count(host) for host in lines}
if len(counts) == 1:
    return sorted(set(lines), key=lines.index), counts.pop()
raise ValueError(f"the lines of the hosts are {sorted(counts) or 'none'}")
# [answer 2]
short = hostname.split(".")[0]
found = [rank for rank, host in enumerate(hosts) if (host + ".").startswith(short + ".")]
if not found:
    raise ValueError(f"{hostname} is missing in {hosts}")
return found[0]
