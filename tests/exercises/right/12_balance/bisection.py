# right: halves the interval in which the smallest limit lies, numpy's whole numbers
# [answer 1]
import numpy as np

if min(sizes) <= 0 or np.sum(sizes) != len(costs):
    raise ValueError("cannot give " + str(sizes) + " layers of " + str(len(costs)))
parts = np.split(np.asarray(costs), np.cumsum(sizes)[:-1])
return max(part.sum() for part in parts)
# [answer 2]
import numpy as np

if not 0 < devices <= len(costs):
    raise ValueError("too few layers")


def cut(limit):
    sizes, cost = [], limit + 1
    for left, layer in zip(range(len(costs), 0, -1), costs):
        if cost + layer > limit or left == devices - len(sizes):
            sizes, cost = [*sizes, 0], 0
        sizes[-1] += 1
        cost += layer
    return sizes


low, high = max(costs), sum(costs)
while low < high:
    middle = (low + high) // 2
    if len(cut(middle)) <= devices:
        high = middle
    else:
        low = middle + 1
return np.array(cut(low))
