# wrong value: the error must name n3
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(f"{reports[0].host} and {reports[1].host} have no network")
matches = {report.host: find_in(report, networks[0]) for report in reports}
return matches[reports[0].host][1], {host: place[0] for host, place in matches.items()}
