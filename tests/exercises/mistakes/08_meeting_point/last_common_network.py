# wrong value: meeting_point of n1
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(" ".join(report.host for report in reports))
matches = {report.host: find_in(report, networks[-1]) for report in reports}
return matches[reports[0].host][1], {host: place[0] for host, place in matches.items()}
