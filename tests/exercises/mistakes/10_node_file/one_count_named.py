# wrong value: the error must name
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
if not hosts:
    raise ValueError("no host")
for host in hosts:
    if lines.count(host) != lines.count(hosts[0]):
        raise ValueError(f"{host} has {lines.count(host)} lines, others have more or less")
return hosts, lines.count(hosts[0])
