# exception: IndexError | common_networks
# [answer 2]
found = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    matches = [find_in(report, network) for report in reports]
    if all(matches) and matches[0][1] != matches[1][1] and len(set(matches)) > 1:
        if len({address for _, address in matches}) == len(reports):
            found.append(network)
return found
