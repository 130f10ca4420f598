# wrong value: the networks of | 10.
# [answer 2]
found = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    matches = [find_in(report, network) for report in reports]
    if len({place[1] for place in matches if place}) == len(reports):
        found.append(str(network))
return found
