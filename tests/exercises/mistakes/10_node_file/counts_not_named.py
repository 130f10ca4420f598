# wrong value: the error must name
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
if len({lines.count(host) for host in hosts}) != 1:
    raise ValueError(f"not equally many lines for each of {hosts}")
return hosts, lines.count(hosts[0])
