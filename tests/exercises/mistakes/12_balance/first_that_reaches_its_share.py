# wrong value: the cost of the slowest
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError("too few layers")
sizes, start = [], 0
for device in range(devices):
    left = devices - device
    share, cost, stop = sum(costs[start:]) / left, costs[start], start + 1
    while stop < len(costs) - left + 1 and cost + costs[stop] / 2 <= share:
        cost += costs[stop]
        stop += 1
    sizes.append(stop - start if left > 1 else len(costs) - start)
    start = stop
return sizes
