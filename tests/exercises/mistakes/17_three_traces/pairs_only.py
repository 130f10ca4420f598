# wrong value: merge of spans in a chain
# [answer 1]
rest, merged = sorted(found), []
while rest:
    begin, end = rest.pop(0)
    if rest and rest[0][0] <= end:
        end = max(end, rest.pop(0)[1])
    if merged and end <= merged[-1][1]:
        continue
    merged.append((begin, end))
return merged
