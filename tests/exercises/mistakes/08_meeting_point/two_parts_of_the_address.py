# wrong value: the networks of
# [answer 2]
found = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    addresses = {
        other.split("/")[0]
        for report in reports
        for other in report.interfaces.values()
        if other.split(".")[:2] == text.split(".")[:2]
    }
    if len(addresses) == len(reports):
        found.append(network)
return found
