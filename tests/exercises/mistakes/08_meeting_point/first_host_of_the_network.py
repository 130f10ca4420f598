# wrong value: is '10.2.0.1', expected '10.2.0.11'
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(" and ".join(r.host for r in reports) + " share no network")
interfaces = {r.host: find_in(r, networks[0])[0] for r in reports}
return str(networks[0][1]), interfaces
