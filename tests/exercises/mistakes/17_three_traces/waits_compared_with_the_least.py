# wrong value: the bottleneck (data 0 us, communication 15 us, slow rank 55 us), item 0 | is 'communication', expected 'slow rank'
# [answer 3]
both = [exposed(trace, r, ranks) for r in range(ranks)]
before = [b for b, _ in both]
data = [sum(e - b for b, e in merge(spans(trace, r, "data"))) for r in range(ranks)]
costs = {"data": min(data), "communication": min(a for _, a in both), "slow rank": max(before) - min(before)}
worst = max(costs, key=costs.get)
return worst, before.index(min(before)) if worst == "slow rank" else None
