# wrong value: n2 and n3 have the same addresses
# [answer 2]
found = []
first, *others = reports
for text in first.interfaces.values():
    if not usable(text):
        continue
    network = ipaddress.ip_interface(text).network
    mine = find_in(first, network)[1]
    theirs = [find_in(report, network) for report in others]
    if all(their is not None and their[1] != mine for their in theirs):
        found.append(network)
return found
