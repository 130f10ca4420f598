# wrong value: must raise ValueError, but returned | both numbers are named
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
if not hosts or len(lines) % len(hosts):
    raise ValueError(f"{len(lines)} lines for {len(hosts)} hosts")
return hosts, len(lines) // len(hosts)
