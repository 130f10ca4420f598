# wrong value: the cost of [3, 1, 2]
# [answer 1]
if min(sizes) < 1 or sum(sizes) != len(costs):
    raise ValueError(f"{sizes} is no split of {len(costs)} layers")
return max(sizes)
