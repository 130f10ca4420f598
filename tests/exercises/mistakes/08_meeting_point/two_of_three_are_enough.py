# wrong value: n3 has no ib0
# [answer 2]
found = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    there = find_in(reports[1], network)
    if there and there[1] != find_in(reports[0], network)[1]:
        found.append(network)
return found
