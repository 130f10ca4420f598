# right: two lists, merged by where the backwards begin
# [answer 1]
ahead = max(0, min(micro_batches, ranks - rank - 1))
# [answer 2]
forwards = iter([("forward", k) for k in range(micro_batches)])
backwards = [("backward", k) for k in range(micro_batches)]
actions = [next(forwards) for _ in range(ahead)]
for action in backwards:
    actions.extend(filter(None, [next(forwards, None), action]))
return actions
