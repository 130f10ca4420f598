# wrong value: the bottleneck of docs/traces/17_1.json
# [answer 2]
busy = [
    (event["ts"], event["ts"] + event["dur"])
    for event in trace
    if event["pid"] == rank and event["name"][:5] not in ("gloo:", "c10d:")
]
everyone = [spans(trace, other, "communication") for other in range(ranks)]
waiting, sending = [], []
for number, (begin, end) in enumerate(everyone[rank]):
    cut = min(end, max(other[number][0] for other in everyone))
    waiting.append((begin, cut))
    sending.append((cut, end))
return without(waiting, busy), without(sending, busy)
