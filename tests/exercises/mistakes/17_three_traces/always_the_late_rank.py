# wrong value: the bottleneck
# [answer 3]
data = [without(spans(trace, rank, "data"), []) for rank in range(ranks)]
parts = [exposed(trace, rank, ranks) for rank in range(ranks)]
waiting, sending = zip(*parts, strict=True)
costs = {"data": min(data), "communication": min(sending)}
costs["slow rank"] = max(waiting)
name = max(costs, key=costs.__getitem__)
return name, waiting.index(min(waiting))
