# wrong value: the bottleneck | is none, expected 0
# [answer 3]
waits, sends = zip(*[exposed(trace, r, ranks) for r in range(ranks)])
data = [without(spans(trace, r, "data"), []) for r in range(ranks)]
costs = {"data": min(data), "communication": min(sends), "slow rank": max(waits)}
name = max(costs, key=costs.get)
return name, (name == "slow rank" and waits.index(min(waits))) or None
