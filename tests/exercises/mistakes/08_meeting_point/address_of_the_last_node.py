# wrong value: meeting_point of n1
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(" ".join(report.host for report in reports))
for report in reports:
    name, address = find_in(report, networks[0])
return address, {report.host: find_in(report, networks[0])[0] for report in reports}
