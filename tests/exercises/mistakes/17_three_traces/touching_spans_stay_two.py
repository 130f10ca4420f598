# wrong value: one of which ends where one begins
# [answer 1]
merged: list[Span] = []
for begin, end in sorted(found):
    if merged and begin < merged[-1][1]:
        merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
    else:
        merged.append((begin, end))
return merged
