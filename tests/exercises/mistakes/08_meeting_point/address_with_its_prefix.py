# wrong value: meeting_point of n1 | 10.2.0.11/24
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(" ".join(report.host for report in reports))
names = {report.host: find_in(report, networks[0])[0] for report in reports}
return reports[0].interfaces[names[reports[0].host]], names
