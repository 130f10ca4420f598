# wrong value: the bottleneck
# [answer 3]
both = [exposed(trace, r, ranks) for r in range(ranks)]
before = [b for b, _ in both]
data = [sum(e - b for b, e in merge(spans(trace, r, "data"))) for r in range(ranks)]
costs = {"data": min(data), "communication": both[0][1], "slow rank": max(before)}
worst = max(costs, key=costs.get)
return worst, before.index(min(before)) if worst == "slow rank" else None
