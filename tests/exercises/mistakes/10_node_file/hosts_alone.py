# wrong value: must return two things | lines per host
# [answer 1]
    lines = [l for l in text.splitlines() if l]
    hosts = list(dict.fromkeys(lines))
    if not hosts: raise ValueError("no host")
    counts = [lines.count(h) for h in hosts]
    if min(counts) != max(counts): raise ValueError(f"{min(counts)} {max(counts)}")
    return hosts
# [answer 2]
    pass
