# wrong value: the cost of the slowest
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError(f"{len(costs)} layers cannot be split among {devices} devices")
average = sum(costs) / devices
sizes, cost = [0], 0
for index, layer in enumerate(costs):
    left, free = len(costs) - index, devices - len(sizes)
    if sizes[-1] and free and (cost + layer > average or left <= free):
        sizes.append(0)
        cost = 0
    sizes[-1] += 1
    cost += layer
while len(sizes) < devices:
    largest = sizes.index(max(sizes))
    sizes[largest : largest + 1] = [sizes[largest] - 1, 1]
return sizes
