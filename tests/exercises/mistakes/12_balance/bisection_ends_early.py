# wrong value: the cost of the slowest | e-0
# [answer 2]
if not 0 < devices <= len(costs): raise ValueError("devices")
lo, hi = max(costs), sum(costs)
def cut(limit):
    sizes, load = [0], 0
    for k, c in enumerate(costs):
        if sizes[-1] and (load + c > limit or len(costs) - k <= devices - len(sizes)):
            sizes.append(0); load = 0
        sizes[-1] += 1; load += c
    return sizes
while hi - lo > 1e-3:
    mid = (lo + hi) / 2
    if len(cut(mid)) <= devices: hi = mid
    else: lo = mid
return cut(hi)
