# wrong value: changed the reports
# [answer 2]
for report in reports:
    for name in [n for n, text in report.interfaces.items() if not usable(text)]:
        del report.interfaces[name]
found = []
for text in reports[0].interfaces.values():
    network = ipaddress.ip_interface(text).network
    matches = [find_in(report, network) for report in reports]
    if len({place[1] for place in matches if place}) == len(reports):
        found.append(network)
return found
