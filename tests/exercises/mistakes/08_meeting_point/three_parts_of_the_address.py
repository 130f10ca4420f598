# wrong value: the networks of 10.1.0.11/16 and 10.1.3.12/16
# [answer 2]
found = []
for text in filter(usable, reports[0].interfaces.values()):
    network = ipaddress.ip_interface(text).network
    addresses = {
        other.split("/")[0]
        for report in reports
        for other in report.interfaces.values()
        if other.split(".")[:3] == text.split(".")[:3]
    }
    if len(addresses) == len(reports):
        found.append(network)
return found
