# wrong value: the networks of {'eth0': '10.1.0.1/24'} and {'ens3': '10.1.0.2/24'} | has 0 items, expected 1
# [answer 2]
result = []
for name, text in reports[0].interfaces.items():
    if usable(text) and all(name in report.interfaces for report in reports):
        network = ipaddress.ip_interface(text).network
        places = [find_in(report, network) for report in reports]
        if all(places) and len({address for _, address in places}) == len(places):
            result.append(network)
return result
