# wrong value: comes first
# [answer 2]
actions = [("forward", k) for k in range(ahead)]
for k in range(ahead, micro_batches):
    actions += [("backward", k - ahead), ("forward", k)]
actions += [("backward", k) for k in range(micro_batches - ahead, micro_batches)]
return actions
