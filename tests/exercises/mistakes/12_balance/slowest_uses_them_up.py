# wrong value: what slowest was given, afterwards
# [answer 1]
if min(sizes) < 1 or sum(sizes) != len(costs):
    raise ValueError(f"{sizes} is no split of {len(costs)} layers")
return max(sum(costs.pop(0) for _ in range(size)) for size in sizes)
