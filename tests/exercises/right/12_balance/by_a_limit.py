# right: the smallest limit that some split keeps, then layers for empty devices
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError(f"{len(costs)} layers cannot be split among {devices} devices")
sums = {sum(costs[a:b]) for b in range(len(costs) + 1) for a in range(b)}
for limit in sorted(x for x in sums if x >= max(costs)):
    sizes, cost = [0], 0
    for layer in costs:
        if cost + layer > limit:
            sizes.append(0)
            cost = 0
        sizes[-1] += 1
        cost += layer
    if len(sizes) <= devices:
        break
while len(sizes) < devices:
    many = sizes.index(max(sizes))
    sizes[many : many + 1] = [sizes[many] - 1, 1]
return sizes
