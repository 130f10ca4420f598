# wrong value: the networks of {'lo': '127.0.0.1/8' | IPv4Network('169.254.0.0/16')
# [answer 2]
result = []
for text in reports[0].interfaces.values():
    network = ipaddress.ip_interface(text).network
    places = [find_in(report, network) for report in reports]
    if all(places) and len({address for _, address in places}) == len(places):
        result.append(network)
return result
