# wrong value: the list that merge was given
# [answer 1]
merged: list[Span] = []
found.sort()
for begin, end in found:
    if merged and begin <= merged[-1][1]:
        merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
    else:
        merged.append((begin, end))
return merged
