# right: edges by accumulate, overlaps by intersecting ranges, single numbers
# [answer 1]
from itertools import accumulate

edges = [0, *accumulate(length // parts + (i < length % parts) for i in range(parts))]
return edges[index], edges[index + 1]
# [answer 2]
starts = [max(m[0], t[0]) for m, t in zip(own, theirs)]
stops = [min(m[1], t[1]) for m, t in zip(own, theirs)]
if any(stop <= start for start, stop in zip(starts, stops)):
    return None
return tuple(zip(starts, stops))
# [answer 3]
for rank, box in sorted(saved.items()):
    for row in range(*own[0]):
        for column in range(*own[1]):
            if box[0][0] <= row < box[0][1] and box[1][0] <= column < box[1][1]:
                r, c = row - box[0][0], column - box[1][0]
                value = read(rank, (slice(r, r + 1), slice(c, c + 1)))
                shard[row - own[0][0], column - own[1][0]] = value.item()
