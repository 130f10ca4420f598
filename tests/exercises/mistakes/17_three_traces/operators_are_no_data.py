# wrong value: the bottleneck (data 300 us | is 'communication', expected 'data'
# [answer 3]
waits, sends = zip(*[exposed(trace, r, ranks) for r in range(ranks)])
data = [
    without(spans(trace, r, "data"), spans(trace, r, "compute")) for r in range(ranks)
]
costs = {"data": min(data), "communication": min(sends), "slow rank": max(waits)}
name = max(costs, key=costs.get)
return name, waits.index(min(waits)) if name == "slow rank" else None
