# wrong value: the costs that split was given, afterwards
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError("too few layers")
whole = list(costs)
best = {n: (sum(whole[:n]), [n]) for n in range(1, len(whole) + 1)}
for _ in range(devices - 1):
    best = {
        n: min(
            (max(cost, sum(whole[k:n])), [*sizes, n - k])
            for k, (cost, sizes) in best.items()
            if k < n
        )
        for n in range(min(best) + 1, len(whole) + 1)
    }
sizes = best[len(whole)][1]
for size in sizes:
    for _ in range(size):
        costs.pop(0)
return sizes
