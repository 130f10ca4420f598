# wrong value: the bottleneck
# [answer 3]
def longest(kind):
    times = [without(spans(trace, rank, kind), []) for rank in range(ranks)]
    return max(times), times

data, communication = longest("data"), longest("communication")
if data[0] > communication[0]:
    return "data", None
unequal = max(communication[1]) > 2 * min(communication[1])
late = communication[1].index(min(communication[1]))
return ("slow rank", late) if unequal else ("communication", None)
