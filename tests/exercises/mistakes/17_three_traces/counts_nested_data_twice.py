# wrong value: the bottleneck
# [answer 3]
waits = [exposed(trace, rank, ranks) for rank in range(ranks)]
data = [sum(e - b for b, e in spans(trace, r, "data")) for r in range(ranks)]
costs = {
    "data": min(data),
    "communication": min(after for _, after in waits),
    "slow rank": max(before for before, _ in waits),
}
name = max(costs, key=lambda cost: costs[cost])
if name != "slow rank":
    return name, None
return name, min(range(ranks), key=lambda rank: waits[rank][0])
