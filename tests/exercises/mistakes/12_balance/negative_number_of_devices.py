# wrong value: 3 layers among -1 devices | must raise ValueError
# [answer 2]
if devices > len(costs) or devices == 0:
    raise ValueError("too few layers")
best = {n: (sum(costs[:n]), [n]) for n in range(1, len(costs) + 1)}
for _ in range(devices - 1):
    best = {
        n: min(
            (max(cost, sum(costs[k:n])), [*sizes, n - k])
            for k, (cost, sizes) in best.items()
            if k < n
        )
        for n in range(min(best) + 1, len(costs) + 1)
    }
return best[len(costs)][1]
