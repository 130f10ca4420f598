# exception: KeyError | more devices than layers
# [answer 2]
best = {n: (sum(costs[:n]), [n]) for n in range(1, len(costs) + 1)}
for _ in range(devices - 1):
    best = {
        n: min(
            (max(cost, sum(costs[fewer:n])), [*sizes, n - fewer])
            for fewer, (cost, sizes) in best.items()
            if fewer < n
        )
        for n in range(min(best) + 1, len(costs) + 1)
    }
return best[len(costs)][1]
