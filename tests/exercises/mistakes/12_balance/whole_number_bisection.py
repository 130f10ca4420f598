# wrong value: the cost of the slowest
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError("too few layers")


def cut(limit):
    sizes, cost = [], limit + 1
    for left, layer in zip(range(len(costs), 0, -1), costs):
        if cost + layer > limit or left == devices - len(sizes):
            sizes, cost = [*sizes, 0], 0
        sizes[-1] += 1
        cost += layer
    return sizes


low, high = int(max(costs)), int(sum(costs)) + 1
while low < high:
    middle = (low + high) // 2
    if max(costs) <= middle and len(cut(middle)) <= devices:
        high = middle
    else:
        low = middle + 1
return cut(low)
