# wrong value: the own errors
# [answer 1]
return [(int(rank), message) for rank, message in ERROR.findall(log)]
