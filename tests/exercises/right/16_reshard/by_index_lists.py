# right: bounds as sums of sizes, overlaps by ranges, pieces in a loop over rows
# [answer 1]
sizes = [length // parts + (i < length % parts) for i in range(parts)]
return sum(sizes[:index]), sum(sizes[: index + 1])
# [answer 2]
common = []
for (a, b), (c, d) in zip(own, theirs):
    shared = sorted(set(range(a, b)) & set(range(c, d)))
    if not shared:
        return None
    common.append((shared[0], shared[-1] + 1))
return tuple(common)
# [answer 3]
for rank in saved:
    common = overlap(own, saved[rank])
    if common is None:
        continue
    (top, bottom), (left, right) = common
    (row, _), (column, _) = saved[rank]
    for line in range(top, bottom):
        piece = read(
            rank,
            (slice(line - row, line - row + 1), slice(left - column, right - column)),
        )
        shard[line - own[0][0], left - own[1][0] : right - own[1][0]] = piece[0]
