# right: counts how many spans are open; intersects; a list of three costs
# [answer 1]
edges = sorted([(begin, -1) for begin, _ in found] + [(end, 1) for _, end in found])
merged, opened, first = [], 0, 0.0
for moment, step in edges:
    if opened == 0:
        first = moment
    opened -= step
    if opened == 0:
        merged.append((first, moment))
return merged
# [answer 2]
calls = [spans(trace, other, "communication") for other in range(ranks)]
last = [max(begin for begin, _ in each) for each in zip(*calls, strict=True)]
own = list(zip(calls[rank], last, strict=True))
busy = spans(trace, rank, "compute") + spans(trace, rank, "data")
before = [(begin, min(end, late)) for (begin, end), late in own]
everything = without(calls[rank], busy)
first = without(before, busy)
return first, everything - first
# [answer 3]
parts = {rank: exposed(trace, rank, ranks) for rank in range(ranks)}
loads = (merge(spans(trace, rank, "data")) for rank in range(ranks))
data = min(sum(end - begin for begin, end in load) for load in loads)
late = min(parts, key=lambda rank: parts[rank][0])
slow = max(before for before, _ in parts.values())
sent = min(after for _, after in parts.values())
if slow >= max(data, sent):
    return "slow rank", late
return ("data" if data > sent else "communication"), None
