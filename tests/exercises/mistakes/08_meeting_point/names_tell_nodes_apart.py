# wrong value: the networks of | has 2 items, expected 1
# [answer 2]
common = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    found = [find_in(report, network) for report in reports]
    if None not in found and len(set(found)) == len(reports):
        common.append(network)
return common
