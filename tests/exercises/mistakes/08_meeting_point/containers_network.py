# wrong value: common_networks | different addresses
# [answer 2]
found = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    if all(find_in(report, network) for report in reports):
        found.append(network)
return found
