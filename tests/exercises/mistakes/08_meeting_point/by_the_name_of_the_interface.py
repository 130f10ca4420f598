# wrong value: the networks of
# [answer 2]
found = []
for name, text in reports[0].interfaces.items():
    texts = {report.interfaces.get(name, text) for report in reports}
    if usable(text) and len(texts) == len(reports):
        found.append(ipaddress.ip_interface(text).network)
return found
