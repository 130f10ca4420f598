# right: counts the addresses of each network first
# [answer 1]
parts = text.split(".")
return parts[0] not in ("0", "127") and parts[:2] != ["169", "254"]
# [answer 2]
members: dict = {}
for report in reports:
    for text in report.interfaces.values():
        if usable(text):
            place = ipaddress.ip_interface(text)
            members.setdefault(place.network, {})[report.host] = place.ip
return [
    network
    for network, ips in members.items()
    if len(ips) == len(set(ips.values())) == len(reports)
]
