# wrong value: slowest of 5 layers with sizes [] | must raise ValueError
# [answer 1]
if any(size < 1 for size in sizes) or (sizes and sum(sizes) != len(costs)):
    raise ValueError(f"{sizes} is no split of {len(costs)} layers")
ends = [sum(sizes[: device + 1]) for device in range(len(sizes))]
parts = [sum(costs[end - n : end]) for n, end in zip(sizes, ends, strict=True)]
return max(parts, default=0)
