# exception: IndexError | common_networks
# [answer 2]
found = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    places = [find_in(report, network) for report in reports]
    if all(places) and places[0][1] != places[1][1] and len(set(places)) > 1:
        if len({address for _, address in places}) == len(reports):
            found.append(network)
return found
