# wrong value: meeting_point of three nodes | the error must name n1
# [answer 3]
networks = common_networks(reports)
if not networks:
    raise ValueError("no common network")
name, address = find_in(reports[0], networks[0])
return address, {report.host: find_in(report, networks[0])[0] for report in reports}
