# wrong value: the cost of the slowest
# [answer 2]
if not 1 <= devices <= len(costs):
    raise ValueError("too few layers")
limit = max(costs)
while True:
    sizes, cost = [], limit + 1
    for left, layer in zip(range(len(costs), 0, -1), costs):
        if cost + layer > limit or left == devices - len(sizes):
            sizes, cost = [*sizes, 0], 0
        sizes[-1] += 1
        cost += layer
    if len(sizes) <= devices:
        return sizes
    limit += 1
