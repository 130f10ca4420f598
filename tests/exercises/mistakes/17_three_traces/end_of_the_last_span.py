# wrong value: merge of spans inside another one
# [answer 1]
merged: list[Span] = []
for begin, end in sorted(found):
    if merged and begin <= merged[-1][1]:
        merged[-1] = (merged[-1][0], end)
    else:
        merged.append((begin, end))
return merged
