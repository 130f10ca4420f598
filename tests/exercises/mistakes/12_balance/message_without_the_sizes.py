# wrong value: the error must name
# [answer 1]
if min(sizes) < 1 or sum(sizes) != len(costs):
    raise ValueError("these sizes do not fit")
ends = [sum(sizes[: device + 1]) for device in range(len(sizes))]
return max(sum(costs[end - n : end]) for n, end in zip(sizes, ends, strict=True))
