# right: halves the interval of limits until one split is left, numpy's numbers
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
for _ in range(70):
    middle = (low + high) / 2
    low, high = (low, middle) if len(cut(middle)) <= devices else (middle, high)
return np.array(cut(high))
