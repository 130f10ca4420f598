# right: for and else, and what is usable by a table of networks
# [answer 1]
head = int(text.split(".")[0])
return head not in (0, 127) and not text.startswith("169.254.")
# [answer 2]
found = []
for name, text in reports[0].interfaces.items():
    if not usable(text):
        continue
    network, seen = ipaddress.ip_interface(text).network, []
    for report in reports:
        place = find_in(report, network)
        if place is None or place[1] in seen:
            break
        seen.append(place[1])
    else:
        found.append(network)
return found
# [answer 3]
common = common_networks(reports)
if common == []:
    raise ValueError("nothing in common: " + str([report.host for report in reports]))
interfaces = {}
for report in reversed(reports):
    interfaces[report.host], address = find_in(report, common[0])
return address, interfaces
