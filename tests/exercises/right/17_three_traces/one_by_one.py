# right: takes one span after the other out of a list; sorts the costs
# [answer 1]
rest, merged = sorted(found), []
while rest:
    begin, end = rest.pop(0)
    while rest and rest[0][0] <= end:
        end = max(end, rest.pop(0)[1])
    merged.append((begin, end))
return merged
# [answer 2]
busy = merge(spans(trace, rank, "data") + spans(trace, rank, "compute"))
before = after = 0.0
for number, (begin, end) in enumerate(spans(trace, rank, "communication")):
    starts = [spans(trace, r, "communication")[number][0] for r in range(ranks)]
    cut = min(max(starts), end)
    before += without([(begin, cut)], busy)
    after += without([(cut, end)], busy)
return before, after
# [answer 3]
before, after = [], []
for rank in range(ranks):
    first, then = exposed(trace, rank, ranks)
    before.append(first)
    after.append(then)
data = [without(spans(trace, rank, "data"), []) for rank in range(ranks)]
costs = [(min(data), "data"), (min(after), "communication"), (max(before), "slow rank")]
_, name = sorted(costs)[-1]
slow = before.index(min(before))
return (name, slow) if name == "slow rank" else (name, None)
