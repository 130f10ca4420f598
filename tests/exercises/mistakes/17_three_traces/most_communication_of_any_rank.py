# wrong value: the bottleneck
# [answer 3]
waits = [exposed(trace, rank, ranks) for rank in range(ranks)]
data = min(without(spans(trace, rank, "data"), []) for rank in range(ranks))
communication = max(after for _, after in waits)
slow = max(before for before, _ in waits)
if data >= max(communication, slow):
    return "data", None
if communication >= slow:
    return "communication", None
return "slow rank", min(range(ranks), key=lambda rank: waits[rank][0])
