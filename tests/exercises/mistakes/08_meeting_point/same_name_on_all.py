# wrong value: meeting_point | ens3
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(" ".join(report.host for report in reports))
name, address = find_in(reports[0], networks[0])
return address, {report.host: name for report in reports}
