# wrong value: must raise ValueError, but returned | both numbers are named
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
if not hosts:
    raise ValueError("no host")
return hosts, min(lines.count(host) for host in hosts)
