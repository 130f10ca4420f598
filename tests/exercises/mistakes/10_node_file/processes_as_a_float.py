# wrong value: the processes on each host | is 1.0, a float: expected an int
# [answer 1]
lines = text.split()
hosts = list(dict.fromkeys(lines))
counts = [lines.count(host) for host in hosts]
if not hosts or len(set(counts)) > 1:
    raise ValueError(f"the hosts {hosts} have {counts} lines")
return hosts, len(lines) / len(hosts)
