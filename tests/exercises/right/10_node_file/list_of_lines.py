# right: lists alone; the node rank by enumerate and a dict
# [answer 1]
lines = [line.strip() for line in text.splitlines()]
hosts = []
for line in lines:
    if line and line not in hosts:
        hosts.append(line)
counts = [lines.count(host) for host in hosts]
if not hosts or min(counts) != max(counts):
    raise ValueError(f"lines of {hosts}: {counts}")
return hosts, counts[0]
# [answer 2]
ranks = {host.split(".", 1)[0]: rank for rank, host in enumerate(hosts)}
try:
    return ranks[hostname.split(".", 1)[0]]
except KeyError:
    raise ValueError(f"{hostname!r} is none of {hosts}") from None
