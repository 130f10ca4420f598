# right: says what is wrong without the numbers, tuples for lists
# [answer 1]
if any(size < 1 for size in sizes):
    raise ValueError(f"a device without a layer: {sizes}")
if len(costs) != sum(sizes):
    raise ValueError(f"not the sizes of all layers: {sizes}")
layers = iter(costs)
return max(sum(next(layers) for _ in range(size)) for size in sizes)
# [answer 2]
if devices < 1 or devices > len(costs):
    raise ValueError("there must be a layer for each device, and a device")
n, ends = len(costs), [0, *__import__("itertools").accumulate(costs)]
best = {i: (ends[i], (i,)) for i in range(1, n + 1)}
for used in range(1, devices):
    longer = {}
    for i in range(used + 1, n + 1):
        places = range(used, i)
        j = min(places, key=lambda j: max(best[j][0], ends[i] - ends[j]))
        longer[i] = (max(best[j][0], ends[i] - ends[j]), (*best[j][1], i - j))
    best = longer
return best[n][1]
