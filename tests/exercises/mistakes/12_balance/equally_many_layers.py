# wrong value: the cost of the slowest
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError(f"{len(costs)} layers cannot be split among {devices} devices")
whole, rest = divmod(len(costs), devices)
return [whole + (device < rest) for device in range(devices)]
