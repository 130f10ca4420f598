# wrong value: n1 has two addresses in a network, n2 none
# [answer 2]
common = {}
for report in reports:
    for text in filter(usable, report.interfaces.values()):
        common.setdefault(ipaddress.ip_interface(text).network, set()).add(
            ipaddress.ip_interface(text).ip
        )
return [n for n, ips in common.items() if len(ips) == len(reports)]
