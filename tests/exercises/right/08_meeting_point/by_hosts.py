# right: a table of the addresses in each network; a tuple made from two dicts
# [answer 1]
address = ipaddress.ip_interface(text)
unusable = map(ipaddress.ip_network, ("127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/32"))
return not any(address.ip in network for network in unusable)
# [answer 2]
table = {}
for report in reports:
    for text in report.interfaces.values():
        place = ipaddress.ip_interface(text)
        table.setdefault(place.network, {}).setdefault(report.host, place.ip)
first = (ipaddress.ip_interface(text) for text in reports[0].interfaces.values())
return [
    place.network
    for place in first
    if usable(str(place))
    and len(set(table[place.network].values())) == len({r.host for r in reports})
]
# [answer 3]
try:
    network = common_networks(reports)[0]
except IndexError:
    raise ValueError(f"no network of {[r.host for r in reports]} is common") from None
where = {report.host: find_in(report, network) for report in reports}
names = {host: name for host, (name, _) in where.items()}
return where[reports[0].host][1], names
