# wrong value: the layers of [3, 5, 6] together
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError("too few layers")
best = {n: (sum(costs[:n]), [n]) for n in range(1, len(costs) + 1)}
for _ in range(devices - 1):
    best = {
        n: min(
            (max(cost, sum(costs[k:n])), [*ends, n])
            for k, (cost, ends) in best.items()
            if k < n
        )
        for n in range(min(best) + 1, len(costs) + 1)
    }
return best[len(costs)][1]
