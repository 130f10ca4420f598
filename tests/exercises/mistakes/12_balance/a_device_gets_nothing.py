# wrong value: a device got no layer
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError(f"{len(costs)} layers cannot be split among {devices} devices")
limit = max(costs)
while True:
    sizes, cost = [0], 0
    for layer in costs:
        if cost + layer > limit:
            sizes.append(0)
            cost = 0
        sizes[-1] += 1
        cost += layer
    if len(sizes) <= devices:
        return sizes + [0] * (devices - len(sizes))
    limit += 1
