# wrong value: merge of spans inside another one
# [answer 1]
merged: list[Span] = []
before = float("-inf")
for begin, end in sorted(found):
    if begin <= before:
        merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
    else:
        merged.append((begin, end))
    before = end
return merged
