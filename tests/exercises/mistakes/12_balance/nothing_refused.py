# wrong value: slowest of 5 layers with sizes [2, 2] | must raise ValueError
# [answer 1]
ends = [sum(sizes[: device + 1]) for device in range(len(sizes))]
return max(sum(costs[end - n : end]) for n, end in zip(sizes, ends, strict=True))
