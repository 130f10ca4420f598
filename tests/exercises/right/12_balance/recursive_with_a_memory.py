# right: the last device first, with a memory of what was found
# [answer 2]
import functools

if not 0 < devices <= len(costs):
    raise ValueError("no such split")
costs = tuple(costs)


@functools.cache
def best(layers, parts):
    if parts == 1:
        return sum(costs[:layers]), (layers,)
    found = []
    for before in range(parts - 1, layers):
        cost, sizes = best(before, parts - 1)
        found.append((max(cost, sum(costs[before:layers])), (*sizes, layers - before)))
    return min(found)


return list(best(len(costs), devices)[1])
