# wrong value: the cost of the slowest
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError(f"{len(costs)} layers cannot be split among {devices} devices")
sizes, loads = [1] * devices, sorted(costs, reverse=True)[:devices]
for layer in sorted(costs, reverse=True)[devices:]:
    lightest = loads.index(min(loads))
    loads[lightest] += layer
    sizes[lightest] += 1
return sizes
