# exception: KeyError | refused, and named
# [answer 2]
ranks = {host.split(".")[0]: rank for rank, host in enumerate(hosts)}
return ranks[hostname.split(".")[0]]
