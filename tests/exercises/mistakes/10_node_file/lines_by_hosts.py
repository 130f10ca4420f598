# wrong value: must raise ValueError, but returned | lines of node70
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
if not hosts:
    raise ValueError("no host")
return hosts, len(lines) // len(hosts)
