# wrong value: the own errors
# [answer 1]
found = [(int(rank), message) for rank, message in ERROR.findall(log)]
return [(rank, message) for rank, message in found if CONSEQUENCES[0] not in message]
