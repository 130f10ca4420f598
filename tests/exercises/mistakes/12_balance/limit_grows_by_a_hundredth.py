# wrong value: the cost of the slowest, [500, 497, 1, 500] as [3, 1] | is 998, expected 997
# [answer 2]
n = len(costs)
if devices < 1 or devices > n:
    raise ValueError("no")
limit = max(max(costs), sum(costs) / devices)
while True:
    sizes, total = [0], 0
    for cost in costs:
        if total + cost > limit and sizes[-1]:
            sizes.append(0)
            total = 0
        sizes[-1] += 1
        total += cost
    if len(sizes) <= devices:
        break
    limit *= 1.01
while len(sizes) < devices:
    k = sizes.index(max(sizes))
    sizes[k : k + 1] = [sizes[k] - 1, 1]
return sizes
