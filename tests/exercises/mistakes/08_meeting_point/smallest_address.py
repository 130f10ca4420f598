# wrong value: is '10.1.0.10', expected '10.1.0.11'
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(", ".join(r.host for r in reports))
matches = {r.host: find_in(r, networks[0]) for r in reports}
return min(p[1] for p in matches.values()), {h: p[0] for h, p in matches.items()}
