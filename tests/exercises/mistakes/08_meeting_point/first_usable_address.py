# wrong value: meeting_point | 172.17.0.1
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError(" ".join(report.host for report in reports))
address = next(filter(usable, reports[0].interfaces.values())).split("/")[0]
return address, {report.host: find_in(report, networks[0])[0] for report in reports}
