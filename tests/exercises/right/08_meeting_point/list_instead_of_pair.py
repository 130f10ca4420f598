# right: by the addresses of each network, a list for a pair
# [answer 1]
ip = ipaddress.ip_interface(text).ip
return all((not ip.is_loopback, not ip.is_link_local, int(ip) != 0))
# [answer 2]
networks = []
for text in reports[0].interfaces.values():
    network = ipaddress.IPv4Interface(text).network
    members = [find_in(report, network) for report in reports]
    if usable(text) and None not in members:
        if len(set(address for _, address in members)) == len(members):
            networks.append(network)
return networks
# [answer 3]
for network in common_networks(reports):
    names = {report.host: find_in(report, network)[0] for report in reports}
    return [find_in(reports[0], network)[1], names]
raise ValueError("no common network: " + " and ".join(r.host for r in reports))
